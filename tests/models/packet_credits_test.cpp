// How a link is held back: pauses that are renewed, InfiniBand's credits, deadlock, turns, headroom shared.

#include <doctest/doctest.h>

#include <algorithm>

#include "models/fabric/packet_deadlock.h"
#include "tests/models/topologies.h"
#include "tests/packets.h"

using namespace railyard;

// ---- pauses that are renewed ----

TEST_CASE("a frozen network costs nothing to keep frozen") {
    const Chain chain(6, gbit(400));
    PacketEngine e(chain.network, {});
    e.add(flow_of(chain.path));
    e.storm(chain.path.back(), 1, {}, PacketEngine::never);
    e.run(Picoseconds(10'000 * us));
    for (const LinkId l : chain.path) CHECK(e.paused(l, 1));
    const std::uint64_t events = e.totals().events;
    CHECK_FALSE(e.run(Picoseconds(30'000'000 * us)));
    CHECK(e.totals().events == events);
    for (const LinkId l : chain.path) {
        CHECK(e.paused(l, 1));
        CHECK(e.paused_time(l, 1) > Picoseconds(29'990'000 * us));
    }
    CHECK(e.audit() == "");
}

TEST_CASE("a frozen flow costs nothing while DCQCN raises its rate") {
    Chain chain(4, gbit(400));
    const LinkId narrow = chain.path[1];
    chain.network.links[narrow].rate = gbit(100);
    chain.network.links[narrow].ecn = {0, 0, 1};
    DcqcnSpec control;
    control.alpha_timer = Picoseconds(us);
    control.reduce_period = Picoseconds(4 * us);
    control.increase_timer = Picoseconds(300 * us);
    control.additive_bits_per_s = 5e6;
    control.min_bits_per_s = 1e8;
    const auto run = [&](Picoseconds until) {
        PacketEngine e(chain.network, {}, dcqcn(control));
        e.add(flow_of(chain.path, 50'000'000));
        e.storm(chain.path.back(), 1, Picoseconds(100 * us), PacketEngine::never);
        CHECK_FALSE(e.run(until));
        CHECK(e.paused(chain.path.back(), 1));
        return e.totals().events;
    };
    CHECK(run(Picoseconds(200'000 * us)) == run(Picoseconds(10'000 * us)));
}

TEST_CASE("a pause whose pauser goes mute runs out with the last frame that it sent") {
    const Chain chain(2, gbit(100));
    const LinkId link = chain.path[1];
    PacketEngine e(chain.network, {});
    e.add(flow_of(chain.path));
    e.storm(link, 1, Picoseconds(10 * us), PacketEngine::never);
    e.run(Picoseconds(400 * us));
    e.mute(link);
    // 64 bytes and 65535 quanta of 512 bits, at 80 ps a byte; renewed twice in 390 us.
    const std::int64_t sent = 10 * us + 64 * 80;
    const std::int64_t length = 65535LL * 64 * 80;
    const std::int64_t over = sent + 2 * (length / 2) + us + length;
    e.run(Picoseconds(over - 1));
    CHECK(e.paused(link, 1));
    CHECK(e.audit() == "");
    e.run(Picoseconds(over));
    CHECK_FALSE(e.paused(link, 1));
    CHECK(e.audit() == "");
    // It wants it paused still, and says so when it can.
    e.unmute(link);
    e.run(Picoseconds(over + 2 * us));
    CHECK(e.paused(link, 1));
    CHECK(e.pauses(link, 1) == 2);
    e.run(Picoseconds(over + 2000 * us));
    CHECK(e.paused(link, 1));
}

// ---- credits ----

namespace {

// InfiniBand: every class has credits, acknowledgements cost nothing.
PacketSpec infiniband() {
    PacketSpec spec;
    spec.classes = {{FlowControl::credits, false, 0}, {FlowControl::credits, false, 1}};
    spec.ack_class = -1;
    return spec;
}

// 65 blocks of 64 bytes.
constexpr std::int64_t full_packet = 4096 + 58;
constexpr std::int64_t full_room = 65 * 64;

void give_buffers(PacketNetwork& network, std::int64_t bytes) {
    for (PacketLink& l : network.links) l.vl_buffer_bytes = bytes;
}

}  // namespace

TEST_CASE("a virtual lane carries its buffer per round trip, and no more than its rate") {
    // 1 km at 5.05 ns a metre.
    const std::int64_t latency = 5'050'000;
    const std::int64_t transfer = full_packet * 20;
    for (const std::int64_t packets : {1, 2, 30, 60, 120, 122, 123, 200}) {
        CAPTURE(packets);
        Chain chain(3, gbit(400), Picoseconds(latency));
        give_buffers(chain.network, packets * full_room);
        PacketEngine e(chain.network, infiniband());
        e.add(flow_of(chain.path));
        e.run(Picoseconds(1000 * us));
        const std::int64_t before = e.received_bytes(0);
        e.run(Picoseconds(11'000 * us));
        const double per_round_trip =
            static_cast<double>(packets) / static_cast<double>(transfer + 2 * latency);
        const double expected = std::min(per_round_trip, 1.0 / static_cast<double>(transfer));
        const double packets_seen = static_cast<double>(e.received_bytes(0) - before) / 4096;
        CHECK(packets_seen == doctest::Approx(expected * 1e10).epsilon(0.005));
        CHECK(e.audit() == "");
        // Room for the cable's there and back, and a packet: 2 L 5.05 ns rate + packet (facts, C.9).
        const double need = 2 * 1000 * 5.05e-9 * 50e9 + full_packet;
        const bool enough = static_cast<double>(packets * full_packet) >= need;
        CHECK((e.pauses(chain.path[0], 1) == 0) == enough);
    }
}

TEST_CASE("a congestion tree grows against the traffic, a hop in buffer / rate less a way") {
    Chain chain(5, gbit(100));
    const std::int64_t packets = 250;
    give_buffers(chain.network, packets * full_room);
    PacketEngine e(chain.network, infiniband());
    e.add(flow_of(chain.path));
    e.storm(chain.path.back(), 1, Picoseconds(100 * us), PacketEngine::never);
    // What arrives after a link's end has stopped is not credited: the sender stops when its whole buffer is
    // out, counted from what it sent a transfer and a microsecond before.
    const double transfer_us = full_packet * 80e-6;
    double stop_us = 100;
    for (std::size_t hop = chain.path.size(); hop-- > 0;) {
        CAPTURE(hop);
        stop_us += static_cast<double>(packets) * transfer_us - transfer_us - 1;
        e.run(Picoseconds(static_cast<std::int64_t>((stop_us - 2 * transfer_us) * us)));
        CHECK_FALSE(e.paused(chain.path[hop], 1));
        e.run(Picoseconds(static_cast<std::int64_t>((stop_us + 2 * transfer_us) * us)));
        CHECK(e.paused(chain.path[hop], 1));
        CHECK(e.audit() == "");
    }
    e.run(Picoseconds(10'000 * us));
    for (std::size_t hop = 0; hop + 1 < chain.path.size(); ++hop) {
        CHECK(e.ingress(chain.path[hop], 1).bytes == packets * full_packet);
    }
    // Nothing moves, nothing happens.
    const std::uint64_t events = e.totals().events;
    e.run(Picoseconds(30'000'000 * us));
    CHECK(e.totals().events == events);
}

TEST_CASE("a NIC that returns credits again lets everything through that it held up") {
    Chain chain(4, gbit(100));
    give_buffers(chain.network, 100 * full_room);
    PacketEngine e(chain.network, infiniband());
    e.add(flow_of(chain.path, 4'000'000));
    e.storm(chain.path.back(), 1, Picoseconds(50 * us), Picoseconds(2000 * us));
    CHECK_FALSE(e.run(Picoseconds(1900 * us)));
    CHECK(e.paused(chain.path.front(), 1));
    for (std::int64_t t = 1999; !e.run(Picoseconds(t * us)); ++t) REQUIRE(e.audit() == "");
    CHECK(e.received_bytes(0) == 4'000'000);
    CHECK(e.totals().retransmitted == 0);
    CHECK(e.totals().pause_frames == 0);
    CHECK(e.audit() == "");
}

TEST_CASE("credits lose nothing in an incast, whatever the buffers, and share it equally") {
    for (const std::int64_t packets : {1, 3, 30}) {
        CAPTURE(packets);
        TwoSwitches network(16'000'000, gbit(400));
        const LinkId down = network.down(network.right);
        std::vector<std::vector<LinkId>> paths;
        for (int i = 0; i < 8; ++i) {
            paths.push_back({network.up(network.left), network.middle, down});
        }
        give_buffers(network, packets * full_room);
        PacketSpec spec = infiniband();
        spec.ack_class = 0;
        PacketEngine e(network, spec);
        for (const auto& path : paths) e.add(flow_of(path, 1'000'000));
        std::int64_t t = 0;
        while (!e.run(Picoseconds(++t * 10 * us))) REQUIRE(e.audit() == "");
        for (std::size_t f = 0; f < 8; ++f) {
            CHECK(e.received_bytes(f) == 1'000'000);
            CHECK(static_cast<double>(e.end(f).count()) ==
                  doctest::Approx(static_cast<double>(e.end(0).count())).epsilon(0.05));
        }
        CHECK(e.totals().lost_lossless == 0);
        CHECK(e.totals().retransmitted == 0);
    }
}

TEST_CASE("a stopped virtual lane does not stop its neighbour on the same link") {
    Chain chain(3, gbit(100));
    give_buffers(chain.network, 100 * full_room);
    PacketEngine e(chain.network, infiniband());
    e.add(flow_of(chain.path, unending, 1));
    e.add(flow_of(chain.path, unending, 0));
    e.storm(chain.path.back(), 0, {}, PacketEngine::never);
    e.run(Picoseconds(1000 * us));
    const std::int64_t before = e.received_bytes(0);
    e.run(Picoseconds(2000 * us));
    CHECK(static_cast<double>(e.received_bytes(0) - before) ==
          doctest::Approx(12.5e9 * 1e-3 * 4096 / full_packet).epsilon(0.01));
    CHECK(e.paused(chain.path[0], 0));
}

TEST_CASE("what heads a queue without credits for its lifetime is dropped, sooner at the edge") {
    Chain chain(3, gbit(100));
    give_buffers(chain.network, 10 * full_room);
    PacketSpec spec = infiniband();
    StandaloneCatalogue own;
    spec.credits = read_credits(own.catalogue);
    const std::int64_t leaf = 4'096'000LL << 16;
    CHECK(spec.credits.leaf_lifetime == Picoseconds(leaf));
    CHECK(spec.credits.lifetime == Picoseconds(4'096'000LL << 18));
    spec.credits.leaf_stall_count = 0;
    PacketEngine e(chain.network, spec);
    e.add(flow_of(chain.path));
    e.storm(chain.path.back(), 1, {}, PacketEngine::never);
    e.run(Picoseconds(1000 * us));
    CHECK(e.queue_bytes(chain.path[2], 1) == 10 * full_packet);
    // The last switch drops one every 0.27 s and takes in another; the first one's head never waits longer.
    for (std::int64_t drops = 0; drops < 8; ++drops) {
        CHECK(e.totals().lost_to_lifetime == drops);
        e.run(Picoseconds((drops + 1) * leaf + 1000 * us));
        CHECK(e.audit() == "");
    }
    // Between switches it is four times as long.
    PacketEngine inner(chain.network, spec);
    inner.add(flow_of(chain.path));
    inner.mute(chain.path[1]);
    inner.run(Picoseconds(4 * leaf - 1000 * us));
    CHECK(inner.totals().lost_to_lifetime == 0);
    inner.run(Picoseconds(4 * leaf + 1000 * us));
    CHECK(inner.totals().lost_to_lifetime == 1);
    CHECK(inner.audit() == "");
}

TEST_CASE("a lane stalls after its seventh lifetime, and what stood behind it goes on for eight") {
    // a and b send over one cable, to a NIC that takes nothing and to one that does.
    TwoSwitches network(16'000'000, gbit(100));
    const LinkId from_a = network.up(network.left);
    const LinkId from_b = network.up(network.left);
    const LinkId to_dead = network.down(network.right);
    const LinkId to_sound = network.down(network.right);
    give_buffers(network, 10 * full_room);
    PacketSpec spec = infiniband();
    StandaloneCatalogue own;
    spec.credits = read_credits(own.catalogue);
    CHECK(spec.credits.stall_count == 7);
    CHECK(spec.credits.leaf_stall_count == 7);
    spec.credits.leaf_lifetime = Picoseconds(4000 * us);

    // Packets that have come through when so many lifetimes, and half of one, are over.
    const auto received = [&](int lifetimes, std::int64_t stall_count) {
        spec.credits.leaf_stall_count = stall_count;
        PacketEngine e(network, spec);
        e.add(flow_of({from_a, network.middle, to_dead}));
        e.add(flow_of({from_b, network.middle, to_sound}));
        e.storm(to_dead, 1, {}, PacketEngine::never);
        e.run(Picoseconds(lifetimes * 4000 * us + 2000 * us));
        CHECK(e.audit() == "");
        CHECK(e.received_bytes(0) == std::int64_t{10} * 4096);  // its buffer's
        return e.received_bytes(1) / 4096;
    };
    // Half the cable's: it is the other half that is thrown away.
    const auto of_lifetimes = [&](double lifetimes) {
        return doctest::Approx(lifetimes * 4e-3 * 12.5e9 / 2 / full_packet).epsilon(0.01);
    };
    CHECK(received(6, 7) < 100);
    CHECK(received(7, 0) < 100);
    CHECK(static_cast<double>(received(7, 7)) == of_lifetimes(0.5));
    CHECK(static_cast<double>(received(15, 7)) == of_lifetimes(8));
    CHECK(static_cast<double>(received(21, 7)) == of_lifetimes(8));
    CHECK(static_cast<double>(received(22, 7)) == of_lifetimes(8.5));
}

// ---- deadlock ----

namespace {

// Three switches in a ring, a NIC at each; every NIC sends to the one two hops on, all the same way round.
struct RingOfThree {
    PlainNetwork network{gbit(100), 200'000};
    std::vector<LinkId> ring;
    std::vector<LinkId> up;  // from the NICs

    RingOfThree() {
        std::vector<VertexId> sw;
        for (int i = 0; i < 3; ++i) sw.push_back(network.add_switch(4'000'000));
        for (std::size_t i = 0; i < 3; ++i) ring.push_back(network.cable(sw[i], sw[(i + 1) % 3]));
        for (const VertexId each : sw) up.push_back(network.up(each));
        give_buffers(network, 100 * full_room);
    }
    std::vector<LinkId> way(std::size_t from) const {
        return {up[from], ring[from], ring[(from + 1) % 3], reverse_link(up[(from + 2) % 3])};
    }
    // Whether each waits for the next one round the ring, whichever comes first.
    bool in_order(const std::vector<LinkId>& cycle) const {
        if (cycle.size() != 3) return false;
        for (std::size_t i = 0; i < 3; ++i) {
            const auto at = std::find(ring.begin(), ring.end(), cycle[i]) - ring.begin();
            if (at == 3 || ring[static_cast<std::size_t>(at + 1) % 3] != cycle[(i + 1) % 3])
                return false;
        }
        return true;
    }
};

PacketSpec with(FlowControl control) {
    PacketSpec spec = infiniband();
    for (PacketClass& c : spec.classes) c.flow_control = control;
    return spec;
}

}  // namespace

TEST_CASE("routes round a ring freeze it for ever, and the ring is named in order") {
    for (const FlowControl control : {FlowControl::pfc, FlowControl::credits}) {
        CAPTURE(control == FlowControl::pfc);
        const RingOfThree r;
        PacketEngine e(r.network, with(control));
        for (std::size_t i = 0; i < 3; ++i) e.add(flow_of(r.way(i)));
        CHECK(PacketWaits(e).deadlock().empty());
        e.run(Picoseconds(20'000 * us));
        CHECK(r.in_order(PacketWaits(e).deadlock()));
        const std::int64_t received =
            e.received_bytes(0) + e.received_bytes(1) + e.received_bytes(2);
        e.run(Picoseconds(1'000'000 * us));
        CHECK(e.received_bytes(0) + e.received_bytes(1) + e.received_bytes(2) == received);
        CHECK(r.in_order(PacketWaits(e).deadlock()));
        CHECK(e.audit() == "");
        // From a NIC one walks into the ring and round it.
        const std::vector<LinkId> chain = PacketWaits(e).pauser_chain(r.up[0], 1);
        REQUIRE(chain.size() == 5);
        CHECK(r.in_order({chain.begin() + 1, chain.end() - 1}));
        CHECK(chain[4] == chain[1]);
    }
}

TEST_CASE("two of the three routes close no cycle: the ring slows down and goes on") {
    for (const FlowControl control : {FlowControl::pfc, FlowControl::credits}) {
        const RingOfThree r;
        PacketEngine e(r.network, with(control));
        for (std::size_t i = 0; i < 2; ++i) e.add(flow_of(r.way(i), 20'000'000));
        for (std::int64_t t = 50; !e.run(Picoseconds(t * us)); t += 50) {
            REQUIRE(PacketWaits(e).deadlock().empty());
        }
        CHECK(e.received_bytes(0) == 20'000'000);
    }
}

TEST_CASE(
    "a tree routed up and down has no deadlock, and a frozen one leads to the NIC that pauses") {
    const Topology topology = built(uniform_topology("fat_tree", 16, 4, gbit(100), 3));
    for (const FlowControl control : {FlowControl::pfc, FlowControl::credits}) {
        CAPTURE(control == FlowControl::pfc);
        PacketNetwork network = PacketNetwork::of(topology, 4'000'000);
        for (PacketLink& l : network.links) {
            l.latency = Picoseconds(us);
            l.headroom_bytes = 200'000;
            l.vl_buffer_bytes = 100 * full_room;
        }
        Router router(topology, {Routing::ecmp});
        PacketEngine e(network, with(control));
        std::vector<std::vector<LinkId>> paths;
        // All to all: every link is loaded, both ways. The sixteenth path is from the second NIC to the
        // first.
        for (VertexId a = 0; a < 16; ++a) {
            for (VertexId b = 0; b < 16; ++b) {
                if (a == b) continue;
                std::vector<Usage> usages;
                router.route(a, b, 0, usages);
                std::vector<LinkId> path;
                for (const Usage& u : usages) path.push_back(u.link);
                paths.push_back(path);
                e.add(flow_of(path));
            }
        }
        const LinkId to_first = paths[15].back();
        e.storm(to_first, 1, Picoseconds(1000 * us), PacketEngine::never);
        int paused = 0;
        for (std::int64_t t = 100; t <= 5000; t += 100) {
            e.run(Picoseconds(t * us));
            REQUIRE(PacketWaits(e).deadlock().empty());
            for (LinkId l = 0; l < network.links.size(); ++l) paused += e.paused(l, 1) ? 1 : 0;
        }
        CHECK(paused > 1000);
        e.run(Picoseconds(100'000 * us));
        int frozen = 0;
        for (LinkId l = 0; l < network.links.size(); ++l) {
            if (!e.paused(l, 1)) continue;
            CAPTURE(l);
            CHECK(PacketWaits(e).pauser_chain(l, 1).back() == to_first);
            ++frozen;
        }
        CHECK(frozen > 16);
        CHECK(e.totals().lost_lossless == 0);
        CHECK(e.audit() == "");
    }
}

TEST_CASE("the chain behind an incast ends at the link that is busy") {
    TwoSwitches network(4'000'000, gbit(100));
    const LinkId middle = network.middle;
    const LinkId down = network.down(network.right);
    const std::vector<LinkId> ups = {network.up(network.left), network.up(network.right)};
    give_buffers(network, 30 * full_room);
    PacketEngine e(network, infiniband());
    e.add(flow_of({ups[0], middle, down}));
    e.add(flow_of({ups[1], down}));
    e.run(Picoseconds(5000 * us));
    for (std::int64_t t = 5000; !e.paused(ups[0], 1) || !e.paused(middle, 1); ++t) {
        REQUIRE(t < 6000);
        e.run(Picoseconds(t * us));
    }
    CHECK(PacketWaits(e).pauser_chain(ups[0], 1) == std::vector<LinkId>{ups[0], middle, down});
}

// ---- when the watchdog looks, and what it throws away ----

namespace {

// Two switches, a NIC that sends to one that storms for ever; and what its watchdogs say.
struct Storm {
    Chain chain{3, gbit(400)};
    PacketSpec spec;

    explicit Storm(WatchdogAction action) {
        spec.watchdog.action = action;
        spec.watchdog.poll = Picoseconds(1000 * us);
        spec.watchdog.detection = spec.watchdog.restoration = Picoseconds(2000 * us);
    }
    LinkId root() const { return chain.path[2]; }
    PacketEngine engine(Picoseconds end = PacketEngine::never) {
        PacketEngine e(chain.network, spec);
        e.add(flow_of(chain.path));
        e.storm(root(), 1, Picoseconds(10 * us), end);
        return e;
    }
};

}  // namespace

TEST_CASE("each switch polls at its own time, two whole polls after the pause began") {
    std::int64_t distinct = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        for (const bool together : {false, true}) {
            Storm storm(WatchdogAction::alert);
            storm.spec.seed = seed;
            storm.spec.watchdog.polls_together = together;
            PacketEngine e = storm.engine();
            std::int64_t first = 0;
            std::int64_t second = 0;
            for (std::int64_t t = 0; t < 4000; t += 10) {
                e.run(Picoseconds(t * us));
                if (first == 0 && e.stormed(storm.chain.path[2], 1)) first = t;
                if (second == 0 && e.stormed(storm.chain.path[1], 1)) second = t;
            }
            if (together) {
                CHECK(first == 3000);  // the first poll has seen 11 us without
                CHECK(second == 3000);
            } else {
                for (const std::int64_t t : {first, second}) {
                    CHECK(t >= 2000);
                    CHECK(t <= 3400);  // the pause spreads in 0.05 to 0.4 ms
                }
                distinct += std::abs(first - second) > 20 ? 1 : 0;
            }
        }
    }
    CHECK(distinct >= 16);
}

TEST_CASE("a watchdog costs nothing while nothing is paused, nor once it has said its word") {
    const auto events = [](WatchdogAction action) {
        Chain chain(3, gbit(400));
        PacketSpec spec;
        spec.watchdog.action = action;
        spec.watchdog.poll = spec.watchdog.detection = Picoseconds(us);
        spec.watchdog.restoration = Picoseconds(us);
        PacketEngine e(chain.network, spec);
        e.add(flow_of(chain.path, 10'000'000));
        REQUIRE(e.run(PacketEngine::never));
        return e.totals().events;
    };
    CHECK(events(WatchdogAction::alert) == events(WatchdogAction::none));
    // Both switches' queues stand still for ever, and the run comes back to say so.
    Storm storm(WatchdogAction::alert);
    PacketEngine e = storm.engine();
    CHECK_FALSE(e.run(PacketEngine::never));
    CHECK(e.totals().storms_detected == 2);
    CHECK(e.now() < Picoseconds(5000 * us));
}

TEST_CASE("a dropping watchdog lets go when there was no pause for its restoration time") {
    Storm storm(WatchdogAction::drop);
    storm.spec.watchdog.polls_together = true;
    storm.spec.retransmission_timeout = Picoseconds(100'000 * us);
    PacketEngine e = storm.engine(Picoseconds(10'500 * us));
    e.run(Picoseconds(3001 * us));
    CHECK(e.stormed(storm.root(), 1));
    // The poll at 11 ms sees the storm's end, those at 12 and 13 ms nothing.
    e.run(Picoseconds(12'999 * us));
    CHECK(e.stormed(storm.root(), 1));
    e.run(Picoseconds(13'001 * us));
    CHECK_FALSE(e.stormed(storm.root(), 1));
    const std::int64_t before = e.received_bytes(0);
    e.run(Picoseconds(110'000 * us));
    CHECK(e.received_bytes(0) > before);
    CHECK(e.audit() == "");
}

TEST_CASE("a watchdog that drops both ways also throws away what the stormed NIC sends") {
    for (const bool arrivals : {false, true}) {
        Storm storm(WatchdogAction::drop);
        storm.spec.watchdog.drops_arrivals = arrivals;
        std::vector<LinkId> back;
        for (std::size_t i = 3; i-- > 0;) back.push_back(reverse_link(storm.chain.path[i]));
        PacketEngine e = storm.engine();
        e.add(flow_of(back));
        e.run(Picoseconds(5000 * us));
        REQUIRE(e.stormed(storm.root(), 1));
        const std::int64_t before = e.received_bytes(1);
        e.run(Picoseconds(6000 * us));
        CHECK((e.received_bytes(1) == before) == arrivals);
        CHECK(e.audit() == "");
    }
}

// ---- turns ----

namespace {

// NICs that send into one link of 400 Gbit/s, each in a class of its own.
struct Funnel : Star {
    PacketSpec spec;

    explicit Funnel(int nics) : Star(nics, 16'000'000, gbit(400), 200'000) { spec.ack_class = -1; }
};

}  // namespace

TEST_CASE("classes share a link by weight, and a strict one goes before them") {
    for (const FlowControl control : {FlowControl::pfc, FlowControl::credits}) {
        Funnel funnel(4);
        give_buffers(funnel.network, 100 * full_room);
        funnel.spec.classes = {{control, false, 0}, {control, false, 1}, {control, false, 3}};
        PacketEngine e(funnel.network, funnel.spec);
        e.add(funnel.flow(0, 5'000'000, 0));
        e.add(funnel.flow(1, unending, 1));
        e.add(funnel.flow(2, unending, 2));
        // One packet of the others may be under way when the strict one begins, and none comes between.
        while (e.end(0) == PacketEngine::never) e.run(e.now() + Picoseconds(us));
        CHECK(e.end(0).count() < 5'000'000 / 4096 * full_packet * 20 + 5 * us);
        e.run(Picoseconds(2000 * us));
        const std::int64_t one = e.received_bytes(1);
        const std::int64_t three = e.received_bytes(2);
        e.run(Picoseconds(4000 * us));
        const auto got_one = static_cast<double>(e.received_bytes(1) - one);
        const auto got_three = static_cast<double>(e.received_bytes(2) - three);
        CHECK(got_three == doctest::Approx(3 * got_one).epsilon(0.001));
        CHECK(got_one + got_three ==
              doctest::Approx(50e9 * 2e-3 * 4096 / full_packet).epsilon(0.001));
        // What one class leaves, the other takes.
        e.storm(funnel.down, 2, e.now(), PacketEngine::never);
        e.run(Picoseconds(4500 * us));
        const std::int64_t alone = e.received_bytes(1);
        e.run(Picoseconds(5500 * us));
        CHECK(static_cast<double>(e.received_bytes(1) - alone) ==
              doctest::Approx(50e9 * 1e-3 * 4096 / full_packet).epsilon(0.001));
        CHECK(e.audit() == "");
    }
}

TEST_CASE("turns are counted in bytes: short packets get as much of the link as long ones") {
    Funnel funnel(2);
    funnel.spec.classes = {
        {FlowControl::none, false, 0}, {FlowControl::pfc, false, 1}, {FlowControl::pfc, false, 1}};
    PacketEngine e(funnel.network, funnel.spec);
    e.add(funnel.flow(0));
    const std::int64_t messages = 2000;
    for (std::int64_t i = 0; i < messages; ++i) {
        e.add(funnel.flow(1, 1000, 2));
    }
    while (e.end(static_cast<std::size_t>(messages)) == PacketEngine::never) {
        e.run(e.now() + Picoseconds(us / 10));
    }
    const double on_wire = static_cast<double>(e.received_bytes(0)) / 4096 * full_packet;
    CHECK(on_wire == doctest::Approx(static_cast<double>(messages) * 1058).epsilon(0.05));
}

// ---- headroom, shared ----

TEST_CASE(
    "an oversubscribed headroom holds while few are hot, loses when it runs out, feeds the pool") {
    // Each hot port needs what is under way there and back: 2 us at 50 GB/s, and two packets and a frame.
    const double need = 100e3 + 2 * full_packet + 64;
    for (const std::int64_t oversubscription : {1, 4, 6}) {
        CAPTURE(oversubscription);
        Funnel funnel(8);
        funnel.spec.buffer.headroom_oversubscription = oversubscription;
        PacketEngine e(funnel.network, funnel.spec);
        for (std::size_t i = 0; i < 4; ++i) e.add(funnel.flow(i));
        e.storm(funnel.down, 1, {}, PacketEngine::never);
        e.run(Picoseconds(2000 * us));
        const double headroom = 9 * 200e3 / static_cast<double>(oversubscription);
        CHECK((e.totals().lost_lossless > 0) == (headroom < 4 * need));
        const double pool = 16e6 - 9 * 2 * 4096 - headroom;
        for (std::size_t i = 0; i < 4; ++i) {
            CHECK(static_cast<double>(e.ingress(funnel.ups[i], 1).bytes - 4096) ==
                  doctest::Approx(0.125 * pool / (1 + 0.125 * 4)).epsilon(0.01));
        }
        CHECK(e.audit() == "");
    }
}
