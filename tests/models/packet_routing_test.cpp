#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/config.h"
#include "sim/rng.h"
#include "tests/models/topologies.h"
#include "tests/packets.h"

using namespace railyard;

namespace {

constexpr Bandwidth line = gbit(400);

TopologySpec shape(const std::string& kind, std::int64_t nodes, std::int64_t tiers,
                   std::int64_t ports) {
    TopologySpec spec = uniform_topology(kind, nodes, ports, line, tiers);
    spec.endpoint_cable = spec.switch_cable = {};
    return spec;
}

// Two leaves with `paths` ways between them, and `per_path` NICs on each leaf for each way that together
// are as fast as it.
Topology two_leaves(std::int64_t paths, std::int64_t per_path) {
    TopologySpec spec = shape("fat_tree", 2 * paths * per_path, 2, paths * (per_path + 1));
    spec.oversubscription = static_cast<double>(per_path);
    spec.spine.ports = 2;
    Topology t = built(spec);
    REQUIRE(t.up_links(static_cast<VertexId>(t.nic_count())).size() ==
            static_cast<std::size_t>(paths));
    for (VertexId nic = 0; nic < t.nic_count(); ++nic) {
        t.degrade(t.up_links(nic)[0], 1 / static_cast<double>(per_path));
    }
    return t;
}

struct Run {
    PacketNetwork network;
    PacketSpec spec;
    PacketRouting routing = PacketRouting::path;
    std::vector<PacketFlow> flows;

    explicit Run(const Topology& topology) : network(PacketNetwork::of(topology, 32'000'000)) {
        for (PacketLink& l : network.links) {
            l.latency = Picoseconds(us);
            l.headroom_bytes = 200'000;
        }
        spec.recovery = Recovery::selective_repeat;
        spec.reordering = spec.recovery_window;  // nothing is lost: what is missing is late
    }
    PacketFlow& flow(Router& router, VertexId from, VertexId to, std::int64_t bytes) {
        std::vector<Usage> usages;
        REQUIRE(router.route(from, to, 0, usages));
        PacketFlow f;
        for (const Usage& u : usages) f.path.push_back(u.link);
        f.bytes = bytes;
        flows.push_back(std::move(f));
        return flows.back();
    }
    PacketEngine engine(const Topology& topology) const {
        PacketEngine e(network, spec);
        if (routing != PacketRouting::path) e.choose_from(NextHops(topology));
        for (PacketFlow f : flows) {
            f.routing = routing;
            e.add(f);
        }
        return e;
    }
};

// What a NIC takes to send a flow's packets.
double transfer_us(std::int64_t bytes) {
    return static_cast<double>(bytes) * (4096 + 58) / 4096 * 8 / 400e3;
}

// 128 hosts in three tiers, each sends to one other.
struct Permutation {
    static constexpr std::int64_t bytes = 1 << 20;
    Topology topology = built(shape("fat_tree", 128, 3, 8));
    Run run{topology};

    Permutation() {
        Router router(topology, {});
        std::vector<VertexId> to(128);
        for (VertexId i = 0; i < 128; ++i) to[i] = i;
        RandomStream random(1, 0, "test/permutation");
        // Sattolo's: one cycle.
        for (VertexId i = 127; i > 0; --i) std::swap(to[i], to[random.below(i)]);
        for (VertexId i = 0; i < 128; ++i) run.flow(router, i, to[i], bytes);
    }

    struct Outcome {
        double slowest = 0;  // of line rate
        double mean = 0;     // likewise
        PacketEngine::Totals totals;
        std::string digest;
    };
    Outcome outcome() {
        PacketEngine e = run.engine(topology);
        REQUIRE(e.run(Picoseconds(1'000'000 * us)));
        CHECK(e.audit() == "");
        Outcome out{1e9, 0, e.totals(), e.digest()};
        for (std::size_t i = 0; i < run.flows.size(); ++i) {
            const double took_us = static_cast<double>(e.end(i).count()) * 1e-6;
            // Six links there and back of 1 us.
            const double rate = (transfer_us(bytes) + 12) / took_us;
            out.slowest = std::min(out.slowest, rate);
            out.mean += rate / static_cast<double>(run.flows.size());
        }
        return out;
    }
};

// For two hundred pairs of nodes drawn at random.
void check_next_hops(const Topology& t, RandomStream& random) {
    Router router(t, {Routing::spray});
    NextHops next(t);
    for (int pair = 0; pair < 200; ++pair) {
        const auto from = static_cast<VertexId>(random.below(t.nic_count()));
        const auto to = static_cast<VertexId>(random.below(t.nic_count()));
        std::vector<Usage> usages;
        if (from == to || !router.route(from, to, 0, usages)) continue;
        std::set<LinkId> known;
        std::vector<LinkId> reached;
        for (const Usage& u : usages) {
            known.insert(u.link);
            if (t.links()[u.link].from == from) reached.push_back(u.link);
        }
        std::set<LinkId> found(reached.begin(), reached.end());
        for (std::size_t i = 0; i < reached.size(); ++i) {
            if (t.links()[reached[i]].to == to) continue;
            for (const LinkId l : next.next(reached[i], to).links) {
                if (found.insert(l).second) reached.push_back(l);
            }
        }
        REQUIRE(found == known);
    }
}

// Two leaves under two spines, the first with more cables to each than the second.
Topology uneven() {
    const char* text = R"(
switch = [{ name = "a" }, { name = "b" }, { name = "y", tier = 2 }, { name = "z", tier = 2 }]
cable = [{ from = "a", to = "y", count = 4 }, { from = "b", to = "y", count = 2 },
         { from = "a", to = "z", count = 4 }, { from = "b", to = "z", count = 2 }]
attach = [{ switch = "a", last_node = 1 }, { switch = "b", first_node = 2 }]
)";
    Diagnostics diagnostics;
    ValueReader values(diagnostics, "uneven");
    Catalogue catalogue(values, ValueChoice::corrected, nullptr);
    Document document = parse_document(text, "uneven", diagnostics);
    Section top(values, &document.root, "", {});
    TopologySpec spec = shape("custom", 4, 0, 0);
    spec.leaf = read_switch(catalogue, "sn5600_spectrum4");
    Topology t = Topology::read(top, spec, catalogue);
    REQUIRE(diagnostics.ok());
    return t;
}

}  // namespace

TEST_CASE("next hops lead along all the shortest paths that a router knows, and along no others") {
    for (const std::string kind :
         {"fat_tree", "rail_optimized", "dual_plane", "fat_tree with servers, whole"}) {
        const bool whole = kind.ends_with("whole");
        TopologySpec spec = shape(whole ? "fat_tree" : kind, 32, 0, 8);
        spec.nics_per_node = 2;
        if (whole) spec.servers = 3;  // a last pod of fewer leaves
        if (kind == "dual_plane") spec.leaf.ports = spec.spine.ports = spec.core.ports = 16;
        Topology t = built(spec);
        RandomStream random(1, 0, "test/dead/" + kind);
        for (int dead = 0; dead < (whole ? 0 : 12); ++dead) {
            const auto l = static_cast<LinkId>(random.below(t.links().size()));
            if (t.level(t.links()[l].from) > 0 && t.level(t.links()[l].to) > 0) t.degrade(l, 0);
        }
        check_next_hops(t, random);
    }
    RandomStream random(1, 0, "test/uneven");
    check_next_hops(uneven(), random);
}

TEST_CASE("a sprayed permutation runs at line rate where hashed paths lose half of it") {
    Permutation p;
    const auto hashed = p.outcome();
    p.run.routing = PacketRouting::spray;
    const auto sprayed = p.outcome();
    p.run.routing = PacketRouting::adaptive;
    const auto adaptive = p.outcome();
    CHECK(sprayed.slowest > 0.95);
    CHECK(sprayed.mean > 0.97);
    CHECK(sprayed.totals.retransmitted == 0);
    CHECK(sprayed.totals.data_hops == hashed.totals.data_hops);
    CHECK(adaptive.slowest > 1.5 * hashed.slowest);
    CHECK(hashed.slowest < 0.4);
    CHECK(hashed.mean < 0.6);
    CHECK(p.outcome().digest == adaptive.digest);
}

TEST_CASE(
    "packets sprayed by chance queue more than those in turn, and far less than hashed flows") {
    Permutation p;
    const auto hashed = p.outcome();
    p.run.routing = PacketRouting::spray;
    const auto in_turn = p.outcome();
    p.run.routing = PacketRouting::random_spray;
    const auto by_chance = p.outcome();
    CHECK(by_chance.slowest < in_turn.slowest);
    CHECK(by_chance.mean > 1.5 * hashed.mean);
    CHECK(p.outcome().digest == by_chance.digest);
}

TEST_CASE("what a network loses nothing of is not sent again at the catalogue's reordering") {
    Diagnostics diagnostics;
    ValueReader values(diagnostics, "catalogue");
    Catalogue catalogue(values, ValueChoice::corrected, nullptr);
    for (const PacketRouting routing :
         {PacketRouting::spray, PacketRouting::random_spray, PacketRouting::adaptive}) {
        Permutation p;
        p.run.routing = routing;
        p.run.spec.reordering =
            static_cast<std::uint32_t>(catalogue.integer("roce_transport", "", "reordering"));
        CHECK(p.outcome().totals.retransmitted == 0);
        if (routing != PacketRouting::adaptive) continue;
        p.run.spec.reordering = 64;
        CHECK(p.outcome().totals.retransmitted > 100);
    }
}

TEST_CASE(
    "go-back-N takes what overtakes for a loss: under spray it sends each ten times and more") {
    Permutation p;
    p.run.routing = PacketRouting::spray;
    p.run.spec.recovery = Recovery::go_back_n;
    p.run.spec.retransmission_timeout = Picoseconds(100 * us);
    const auto sprayed = p.outcome();
    p.run.routing = PacketRouting::flowlet;
    p.run.spec.flowlet_gap = Picoseconds(50 * us);
    const auto flowlets = p.outcome();
    CHECK(flowlets.totals.retransmitted == 0);
    CHECK(sprayed.totals.retransmitted > 10 * 128 * Permutation::bytes / 4096);
    CHECK(sprayed.mean < 0.2);
}

TEST_CASE("spray gives every equal output its share of a flow, to the packet") {
    const Topology t = two_leaves(8, 1);
    Run run(t);
    Router router(t, {});
    run.flow(router, 0, 8, 64 * 4096);
    run.routing = PacketRouting::spray;
    PacketEngine e = run.engine(t);
    REQUIRE(e.run(PacketEngine::never));
    for (const LinkId l : t.up_links(16)) CHECK(e.sent_bytes(l) == 8 * (4096 + 58));
    // The acknowledgements go back as their packets came.
    for (const LinkId l : t.up_links(16)) CHECK(e.sent_bytes(reverse_link(l)) == 8 * 64);
}

TEST_CASE("adaptive packets take from a slow link what it can carry, sprayed ones wait for it") {
    Topology t = two_leaves(4, 1);
    t.degrade(t.up_links(8)[0], 0.25);
    Run run(t);
    Router router(t, {});
    constexpr std::int64_t bytes = 4 << 20;
    for (VertexId i = 0; i < 4; ++i) run.flow(router, i, 4 + i, bytes);
    const auto ends = [&](PacketRouting routing) {
        run.routing = routing;
        PacketEngine e = run.engine(t);
        REQUIRE(e.run(PacketEngine::never));
        CHECK(e.audit() == "");
        double last = 0;
        for (std::size_t i = 0; i < 4; ++i)
            last = std::max(last, static_cast<double>(e.end(i).count()) * 1e-6);
        return (last - 8) / transfer_us(bytes);  // four links there and back of 1 us
    };
    const double spray = ends(PacketRouting::spray);
    const double adaptive = ends(PacketRouting::adaptive);
    CHECK(spray == doctest::Approx(4).epsilon(0.02));
    CHECK(adaptive == doctest::Approx(4 / 3.25).epsilon(0.02));
}

TEST_CASE("adaptive packets leave a cable alone from the moment that it goes down") {
    const Topology t = two_leaves(4, 1);
    Run run(t);
    Router router(t, {});
    constexpr std::int64_t bytes = 4 << 20;
    for (VertexId i = 0; i < 4; ++i) run.flow(router, i, 4 + i, bytes);
    run.routing = PacketRouting::adaptive;
    run.spec.reordering = 64;
    run.spec.retransmission_timeout = Picoseconds(1000 * us);
    PacketEngine e = run.engine(t);
    const LinkId dead = t.up_links(8)[0];
    e.flap(dead, Picoseconds(20 * us), PacketEngine::never);
    e.run(Picoseconds(21 * us));
    const std::int64_t sent = e.sent_bytes(dead);
    REQUIRE(e.run(Picoseconds(100'000 * us)));
    CHECK(sent > 0);
    CHECK(e.sent_bytes(dead) == sent);
    for (std::size_t i = 0; i < 4; ++i) CHECK(e.end(i) < PacketEngine::never);
}

TEST_CASE("a flow changes its way only after a gap") {
    const Topology t = two_leaves(8, 1);
    Run run(t);
    Router router(t, {});
    run.flow(router, 0, 8, 64 * 4096);
    run.routing = PacketRouting::flowlet;
    const auto ways = [&](std::int64_t gap) {
        run.spec.flowlet_gap = Picoseconds(gap);
        PacketEngine e = run.engine(t);
        REQUIRE(e.run(PacketEngine::never));
        int used = 0;
        for (const LinkId l : t.up_links(16)) used += e.sent_bytes(l) > 0 ? 1 : 0;
        return used;
    };
    // Its packets are one serialisation apart: 4,154 bytes at 20 ps.
    CHECK(ways(4154 * 20) == 1);
    CHECK(ways(4154 * 20 - 1) == 8);
}

namespace {

// `paths` x `per_path` flows from leaf to leaf, hashed.
struct HashedFlows {
    Topology topology;
    std::vector<std::vector<Usage>> routes;
    std::vector<double> rates;  // max-min fair, of a NIC's

    HashedFlows(std::int64_t paths, std::int64_t per_path)
        : topology(two_leaves(paths, per_path)) {}
    void draw(std::uint64_t seed) {
        const auto flows = static_cast<VertexId>(topology.nic_count() / 2);
        Router router(topology, {Routing::ecmp, 1, seed});
        MaxMin shares(capacities(topology));
        routes.assign(flows, {});
        rates.clear();
        std::vector<FlowId> ids;
        for (VertexId i = 0; i < flows; ++i) {
            REQUIRE(router.route(i, flows + i, 0, routes[i]));
            ids.push_back(shares.add(routes[i]));
        }
        shares.solve();
        const double nic = topology.links()[topology.up_links(0)[0]].bytes_per_s;
        for (const FlowId id : ids) rates.push_back(shares.rate(id) / nic);
    }
    double slowest() const { return *std::min_element(rates.begin(), rates.end()); }
    double total() const {
        double sum = 0;
        for (const double r : rates) sum += r;
        return sum / static_cast<double>(rates.size());
    }
};

}  // namespace

TEST_CASE("hashed flows fare as balls in bins do: the slowest of them, and all together") {
    // Facts C.10: Monte Carlo; three decimals of them are in the catalogue.
    struct Row {
        std::int64_t paths, per_path;
        double slowest, total;
    };
    for (const Row& row : {Row{8, 1, 0.411, 0.66}, Row{32, 1, 0.293, 0.638}, Row{8, 4, 0.585, 0.82},
                           Row{32, 4, 0.469, 0.807}}) {
        HashedFlows flows(row.paths, row.per_path);
        double slowest = 0;
        double total = 0;
        constexpr int draws = 600;
        for (std::uint64_t seed = 0; seed < draws; ++seed) {
            flows.draw(seed);
            slowest += flows.slowest() / draws;
            total += flows.total() / draws;
        }
        CHECK(slowest == doctest::Approx(row.slowest).epsilon(0.03));
        CHECK(total == doctest::Approx(row.total).epsilon(0.01));
    }
}

TEST_CASE("packets under PFC alone share hashed paths as max-min does") {
    for (const std::int64_t per_path : {1, 4}) {
        HashedFlows flows(8, per_path);
        double worst = 0;
        double total = 0;
        double fair = 0;
        for (std::uint64_t seed = 0; seed < 4; ++seed) {
            flows.draw(seed);
            Run run(flows.topology);
            for (const auto& route : flows.routes) {
                PacketFlow f;
                for (const Usage& u : route) f.path.push_back(u.link);
                f.bytes = unending;
                run.flows.push_back(f);
            }
            PacketEngine e = run.engine(flows.topology);
            std::vector<std::int64_t> before;
            e.run(Picoseconds(1000 * us));
            for (std::size_t i = 0; i < run.flows.size(); ++i)
                before.push_back(e.received_bytes(i));
            e.run(Picoseconds(2000 * us));
            CHECK(e.totals().lost_lossless == 0);
            const double nic = 400e9 / 8 / static_cast<double>(per_path) * 4096 / (4096 + 58);
            for (std::size_t i = 0; i < run.flows.size(); ++i) {
                const double rate =
                    static_cast<double>(e.received_bytes(i) - before[i]) / 1e-3 / nic;
                worst = std::max(worst, std::abs(rate / flows.rates[i] - 1));
                total += rate;
                fair += flows.rates[i];
            }
        }
        CHECK(worst < 0.02);
        CHECK(total == doctest::Approx(fair).epsilon(0.01));
    }
}

TEST_CASE(
    "where all switches hash alike, a tier spreads no further what the one below has put "
    "together") {
    // 64 flows from four pods to four others; each pod has 16 links to the core switches.
    const Topology t = built(shape("fat_tree", 128, 3, 8));
    const auto outcome = [&](bool polarized, double& rate) {
        std::set<LinkId> used;
        constexpr std::uint64_t draws = 20;
        for (std::uint64_t seed = 0; seed < draws; ++seed) {
            Router router(t, {Routing::ecmp, 1, seed, polarized});
            MaxMin shares(capacities(t));
            std::vector<FlowId> ids;
            for (VertexId i = 0; i < 64; ++i) {
                std::vector<Usage> usages;
                REQUIRE(router.route(i, 64 + i, 0, usages));
                ids.push_back(shares.add(usages));
                // By number among the links of its switch: that of the tier below and that of this.
                const auto place = [&](LinkId l) {
                    const auto up = t.up_links(t.links()[l].from);
                    return std::find(up.begin(), up.end(), l) - up.begin();
                };
                if (polarized) REQUIRE(place(usages[1].link) == place(usages[2].link));
                if (seed == 0) used.insert(usages[2].link);
            }
            shares.solve();
            for (const FlowId id : ids) rate += shares.rate(id) / 50e9 / 64 / draws;
        }
        return used.size();
    };
    double apart = 0;
    double alike = 0;
    const std::size_t used_apart = outcome(false, apart);
    const std::size_t used_alike = outcome(true, alike);
    CHECK(used_alike <= 4 * 4);  // of 64: one for each of a pod's four spines
    CHECK(used_apart > 2 * used_alike);
    CHECK(alike <=
          0.25);  // of line rate: a quarter of the links for as many flows as there are links
    CHECK(apart > 1.8 * alike);
}
