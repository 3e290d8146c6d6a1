// Flows of one queue pair: in order, and at the pace that those before them have left.

#include <doctest/doctest.h>

#include "tests/packets.h"

using namespace railyard;

namespace {

// Senders of 100 Gbit/s at one switch, one receiver.
struct QueuePairs : Star {
    PacketSpec spec;

    explicit QueuePairs(int senders) : Star(senders, 16'000'000, gbit(100), 100'000) {}
    PacketFlow flow(std::size_t sender, std::int64_t bytes, std::int64_t start_us = 0,
                    std::int64_t continues = -1) const {
        PacketFlow f = Star::flow(sender, bytes);
        f.start = Picoseconds(start_us * us);
        f.continues = continues;
        return f;
    }
};

Picoseconds took(const PacketEngine& e, std::size_t flow, std::int64_t start_us) {
    return e.end(flow) - Picoseconds(start_us * us);
}

}  // namespace

TEST_CASE("flows of one queue pair move as one of all their bytes, in the order of their starts") {
    const QueuePairs star(1);
    PacketEngine one(star.network, star.spec);
    one.add(star.flow(0, 200 * 4096));
    REQUIRE(one.run(PacketEngine::never));
    for (const Recovery recovery : {Recovery::go_back_n, Recovery::selective_repeat}) {
        QueuePairs s = star;
        s.spec.recovery = recovery;
        PacketEngine e(s.network, s.spec);
        e.add(s.flow(0, 100 * 4096));
        e.add(s.flow(0, 60 * 4096, 20, 0));
        e.add(s.flow(0, 40 * 4096, 10, 0));
        e.run(Picoseconds(25 * us));
        CHECK_FALSE(e.begun(1));  // behind both others
        CHECK(e.received_bytes(1) == 0);
        REQUIRE(e.run(PacketEngine::never));
        CHECK(e.end(1) == one.end(0));
        CHECK(e.end(0) < e.end(2));
        CHECK(e.end(2) < e.end(1));
        CHECK(e.received_bytes(0) == 100 * 4096);
        CHECK(e.received_bytes(2) == 40 * 4096);
        CHECK(e.audit() == "");
    }
}

TEST_CASE("the last packet of each flow has its own size, and is acknowledged at once") {
    QueuePairs star(1);
    star.spec.ack_every = 64;
    PacketEngine e(star.network, star.spec);
    e.add(star.flow(0, 3 * 4096 + 100));
    e.add(star.flow(0, 1000, 0, 0));
    e.add(star.flow(0, 4096, 0, 0));
    REQUIRE(e.run(PacketEngine::never));
    CHECK(e.received_bytes(0) == 3 * 4096 + 100);
    CHECK(e.received_bytes(1) == 1000);
    CHECK(e.received_bytes(2) == 4096);
    const std::int64_t acks = 3;
    CHECK(e.totals().ack_hops == 2 * acks);
    CHECK(e.sent_bytes(star.down) == 3 * 4096 + 100 + 1000 + 4096 + 6 * star.spec.header_bytes);
}

TEST_CASE("DCQCN: the next flow goes on at the cut rate, and idle time raises it again") {
    // Two senders meet for a while; then one of them sends 100 packets, alone.
    const auto next_takes = [](bool continues, std::int64_t start_us) {
        QueuePairs star(2);
        for (PacketLink& l : star.network.links) l.ecn = {20'000, 80'000, 0.5};
        star.spec.cnp_interval = Picoseconds(50 * us);
        DcqcnSpec dcqcn_spec;
        dcqcn_spec.alpha_timer = Picoseconds(55 * us);
        dcqcn_spec.increase_timer = Picoseconds(2000 * us);
        dcqcn_spec.additive_bits_per_s = 1e9;
        dcqcn_spec.min_bits_per_s = 100e6;
        PacketEngine e(star.network, star.spec, dcqcn(dcqcn_spec));
        e.add(star.flow(0, 1'000'000));
        e.add(star.flow(1, 1'000'000));
        e.add(star.flow(0, 100 * 4096, start_us, continues ? 0 : -1));
        REQUIRE(e.run(PacketEngine::never));
        REQUIRE(std::max(e.end(0), e.end(1)) < Picoseconds(800 * us));
        return took(e, 2, start_us);
    };
    const Picoseconds fresh = next_takes(false, 1000);
    CHECK(next_takes(true, 1000) > 3 * fresh / 2);
    CHECK(next_takes(true, 5000) < next_takes(true, 1000));
    // Its target is line rate at last: each timer halves what is missing to it and then adds 1 Gbit/s.
    CHECK(next_takes(true, 400'000) == fresh);
}

TEST_CASE("TCP: the window outlives a flow, but not idle time beyond a timeout") {
    // Ten segments a round trip at first, twice as many in each later one.
    const auto second_takes = [](std::int64_t start_us) {
        QueuePairs star(1);
        star.spec.recovery = Recovery::selective_repeat;
        star.spec.reordering = 3;
        star.network.links[star.ups[0]].latency = Picoseconds(100 * us);
        TcpSpec spec;
        spec.stream_bits_per_s = 100e9;
        spec.timeout_min = Picoseconds(200'000 * us);
        spec.timeout_max = Picoseconds(120'000'000 * us);
        spec.first_timeout = Picoseconds(1'000'000 * us);
        PacketEngine e(star.network, star.spec, tcp(spec));
        e.add(star.flow(0, 150 * 4096));
        e.add(star.flow(0, 70 * 4096, start_us, 0));
        REQUIRE(e.run(PacketEngine::never));
        REQUIRE(e.end(0) < Picoseconds(1000 * us));
        return took(e, 1, start_us);
    };
    const Picoseconds round_trip(104 * us);
    CHECK(second_takes(1000) < round_trip + Picoseconds(30 * us));  // 70 segments of 0.33 us
    CHECK(second_takes(1'000'000) > 3 * round_trip);                // 10, 20, 40
}

TEST_CASE("what a flow has lost at its end, the next one of its queue pair shows: no timeout") {
    const auto run = [](bool continues) {
        QueuePairs star(1);
        star.spec.retransmission_timeout = Picoseconds(5000 * us);
        PacketEngine e(star.network, star.spec);
        e.add(star.flow(0, 300 * 4096));
        e.add(star.flow(0, 100 * 4096, 120, continues ? 0 : -1));
        e.flap(star.down, Picoseconds(98 * us), Picoseconds(110 * us));
        REQUIRE(e.run(PacketEngine::never));
        CHECK(e.totals().lost_on_links > 0);
        return e.totals().timeouts;
    };
    CHECK(run(true) == 0);
    CHECK(run(false) == 1);
}

TEST_CASE(
    "with its queue pair fails what it holds, what starts on it later, and what waits for that") {
    QueuePairs star(1);
    star.spec.retransmission_timeout = Picoseconds(100 * us);
    star.spec.retries = 1;
    PacketEngine e(star.network, star.spec);
    e.add(star.flow(0, 4096));
    e.add(star.flow(0, 4096, 10, 0));
    e.add(star.flow(0, 4096, 1000, 0));
    PacketFlow waits = star.flow(0, 4096);
    waits.after = 2;
    e.add(waits);
    e.flap(star.down, {}, PacketEngine::never);
    REQUIRE(e.run(PacketEngine::never));
    CHECK(e.failed_at(0) == Picoseconds(200 * us));
    CHECK(e.failed_at(1) == Picoseconds(200 * us));
    CHECK(e.failed_at(2) == Picoseconds(1000 * us));
    CHECK(e.failed(3));
}

TEST_CASE("receiver window: a queue pair that was idle asks for a grant again") {
    QueuePairs star(3);
    ReceiverWindowSpec spec;
    spec.grant_bytes = 8 * 4096;
    spec.grants = 1;
    PacketEngine e(star.network, star.spec, receiver_window(spec));
    std::size_t flows = 0;
    for (std::size_t sender = 0; sender < 3; ++sender) {
        for (std::int64_t piece = 0; piece < 10; ++piece) {
            const auto first = static_cast<std::int64_t>(10 * sender);
            e.add(star.flow(sender, 20 * 4096 + 1000 * piece, 40 * piece, piece > 0 ? first : -1));
            ++flows;
        }
    }
    REQUIRE(e.run(PacketEngine::never));
    for (std::size_t f = 0; f < flows; ++f) CHECK(e.end(f) != PacketEngine::never);
    CHECK(e.queue_bytes_max(star.down, 1) <= 9 * 4154);
}

TEST_CASE("a flow that is paused before its first packet has no timeout: nothing can move it") {
    QueuePairs star(1);
    star.spec.retransmission_timeout = Picoseconds(100 * us);
    PacketEngine e(star.network, star.spec);
    e.add(star.flow(0, 4096, 10));
    e.storm(star.ups[0], 1, {}, PacketEngine::never);
    CHECK_FALSE(e.stuck());
    CHECK_FALSE(e.run(Picoseconds(1000 * us)));
    CHECK(e.stuck());
    CHECK_FALSE(e.failed(0));
}
