// Cables that go down in a run: what is lost, and who finds another way when.

#include "models/fabric/link_failover.h"

#include <doctest/doctest.h>

#include "tests/models/topologies.h"
#include "tests/packets.h"

using namespace railyard;

namespace {

constexpr Bandwidth line = gbit(400);

// Two leaves of four NICs, four spines; flows of a megabyte or so from the first leaf to the second.
struct Fabric {
    Topology topology;
    PacketNetwork network;
    PacketSpec spec;
    PacketRouting routing = PacketRouting::path;
    std::string congestion = "none";
    std::vector<CableOutage> outages;
    FailoverTimes times{Picoseconds(10 * us), Picoseconds(300 * us)};
    std::int64_t bytes = 5000 * 4096;  // 415 us
    std::int64_t flow_count = 1;

    Fabric() : topology(two_leaves()), network(PacketNetwork::of(topology, 16'000'000)) {
        for (PacketLink& l : network.links) {
            l.latency = Picoseconds(us);
            l.headroom_bytes = 200'000;
            l.vl_buffer_bytes = 200'000;
        }
        spec.retransmission_timeout = Picoseconds(5000 * us);
    }
    static Topology two_leaves() {
        TopologySpec spec = uniform_topology("fat_tree", 8, 8, line, 2);
        spec.spine.ports = 2;
        Topology t = built(spec);
        REQUIRE(t.up_links(8).size() == 4);
        return t;
    }
    std::vector<PacketFlow> flows() const {
        MessageFlows messages(topology, {});
        for (VertexId nic = 0; nic < flow_count; ++nic) messages.send({nic, 4 + nic, bytes});
        std::vector<PacketFlow> flows = messages.take();
        for (PacketFlow& f : flows) f.routing = routing;
        return flows;
    }
    LinkId of_path(std::size_t hop) const { return flows()[0].path[hop]; }
    void down(LinkId link, std::int64_t from_us, Picoseconds until = PacketEngine::never) {
        outages.push_back({link, Picoseconds(from_us * us), until});
    }

    std::unique_ptr<Congestion> control() const {
        HpccSpec control;
        control.base_rtt = Picoseconds(9 * us);
        control.additive_bits_per_s = 1e9;
        control.min_bits_per_s = 1e8;
        return congestion == "hpcc" ? hpcc(control) : no_congestion_control();
    }
};

struct Run {
    std::vector<PacketFlow> flows;
    PacketEngine engine;
    LinkFailover failover;

    explicit Run(const Fabric& f)
        : flows(f.flows()),
          engine(f.network, f.spec, f.control()),
          failover(f.topology, {}, f.times, f.outages, flows, 0) {
        if (f.routing != PacketRouting::path) engine.choose_from(NextHops(f.topology));
        for (const PacketFlow& flow : flows) engine.add(flow);
        for (const CableOutage& o : f.outages) engine.flap(o.link, o.down, o.up);
    }
    bool until(Picoseconds end) {
        while (failover.next() <= end && failover.next() != PacketEngine::never) {
            if (engine.run(failover.next())) return true;
            failover.act(engine);
        }
        return engine.run(end);
    }
    bool until(std::int64_t at_us) { return until(Picoseconds(at_us * us)); }
    bool to_end() { return until(PacketEngine::never); }
};

Picoseconds undisturbed() {
    Run r{Fabric()};
    REQUIRE(r.to_end());
    return r.engine.end(0);
}

constexpr Picoseconds round_trip(9 * us);

}  // namespace

TEST_CASE("a switch that loses a cable sends by its others after the local time") {
    for (const std::int64_t local_us : {10, 50}) {
        Fabric f;
        f.times.local = Picoseconds(local_us * us);
        f.down(f.of_path(1), 100);
        Run r(f);
        r.until(100 + local_us);
        const std::int64_t by_it = r.engine.sent_bytes(f.of_path(1));
        REQUIRE(r.to_end());
        // The first packet by another way shows the gap, and what was on the way at first is sent again too.
        const Picoseconds later = r.engine.end(0) - undisturbed();
        CHECK(later >= f.times.local);
        CHECK(later < f.times.local + 3 * round_trip / 2);
        CHECK(r.engine.totals().timeouts == 0);
        CHECK(r.engine.sent_bytes(f.of_path(1)) == by_it);
        CHECK(r.engine.audit() == "");
    }
}

TEST_CASE("a spine that loses its only cable to a leaf loses all for it until everybody knows") {
    Fabric f;
    f.down(f.of_path(2), 100);
    Run r(f);
    REQUIRE(r.to_end());
    const Picoseconds later = r.engine.end(0) - undisturbed();
    CHECK(later >= f.times.everywhere);
    CHECK(later < f.times.everywhere + 3 * round_trip / 2);
    CHECK(r.engine.totals().timeouts == 0);
}

TEST_CASE("without another way a flow fails after its retries, or goes on when the cable is back") {
    Fabric f;
    f.spec.retries = 2;
    f.bytes = 1000 * 4096;     // all sent before anybody notices
    f.down(f.of_path(3), 10);  // the leaf's to the NIC
    Run cut(f);
    REQUIRE(cut.to_end());
    CHECK(cut.engine.failed(0));
    CHECK(cut.engine.totals().timeouts == 3);
    f.outages[0].up = Picoseconds(7000 * us);
    Run back(f);
    REQUIRE(back.to_end());
    CHECK(back.engine.totals().timeouts == 2);  // after 5 and 10 ms
    CHECK(back.engine.end(0) > Picoseconds(10'000 * us));
}

TEST_CASE("a cable that is back is used again after the local time") {
    Fabric f;
    f.down(f.of_path(1), 100, Picoseconds(200 * us));
    Run r(f);
    const LinkId own = f.of_path(1);
    r.until(209);
    const std::int64_t before = r.engine.sent_bytes(own);
    r.until(213);
    CHECK(r.engine.sent_bytes(own) > before);
    REQUIRE(r.to_end());
    CHECK(r.engine.end(0) < undisturbed() + f.times.local + 2 * round_trip);
}

TEST_CASE("a cable that is back after all knew it gone is used again when all know it back") {
    Fabric f;
    f.bytes = 20'000 * 4096;  // 1,660 us
    f.down(f.of_path(1), 100, Picoseconds(500 * us));
    Run r(f);
    const LinkId own = f.of_path(1);
    r.until(150);
    const std::int64_t before = r.engine.sent_bytes(own);
    r.until(799);
    CHECK(r.engine.sent_bytes(own) == before);
    r.until(803);
    CHECK(r.engine.sent_bytes(own) > before);
    REQUIRE(r.to_end());
    CHECK(r.engine.audit() == "");
}

TEST_CASE("a switch sends into a dead end that it can't know of yet") {
    // The way that the leaf takes instead has just lost its spine's cable to the other leaf.
    Fabric f;
    f.down(f.of_path(1), 100);
    Run one(f);
    one.until(120);
    LinkId instead = 0;
    for (const LinkId up : f.topology.up_links(8)) {
        if (one.engine.sent_bytes(up) > 0 && up != f.of_path(1)) instead = up;
    }
    REQUIRE(instead != 0);
    const VertexId spine = f.topology.links()[instead].to;
    for (const LinkId down : f.topology.down_links(spine)) {
        if (f.topology.links()[down].to == 9) f.down(down, 105);
    }
    REQUIRE(f.outages.size() == 2);
    Run two(f);
    REQUIRE(two.to_end());
    // Until everybody knows of the second.
    const Picoseconds later = two.engine.end(0) - undisturbed();
    CHECK(later >= Picoseconds(5 * us) + f.times.everywhere);
    CHECK(later < Picoseconds(5 * us) + f.times.everywhere + 3 * round_trip);
    CHECK(two.engine.totals().timeouts == 0);
    CHECK(two.engine.audit() == "");
}

TEST_CASE("a queue that starves is thrown away with its cable, and nothing looks for its head") {
    Fabric f;
    for (PacketClass& c : f.spec.classes) c.flow_control = FlowControl::credits;
    f.spec.credits.lifetime = f.spec.credits.leaf_lifetime = Picoseconds(400 * us);
    f.spec.retries = 1;
    f.bytes = 1000 * 4096;
    f.down(f.of_path(3), 100);
    Run r(f);
    r.engine.storm(f.of_path(3), 1, {}, PacketEngine::never);
    r.until(99);
    CHECK(r.engine.paused(f.of_path(3), 1));
    r.until(101);
    CHECK_FALSE(r.engine.paused(f.of_path(3), 1));
    CHECK(r.engine.queue_bytes(f.of_path(3), 1) == 0);
    REQUIRE(r.to_end());
    CHECK(r.engine.failed(0));
    CHECK(r.engine.totals().lost_to_lifetime == 0);
    CHECK(r.engine.audit() == "");
}

TEST_CASE("a NIC whose cable never comes back is stuck, not patient") {
    Fabric f;
    f.down(f.of_path(0), 0);
    Run r(f);
    PacketFlow late = r.flows[0];
    late.start = Picoseconds(50 * us);
    r.engine.add(late);
    CHECK_FALSE(r.until(std::int64_t{100'000}));
    CHECK(r.engine.stuck());
}

TEST_CASE("an outage shorter than the local time moves nobody") {
    Fabric f;
    f.down(f.of_path(1), 100, Picoseconds(105 * us));
    Run r(f);
    CHECK(r.failover.next() == PacketEngine::never);
    REQUIRE(r.to_end());
    CHECK(r.engine.end(0) < undisturbed() + Picoseconds(5 * us) + 3 * round_trip / 2);
}

TEST_CASE(
    "sprayed packets lose a share until the cable is out of their switch's group, then none") {
    for (const PacketRouting routing :
         {PacketRouting::spray, PacketRouting::random_spray, PacketRouting::adaptive}) {
        Fabric f;
        f.routing = routing;
        f.spec.recovery = Recovery::selective_repeat;
        f.spec.reordering = 64;
        f.down(f.of_path(1), 100, Picoseconds(250 * us));
        Run r(f);
        r.until(109);
        const std::int64_t lost = r.engine.totals().lost_on_links;
        // A quarter of the packets of 9 us, one in 83 ns; and of the acknowledgements of those that had
        // passed it in 6 us. Who looks at the queues sees at once that the cable is down.
        const std::int64_t acks = 18;
        CHECK(lost >= acks);
        if (routing == PacketRouting::adaptive) {
            CHECK(lost < acks + 5);
        } else {
            CHECK(lost > acks + 10);
            CHECK(lost < acks + 40);
        }
        r.until(111);
        const std::int64_t at_once = r.engine.totals().lost_on_links;
        const std::int64_t by_it = r.engine.sent_bytes(f.of_path(1));
        r.until(250);
        CHECK(r.engine.totals().lost_on_links == at_once);
        CHECK(r.engine.sent_bytes(f.of_path(1)) == by_it);
        r.until(280);
        CHECK(r.engine.sent_bytes(f.of_path(1)) > by_it);
        REQUIRE(r.to_end());
        CHECK(r.engine.audit() == "");
    }
}

TEST_CASE("what a switch holds for a cable that goes down is lost, and its senders go on") {
    for (const FlowControl control : {FlowControl::pfc, FlowControl::credits}) {
        // Two NICs onto one: the leaf's port to it has a queue, and pauses or starves those behind it.
        Fabric f;
        for (PacketClass& c : f.spec.classes) c.flow_control = control;
        PacketEngine e(f.network, f.spec);
        MessageFlows messages(f.topology, {});
        messages.send({0, 3, 2000 * 4096});
        messages.send({1, 3, 2000 * 4096});
        messages.send({4, 2, 4000 * 4096});
        std::vector<PacketFlow> flows = messages.take();
        for (const PacketFlow& flow : flows) e.add(flow);
        const LinkId to_nic = flows[0].path.back();
        e.flap(to_nic, Picoseconds(60 * us), Picoseconds(6000 * us));
        e.run(Picoseconds(60 * us) - Picoseconds(1));
        const std::int64_t queued = e.queue_bytes(to_nic, 1) / (4096 + f.spec.header_bytes);
        CHECK(queued > 20);
        e.run(Picoseconds(60 * us));
        CHECK(e.queue_bytes(to_nic, 1) == 0);
        CHECK(e.totals().lost_on_links >= queued);
        e.run(Picoseconds(1000 * us));
        CHECK(e.end(2) != PacketEngine::never);
        CHECK_FALSE(e.paused(flows[0].path[0], 1));
        CHECK(e.audit() == "");
        REQUIRE(e.run(PacketEngine::never));
        CHECK(e.end(0) != PacketEngine::never);
        CHECK(e.totals().lost_lossless == 0);
        CHECK(e.audit() == "");
    }
}

TEST_CASE("bit errors cost a virtual lane no credits") {
    Fabric f;
    for (PacketClass& c : f.spec.classes) c.flow_control = FlowControl::credits;
    f.spec.recovery = Recovery::selective_repeat;
    for (const LinkId l : {f.of_path(0), reverse_link(f.of_path(0))}) {
        f.network.links[l].bit_error_rate = 1e-6;  // 3.3 % of the packets
    }
    Run r(f);
    REQUIRE(r.to_end());
    CHECK(r.engine.totals().lost_on_links > 100);  // more than the lane has room for, 47
    CHECK(r.engine.audit() == "");
}

TEST_CASE("HPCC: a rerouted flow does not compare a hop with another one") {
    Fabric f;
    f.congestion = "hpcc";
    f.spec.retransmission_timeout = Picoseconds(100 * us);  // its window is under way, and lost
    f.down(f.of_path(1), 100);
    Run r(f);
    REQUIRE(r.to_end());
    Fabric smooth;
    smooth.congestion = "hpcc";
    Run s(smooth);
    REQUIRE(s.to_end());
    CHECK(r.engine.end(0) < s.engine.end(0) + Picoseconds(100 * us) + 4 * round_trip);
}
