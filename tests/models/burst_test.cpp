#include "models/storage/burst.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "models/storage/burst_traffic.h"
#include "models/storage/metadata_queue.h"
#include "models/storage/restart_storm.h"
#include "tests/models/quantities.h"
#include "tests/models/topologies.h"

using namespace railyard;

namespace {

constexpr std::int64_t gigabyte = 1'000'000'000;

// NICs of 50 GB/s, in cables without length behind switches without delay.
TopologySpec shape(std::int64_t nodes, std::int64_t servers) {
    TopologySpec spec = uniform_topology("fat_tree", nodes, 64, gb_per_s(50));
    spec.servers = servers;
    spec.nics_per_server = 1;
    spec.endpoint_cable = spec.switch_cable = {};
    return spec;
}

// A store whose servers together give and take so much, and nothing else holds back.
BurstStore store_of(double gb_s) {
    BurstStore store;
    store.limits.read = store.limits.write = {{"servers", gb_per_s(gb_s)}};
    store.limits.client_read = store.limits.client_write = unlimited;
    store.limits.file_read = store.limits.file_write = unlimited;
    return store;
}

BurstSpec burst_of(const Topology& topology, const BurstStore& store,
                   Routing routing = Routing::spray) {
    BurstSpec spec{topology, {routing}, {}, store, 1};
    spec.nodes.resize(static_cast<std::size_t>(topology.nodes()));
    std::iota(spec.nodes.begin(), spec.nodes.end(), 0);
    return spec;
}

BurstLoad gigabytes_of_each_rank(std::int64_t n, std::int64_t ranks_per_node = 1) {
    BurstLoad load;
    load.ranks_per_node = ranks_per_node;
    load.bytes_per_rank = Bytes::of(n * gigabyte);
    return load;
}

doctest::Approx about(double value, double tolerance = 1e-6) {
    return doctest::Approx(value).epsilon(tolerance);
}

TEST_CASE("one node alone writes at the speed of its NICs") {
    TopologySpec spec = shape(1, 4);
    spec.nics_per_node = 2;
    const Topology topology = built(spec);
    const BurstResult r =
        run_burst(burst_of(topology, store_of(1000)), gigabytes_of_each_rank(100));
    CHECK(seconds(r.stall) == about(1.0));
    CHECK(r.walls[0].wall == Wall::client);
    CHECK(r.walls[0].of_bytes == about(1));
}

TEST_CASE("M clients of a store get an M-th of it each") {
    const Topology topology = built(shape(24, 8));
    for (const std::int64_t nodes : {4, 12, 24}) {
        BurstSpec spec = burst_of(topology, store_of(80));
        spec.nodes.resize(static_cast<std::size_t>(nodes));
        const BurstResult r = run_burst(spec, gigabytes_of_each_rank(10, 8));
        CHECK(seconds(r.stall) == about(static_cast<double>(nodes) * 80 / 80));
        CHECK(r.wall_text() == "store (servers)");
        CHECK(r.rank_bandwidth(0).bytes_per_second() ==
              about(80e9 / 8 / static_cast<double>(nodes)));
        CHECK(r.rank_end(0) == r.rank_end(1));
    }
}

TEST_CASE("an oversubscribed leaf gives its nodes what its uplinks carry, and is named") {
    TopologySpec spec = shape(32, 16);
    spec.nodes_per_leaf = 16;
    spec.oversubscription = 4;
    const Topology topology = built(spec);
    BurstSpec burst = burst_of(topology, store_of(2000));
    burst.nodes.resize(16);  // those of the first leaf: 800 GB/s of NICs behind 200 GB/s
    const BurstResult r = run_burst(burst, gigabytes_of_each_rank(100));
    CHECK(seconds(r.stall) == about(1600.0 / 200));
    CHECK(r.walls[0].wall == Wall::network);
    CHECK(r.walls[0].where.starts_with("leaf-0 to spine-"));
    burst.nodes.resize(4);
    CHECK(seconds(run_burst(burst, gigabytes_of_each_rank(100)).stall) == about(2.0));
}

TEST_CASE("a file with one stripe reaches no more than its one server") {
    const Topology topology = built(shape(8, 8));
    BurstStore store = store_of(80);
    BurstLoad load = gigabytes_of_each_rank(100);
    BurstSpec spec = burst_of(topology, store);
    spec.nodes = {3};
    CHECK(seconds(run_burst(spec, load).stall) == about(100.0 / 50));
    spec.store.stripes = 1;
    CHECK(seconds(run_burst(spec, load).stall) == about(100.0 / 10));
    spec.store.stripes = 4;
    CHECK(seconds(run_burst(spec, load).stall) == about(100.0 / 40));
    spec.store.limits.file_write = gb_per_s(5);
    const BurstResult capped = run_burst(spec, load);
    CHECK(seconds(capped.stall) == about(100.0 / 5));
    CHECK(capped.walls[0].wall == Wall::files);
}

TEST_CASE("files that share a server by chance make its ranks the slowest") {
    const Topology topology = built(shape(16, 8));
    BurstSpec spec = burst_of(topology, store_of(80));
    spec.store.stripes = 1;
    const BurstResult r = run_burst(spec, gigabytes_of_each_rank(10, 2));
    // 32 files on 8 servers of 10 GB/s: a server with k files ends them after k s.
    const double fullest = std::round(seconds(r.stall));
    CHECK(fullest > 4);
    CHECK(seconds(r.stall) == about(fullest));
    CHECK(seconds(r.rank_end(0)) == about(std::round(seconds(r.rank_end(0)))));
    CHECK(r.rank_end(0) < r.stall);
}

TEST_CASE("a rank's many files are as many streams as there are servers, and none is lost") {
    const Topology topology = built(shape(4, 8));
    BurstSpec spec = burst_of(topology, store_of(80));
    spec.store.stripes = 1;
    for (const std::int64_t files : {9, 1000, 1'000'000}) {
        CAPTURE(files);
        BurstLoad load = gigabytes_of_each_rank(10, 2);
        load.files_per_rank = load.operations_per_rank = files;
        const BurstTraffic traffic(spec, {load});
        CHECK(traffic.streams().size() <= 8 * 8);
        double bytes = 0;
        double counted = 0;
        for (const BurstStream& stream : traffic.streams()) {
            counted += stream.files;
            bytes += stream.files * stream.bytes;
        }
        CHECK(counted == static_cast<double>(8 * files));
        CHECK(bytes == about(80e9));
    }
    // A million files lie on all servers alike, as if each were striped over all.
    BurstLoad load = gigabytes_of_each_rank(10, 2);
    load.files_per_rank = 1'000'000;
    CHECK(seconds(run_burst(spec, load).stall) == about(1.0, 0.01));
}

TEST_CASE("a rank serialises no faster than it does") {
    const Topology topology = built(shape(4, 4));
    BurstLoad load = gigabytes_of_each_rank(15, 8);
    load.rank_bandwidth = gb_per_s(1.5);
    const BurstResult r = run_burst(burst_of(topology, store_of(1000)), load);
    CHECK(seconds(r.stall) == about(10));
    CHECK(r.walls[0].wall == Wall::serialisation);
}

TEST_CASE("the system's client bounds a node") {
    const Topology topology = built(shape(4, 4));
    BurstSpec spec = burst_of(topology, store_of(1000));
    spec.store.limits.client_write = gb_per_s(7);
    const BurstResult r = run_burst(spec, gigabytes_of_each_rank(7, 2));
    CHECK(seconds(r.stall) == about(2));
    CHECK(r.wall_text() == "client (the system's client)");
}

TEST_CASE("N ranks with f files each wait N f / rate for the metadata") {
    const Topology topology = built(shape(16, 8));
    BurstSpec spec = burst_of(topology, store_of(1e6));
    spec.store.limits.creates_per_s = 1000;
    BurstLoad load = gigabytes_of_each_rank(0, 8);
    load.bytes_per_rank = Bytes::of(1000);
    load.operations_per_rank = 5;
    const BurstResult r = run_burst(spec, load);
    CHECK(seconds(r.stall) == about(128 * 5 / 1000.0));
    CHECK(seconds(r.metadata) == about(128 * 5 / 1000.0));
    CHECK(r.operations_per_s == about(1000));
    CHECK(r.walls[0].wall == Wall::metadata);
    CHECK(r.walls[0].of_time > 0.99);
    SUBCASE("request by request it is the same") {
        spec.file_by_file = true;
        CHECK(run_burst(spec, load).digest() == r.digest());
    }
}

TEST_CASE("the metadata queue's closed form is what it does request by request") {
    for (const double rate : {0.0, 999.0, 28'000.0}) {
        for (const Duration latency : {Duration(0), Duration(700'000), Duration(90'000'000)}) {
            const MetadataQueue queue(rate, latency);
            for (const std::int64_t clients : {1, 3, 64}) {
                for (const std::int64_t files : {0, 1, 7}) {
                    const auto ready = queue.one_by_one(clients, files);
                    for (std::int64_t c = 0; c < clients; ++c) {
                        CHECK(queue.ready(c, clients, files) == ready[static_cast<std::size_t>(c)]);
                    }
                }
            }
        }
    }
}

TEST_CASE("a store that has lost servers takes as much longer, and they take nothing") {
    const Topology topology = built(shape(16, 8));
    BurstSpec spec = burst_of(topology, store_of(80));
    const BurstLoad load = gigabytes_of_each_rank(10);
    const BurstResult sound = run_burst(spec, load);
    spec.store = store_of(60);  // as its limits say with two servers less
    spec.store.servers_down = 2;
    const BurstResult degraded = run_burst(spec, load);
    CHECK(seconds(degraded.stall) == about(seconds(sound.stall) * 8 / 6));
    const BurstTraffic traffic(spec, {load});
    for (const BurstStream& s : traffic.streams()) {
        for (const Usage& u : traffic.path(s.path)) {
            if (traffic.ceiling(u.link)) continue;
            CHECK(topology.links()[u.link].to != topology.server_nic(6, 0));
            CHECK(topology.links()[u.link].to != topology.server_nic(7, 0));
        }
    }
}

TEST_CASE("a broken cable slows those behind it, a cut-off node is an answer") {
    Topology topology = built(shape(4, 4));
    const LinkId up = topology.up_links(topology.nic(2, 0))[0];
    topology.degrade(up, 0.25);
    const BurstResult slow =
        run_burst(burst_of(topology, store_of(1000)), gigabytes_of_each_rank(50));
    CHECK(seconds(slow.rank_end(0.5)) == about(1));
    CHECK(seconds(slow.stall) == about(4));
    topology.degrade(up, 0);
    const BurstResult cut =
        run_burst(burst_of(topology, store_of(1000)), gigabytes_of_each_rank(50));
    CHECK(cut.stuck == "no path joins node-2.nic-0 and server-0.nic-0");
    CHECK(cut.stall == time_max);
}

TEST_CASE("a neighbour's reads take their share of the servers, not of the writes") {
    const Topology topology = built(shape(8, 1));
    BurstSpec spec = burst_of(topology, store_of(40));
    spec.nodes = {0};
    spec.neighbours = {{topology.server_nic(0, 0), topology.nic(5, 0)}};
    BurstLoad load = gigabytes_of_each_rank(40);
    CHECK(seconds(run_burst(spec, load).stall) == about(1));
    load.direction = Direction::read;
    const BurstResult r = run_burst(spec, load);
    CHECK(seconds(r.stall) == about(2));
    CHECK(r.neighbours.bytes_per_second() == about(20e9));
}

TEST_CASE("collectives slow a burst where the routes meet them, and nowhere else") {
    TopologySpec spec = shape(32, 16);
    spec.nodes_per_leaf = 16;
    spec.oversubscription = 2;
    const Topology network = built(spec);
    BurstSpec converged = burst_of(network, store_of(2000));
    converged.nodes.resize(8);
    const BurstLoad load = gigabytes_of_each_rank(50);
    const double alone = seconds(run_burst(converged, load).stall);
    CHECK(alone == about(1));
    // Eight others on the leaf send to the next leaf, over the uplinks that the burst needs: 16 flows on
    // 400 GB/s.
    for (std::int64_t node = 8; node < 16; ++node) {
        converged.neighbours.push_back({network.nic(node, 0), network.nic(node + 16, 0)});
    }
    CHECK(seconds(run_burst(converged, load).stall) == about(2));
    // Their traffic within the leaf meets nobody.
    for (NeighbourFlow& flow : converged.neighbours) flow.to = network.nic(0, 0);
    CHECK(seconds(run_burst(converged, load).stall) == about(1));
}

// Each stream as a flow of its own over all of its links.
std::vector<double> ends_with_all_links(const BurstTraffic& traffic) {
    std::vector<double> capacities = traffic.capacities();
    const auto caps = static_cast<LinkId>(capacities.size());
    for (const BurstStream& s : traffic.streams()) capacities.push_back(s.cap * s.files);
    FlowSimulation all(capacities);
    for (std::uint32_t i = 0; i < traffic.streams().size(); ++i) {
        const BurstStream& s = traffic.streams()[i];
        const auto files = static_cast<float>(s.files);
        Transfer t;
        for (const Usage& u : traffic.path(s.path)) t.usages.push_back({u.link, u.share * files});
        t.usages.push_back({caps + i, files});
        t.bytes = s.bytes;
        t.start = s.start;
        all.add(std::move(t));
    }
    all.run();
    std::vector<double> ends;
    for (std::size_t i = 0; i < traffic.streams().size(); ++i) {
        ends.push_back(static_cast<double>(all.end(i).count()) * 1e-12);
    }
    return ends;
}

double bytes_by(Wall wall, const BurstResult& r) {
    double share = 0;
    for (const WallShare& each : r.walls) share += each.wall == wall ? each.of_bytes : 0;
    return share;
}

TEST_CASE("shares found with few links are those found with all") {
    TopologySpec shape_of = shape(24, 6);
    shape_of.nodes_per_leaf = 8;
    shape_of.oversubscription = 2;
    shape_of.nics_per_node = 2;
    shape_of.nics_per_server = 2;
    const Topology topology = built(shape_of);
    BurstLoad load = gigabytes_of_each_rank(20, 2);
    load.operations_per_rank = 1;
    load.rank_bandwidth = gb_per_s(45);
    for (const Routing routing : {Routing::ecmp, Routing::spray, Routing::destination}) {
        for (const std::int64_t stripes : {0, 1, 3}) {
            for (const double store_gb_s : {180.0, 1000.0}) {
                BurstSpec spec = burst_of(topology, store_of(store_gb_s), routing);
                spec.store.stripes = stripes;
                spec.store.limits.creates_per_s = 200;
                const BurstResult r = run_burst(spec, load);
                if (store_gb_s == 1000) CHECK(bytes_by(Wall::network, r) > 0.9);
                const BurstTraffic traffic(spec, {load});
                const std::vector<double> ends = ends_with_all_links(traffic);
                for (std::size_t i = 0; i < ends.size(); ++i) {
                    const Duration ours = r.rank_ends[traffic.streams()[i].first_rank];
                    CHECK(seconds(ours) == about(ends[i], 2e-5));
                }
            }
        }
    }
}

TEST_CASE("on a network that never blocks, the closed form is within a percent") {
    const std::int64_t nodes = 48;
    const std::int64_t servers = 16;
    const Topology topology = built(shape(nodes, servers));
    const BurstEnds ends{nodes, gb_per_s(50), servers, gb_per_s(50)};
    for (const double store_gb_s : {100.0, 700.0, 5000.0}) {
        for (const double rank_gb_s : {1.5, 100.0}) {
            for (const std::int64_t creates : {0, 3}) {
                for (const Direction direction : {Direction::read, Direction::write}) {
                    BurstSpec spec = burst_of(topology, store_of(store_gb_s));
                    spec.store.limits.creates_per_s = spec.store.limits.opens_per_s = 2000;
                    BurstLoad load = gigabytes_of_each_rank(20, 8);
                    load.direction = direction;
                    load.operations_per_rank = creates;
                    load.rank_bandwidth = gb_per_s(rank_gb_s);
                    const BurstResult flows = run_burst(spec, load);
                    const BurstResult form = burst_closed_form(ends, spec.store, load);
                    CHECK(seconds(flows.stall) == about(seconds(form.stall), 0.01));
                    CHECK(flows.walls[0].wall == form.walls[0].wall);
                }
            }
        }
    }
}

TEST_CASE("several loads at once end together as one as large would") {
    const Topology topology = built(shape(16, 8));
    const BurstSpec spec = burst_of(topology, store_of(80));
    BurstLoad image = gigabytes_of_each_rank(20);
    image.what = "image";
    image.direction = Direction::read;
    BurstLoad state = gigabytes_of_each_rank(5, 8);
    state.direction = Direction::read;
    const auto r = run_bursts(spec, {image, state});
    CHECK(seconds(std::max(r[0].stall, r[1].stall)) == about(16 * (20 + 40) / 80.0));
    SUBCASE("a registry of its own takes the image off the store") {
        image.registry = gb_per_s(1);
        const auto apart = run_bursts(spec, {image, state});
        CHECK(seconds(apart[0].stall) == about(16 * 20 / 1.0));
        CHECK(seconds(apart[1].stall) == about(16 * 40 / 80.0));
    }
}

TEST_CASE("a restart storm makes image, checkpoint and index wait for each other") {
    const Topology topology = built(shape(16, 8));
    BurstSpec spec = burst_of(topology, store_of(80));
    RestartStorm storm;
    storm.ranks_per_node = 8;
    storm.checkpoint_per_rank = Bytes::of(5 * gigabyte);
    storm.image = Bytes::of(20 * gigabyte);
    storm.index = Bytes::of(gigabyte);
    const RestartTimes at_once = restart_storm(spec, storm);
    CHECK(seconds(at_once.all) == about(16 * (20 + 8 * 5 + 8 * 1) / 80.0));
    CHECK(at_once.all == at_once.image.stall);
    // 272 readers share alike until each of 144 has its gigabyte, or five.
    CHECK(seconds(at_once.index.stall) == about((16 + 2 * 128) * 1 / 80.0));
    CHECK(seconds(at_once.checkpoint.stall) == about((128 + (16 + 128) * 5) / 80.0));
    storm.registry = gb_per_s(100);
    const RestartTimes apart = restart_storm(spec, storm);
    CHECK(seconds(apart.image.stall) == about(16 * 20 / 100.0));
    CHECK(seconds(apart.checkpoint.stall) == about(16 * 8 * 6 / 80.0));
}

TEST_CASE("the same burst has the same digest, another seed places stripes elsewhere") {
    TopologySpec shape_of = shape(40, 8);
    shape_of.nodes_per_leaf = 8;
    const Topology topology = built(shape_of);
    BurstSpec spec = burst_of(topology, store_of(200), Routing::ecmp);
    spec.store.stripes = 2;
    const BurstLoad load = gigabytes_of_each_rank(3, 4);
    const std::uint64_t digest = run_burst(spec, load).digest();
    CHECK(run_burst(spec, load).digest() == digest);
    spec.seed = 2;
    CHECK(run_burst(spec, load).digest() != digest);
}

TEST_CASE("a store that gives nothing never ends a burst, and says so") {
    const Topology topology = built(shape(4, 4));
    const BurstResult r = run_burst(burst_of(topology, store_of(0)), gigabytes_of_each_rank(1));
    CHECK(r.stuck == "held back for more than 100 years by servers");
    CHECK(r.stall == time_max);
}

}  // namespace
