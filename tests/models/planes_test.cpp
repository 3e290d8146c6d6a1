// Planes of a NIC, and buildings far from each other: at flow scale and in packets.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/config.h"
#include "sim/text.h"
#include "tests/models/topologies.h"
#include "tests/packets.h"

using namespace railyard;

namespace {

constexpr Bandwidth nic_rate = gbit(800);
constexpr std::int64_t packet_bytes = 4096 + 58;

TopologySpec shape(std::int64_t nodes, std::int64_t planes) {
    TopologySpec spec = uniform_topology("fat_tree", nodes, 8, nic_rate);
    spec.planes = planes;
    spec.endpoint_cable = spec.switch_cable = Metres{20};
    return spec;
}

// Bytes a second that fair shares give a lone connection between two NICs.
double flow_rate(const Topology& t, RoutingSpec routing, VertexId from, VertexId to) {
    Router router(t, routing);
    std::vector<Usage> usages;
    REQUIRE(router.route(from, to, 0, usages));
    MaxMin shares(capacities(t));
    const auto flow = shares.add(usages);
    shares.solve();
    return shares.rate(flow);
}

struct Packets {
    const Topology& topology;
    PacketNetwork network;
    PacketSpec spec;

    explicit Packets(const Topology& t) : topology(t), network(PacketNetwork::of(t, 64'000'000)) {
        for (PacketLink& l : network.links) l.headroom_bytes = 400'000;
        spec.recovery = Recovery::selective_repeat;
        spec.reordering = spec.recovery_window;  // nothing is lost: what is missing is late
        spec.retransmission_timeout = Picoseconds(50 * us);
    }
    // When one message is acknowledged.
    Picoseconds end_of(RoutingSpec routing, VertexId from, VertexId to, std::int64_t bytes,
                       std::optional<LinkId> dies = std::nullopt, Picoseconds at = {}) const {
        MessageFlows flows(topology, routing);
        REQUIRE(flows.send({.from = from, .to = to, .bytes = bytes}) != MessageFlows::nothing);
        PacketEngine engine(network, spec);
        engine.choose_from(NextHops(topology));
        for (const PacketFlow& f : flows.flows()) engine.add(f);
        if (dies) engine.flap(*dies, at, PacketEngine::never);
        engine.run(Picoseconds(100'000 * us));
        CHECK(engine.audit() == "");
        Picoseconds last{};
        for (std::size_t f = 0; f < flows.size(); ++f) last = std::max(last, engine.end(f));
        return last;
    }
};

double seconds_of(Picoseconds t) {
    return static_cast<double>(t.count()) * 1e-12;
}

// What bytes take on the wire at a rate.
double wire_s(std::int64_t bytes, double bytes_per_s) {
    return static_cast<double>(bytes) / 4096 * static_cast<double>(packet_bytes) / bytes_per_s;
}

}  // namespace

TEST_CASE("a flow that its window holds back sends by all planes in turn") {
    constexpr std::int64_t packets = 64;
    for (const std::int64_t planes : {2, 4, 8}) {
        CAPTURE(planes);
        const Topology t = built(shape(16, planes));
        const Packets p(t);
        MessageFlows flows(t, {Routing::spray});
        REQUIRE(flows.send({.from = 0, .to = t.nic(15, 0), .bytes = packets * 4096}) !=
                MessageFlows::nothing);
        PacketEngine engine(p.network, p.spec, receiver_window({.grant_bytes = 4096, .grants = 1}));
        engine.choose_from(NextHops(t));
        for (const PacketFlow& f : flows.flows()) engine.add(f);
        REQUIRE(engine.run(Picoseconds(100'000 * us)));
        for (const LinkId port : t.up_links(0)) {
            CHECK(engine.sent_bytes(port) == packets / planes * packet_bytes);
        }
    }
}

TEST_CASE("planes with sprayed packets carry as many times what one of them does") {
    for (const std::int64_t planes : {2, 4, 8}) {
        CAPTURE(planes);
        const Topology t = built(shape(16, planes));
        CHECK(t.up_links(0).size() == static_cast<std::size_t>(planes));
        TopologySpec one_of_them = shape(16, 1);
        one_of_them.nic_bandwidth = nic_rate * (1.0 / static_cast<double>(planes));
        const Topology single = built(one_of_them);
        for (const Routing policy : {Routing::spray, Routing::random_spray, Routing::adaptive}) {
            CAPTURE(word_of(routing_names, policy));
            const VertexId far = t.nic(15, 0);
            CHECK(
                flow_rate(t, {policy}, 0, far) ==
                doctest::Approx(static_cast<double>(planes) * flow_rate(single, {policy}, 0, far)));
            constexpr std::int64_t bytes = 512 * 4096;
            const Picoseconds all = Packets(t).end_of({policy}, 0, far, planes * bytes);
            const Picoseconds one = Packets(single).end_of({policy}, 0, far, bytes);
            // Ports begin one after the other, and the last packets' acknowledgements too.
            const double packet_s =
                wire_s(4096, nic_rate.bytes_per_second() / static_cast<double>(planes));
            CHECK(std::abs(seconds_of(all - one)) < 2 * packet_s);
        }
    }
}

TEST_CASE("a flow that is bound to one plane gets its part, and a queue pair for each gets all") {
    for (const std::int64_t planes : {2, 4, 8}) {
        const Topology t = built(shape(16, planes));
        const double all = nic_rate.bytes_per_second();
        CHECK(flow_rate(t, {Routing::ecmp, 1}, 0, t.nic(15, 0)) ==
              doctest::Approx(all / static_cast<double>(planes)));
        CHECK(flow_rate(t, {Routing::ecmp, planes}, 0, t.nic(15, 0)) == doctest::Approx(all));
        constexpr std::int64_t bytes = 4096 * 2048;
        const double one =
            seconds_of(Packets(t).end_of({Routing::ecmp, 1}, 0, t.nic(15, 0), bytes));
        const double each =
            seconds_of(Packets(t).end_of({Routing::ecmp, planes}, 0, t.nic(15, 0), bytes));
        CHECK(one / each == doctest::Approx(static_cast<double>(planes)).epsilon(0.1));
    }
}

TEST_CASE("a plane that is dead takes its part of the rate with it, and no more") {
    for (const std::int64_t planes : {2, 4, 8}) {
        CAPTURE(planes);
        Topology t = built(shape(16, planes));
        const VertexId far = t.nic(15, 0);
        const double left = static_cast<double>(planes - 1) / static_cast<double>(planes);
        const double rate = nic_rate.bytes_per_second() * left;
        t.degrade(t.up_links(far)[1], 0);  // at the other end: this one knows by its routes
        constexpr std::int64_t bytes = 4096 * 4096;
        for (const Routing policy : {Routing::spray, Routing::adaptive}) {
            CHECK(flow_rate(t, {policy}, 0, far) == doctest::Approx(rate));
            CHECK(seconds_of(Packets(t).end_of({policy}, 0, far, bytes)) ==
                  doctest::Approx(wire_s(bytes, rate)).epsilon(0.03));
        }
    }
}

TEST_CASE("a plane that dies under way costs what was on it and its part of the rate") {
    const Topology t = built(shape(16, 4));
    constexpr std::int64_t bytes = 4096 * 16384;
    const double rate = nic_rate.bytes_per_second();
    const double before = 200e-6;
    const Picoseconds at(200 * us);
    const double end = seconds_of(
        Packets(t).end_of({Routing::adaptive}, 0, t.nic(15, 0), bytes, t.up_links(0)[2], at));
    const double rest = (wire_s(bytes, rate) - before) * 4 / 3;
    CHECK(end > before + rest);
    CHECK(end < (before + rest) * 1.1);
}

TEST_CASE(
    "two tiers of planes reach the square of the planes as many GPUs as one network of them") {
    // Two tiers of a switch with k ports join k * k / 2 NICs.
    for (const std::int64_t planes : {1, 2, 4, 8}) {
        CAPTURE(planes);
        const std::int64_t ports = 8 * planes;
        TopologySpec spec = shape(ports * ports / 2, planes);
        spec.tiers = 2;
        CHECK(built(spec).levels() == 2);
        spec.nodes += 1;
        std::string problem;
        Topology::build(spec, problem);
        CHECK(problem != "");
    }
}

TEST_CASE("a message between buildings takes its time on the wire and the way's delay") {
    for (const double km : {2.0, 10.0, 100.0}) {
        CAPTURE(km);
        TopologySpec spec = shape(16, 1);
        const auto latency = [&](const Topology& t) {
            Router router(t, {Routing::spray});
            std::vector<Usage> usages;
            REQUIRE(router.route(0, t.nic(15, 0), 0, usages));
            return router.latency(usages);
        };
        spec.sites = 2;
        spec.site_distance = spec.switch_cable;
        const Picoseconds near = latency(built(spec));
        spec.site_distance = Metres{km * 1000};
        const Topology t = built(spec);
        const Picoseconds far = latency(t);
        const double delay_s = (km * 1000 - 20) * spec.propagation_s_per_m;
        CHECK(seconds_of(far - near) == doctest::Approx(delay_s).epsilon(1e-6));
        constexpr std::int64_t bytes = 4096 * 1024;
        const double rate = nic_rate.bytes_per_second();
        Packets packets(t);
        packets.spec.recovery_window = packets.spec.reordering = 1 << 16;  // more than is under way
        packets.spec.retransmission_timeout = {};
        const double took = seconds_of(packets.end_of({Routing::ecmp, 1}, 0, t.nic(15, 0), bytes));
        // There, and the acknowledgement back.
        CHECK(took == doctest::Approx(wire_s(bytes, rate) + 2 * seconds_of(far)).epsilon(0.02));
        // In the same building nothing is far.
        CHECK(seconds_of(packets.end_of({Routing::ecmp, 1}, 0, t.nic(7, 0), bytes)) ==
              doctest::Approx(wire_s(bytes, rate)).epsilon(0.05));
    }
}

TEST_CASE("buildings have what their oversubscription leaves them") {
    TopologySpec spec = shape(32, 1);
    spec.sites = 2;
    spec.site_distance = Metres{40'000};
    for (const double over : {1.0, 2.0, 4.0}) {
        spec.site_oversubscription = over;
        const Topology t = built(spec);
        CHECK(bisection_bytes_per_s(t) == doctest::Approx(16 * nic_rate.bytes_per_second() / over));
    }
    spec.site_bandwidth = nic_rate * 0.5;  // twice as many cables
    CHECK(bisection_bytes_per_s(built(spec)) ==
          doctest::Approx(16 * nic_rate.bytes_per_second() / 4));
}

TEST_CASE("a cable to another building takes its own part of a spine's ports") {
    // 64 ports of 800 Gbit/s; half of the leaves, each with eight cables of 400, in each building.
    const auto problem_of = [](std::int64_t nodes, Bandwidth rate) {
        TopologySpec spec = uniform_topology("fat_tree", nodes, 64, gbit(800));
        spec.nic_bandwidth = gbit(400);
        spec.nics_per_node = 8;
        spec.nodes_per_leaf = 1;
        spec.sites = 2;
        spec.site_distance = Metres{1000};
        spec.site_bandwidth = rate;
        std::string problem;
        const Topology t = Topology::build(spec, problem);
        if (problem.empty()) {
            StandaloneCatalogue c;
            for (const SwitchOrder& row : materials_of(t, c.catalogue).switches) {
                CHECK(row.ports_used <= row.ports);
            }
        }
        return problem;
    };
    CHECK(problem_of(160, gbit(800)).find("80 leaves at 400 Gbit/s and 40 cables") !=
          std::string::npos);
    CHECK(problem_of(130, gbit(800)) != "");
    CHECK(problem_of(128, gbit(800)) == "");  // 64 / 2 ports down, 32 up
    CHECK(problem_of(80, gbit(100)) == "");
}

TEST_CASE("headroom for what is under way loses nothing, and a packet less of it does") {
    for (const std::int64_t km : {2, 40}) {
        CAPTURE(km);
        // Two senders over one long cable each into a switch, and one NIC at its other side.
        PacketNetwork network;
        const Picoseconds delay(km * 5'050'000);
        const Bandwidth line = gbit(400);
        const VertexId far = network.add_switch(2'000'000'000);
        const VertexId here = network.add_switch(2'000'000'000);
        const LinkId over = network.add_cable(far, here, line, delay);
        const LinkId down = network.add_cable(here, network.add_nic(), line, {});
        const LinkId up = reverse_link(network.add_cable(far, network.add_nic(), line, {}));
        const auto lost = [&](std::int64_t headroom) {
            network.links[over].headroom_bytes = headroom;
            network.links[up].headroom_bytes = 1'000'000;
            PacketSpec spec;
            spec.buffer.alpha = 1;
            spec.ack_class = -1;
            PacketNetwork small = network;
            // Its pool is the same, whatever the headroom.
            small.buffer_bytes[here] = 10'000'000 + headroom;
            PacketEngine engine(small, spec);
            engine.add(flow_of({up, over, down}, 200'000'000));
            engine.storm(down, 1, Picoseconds(us), Picoseconds(5'000 * us));
            engine.run(Picoseconds(4'000 * us));
            return engine.totals().lost_lossless;
        };
        // The cable there and back, the pause frame, and the packet that the sender has begun.
        const auto frame = Picoseconds(64 * 20);
        const std::int64_t needed =
            static_cast<std::int64_t>(seconds_of(2 * delay + frame) * line.bytes_per_second()) +
            packet_bytes;
        CHECK(lost(needed) == 0);
        CHECK(lost(needed - packet_bytes) > 0);
    }
}
