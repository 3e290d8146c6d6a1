#include <doctest/doctest.h>

#include <cmath>

#include "tests/packets.h"

using namespace railyard;

namespace {

constexpr std::int64_t frame_bytes = 4154;
constexpr std::int64_t frame_ps = frame_bytes * 20;  // at 400 Gbit/s

// Two NICs and a cable of this latency each way, of which this part of the frames comes with wrong bits.
struct BadCable {
    PacketNetwork network;
    LinkId link;
    PacketSpec spec;

    BadCable(double lost, std::int64_t latency, std::int64_t replays) {
        const VertexId a = network.add_nic();
        link = network.add_cable(a, network.add_nic(), gbit(400), Picoseconds(latency));
        network.links[link].bit_error_rate = 1 - std::pow(1 - lost, 1.0 / (8 * frame_bytes));
        spec.ack_class = -1;
        spec.link_retry = {replays > 0, replays};
        spec.retransmission_timeout = Picoseconds(1000 * us);
    }
    PacketFlow flow(std::int64_t packets) const {
        return flow_of({link}, packets * spec.payload_bytes);
    }
};

}  // namespace

TEST_CASE("one frame with wrong bits costs its link its transfer and a round trip, no more") {
    constexpr std::int64_t latency = 2 * us;
    const auto end = [&](double lost, std::uint64_t seed, std::int64_t& replayed) {
        BadCable cable(lost, latency, 7);
        cable.spec.seed = seed;
        PacketEngine e(cable.network, cable.spec);
        e.add(cable.flow(1));
        REQUIRE(e.run(PacketEngine::never));
        replayed = e.totals().replayed;
        return e.end(0).count();
    };
    std::int64_t replayed = 0;
    const std::int64_t sound = end(0, 1, replayed);
    bool any = false;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const std::int64_t took = end(0.3, seed, replayed);
        CHECK(took == sound + replayed * (frame_ps + 2 * latency));
        any = any || replayed > 0;
    }
    CHECK(any);
}

TEST_CASE("of n frames p n are sent again for their own sake, and the transport sees no loss") {
    constexpr std::int64_t packets = 200'000;
    for (const std::int64_t latency : {std::int64_t{100'000}, us, 5 * us}) {
        for (const double p : {1e-4, 1e-3}) {
            CAPTURE(latency);
            CAPTURE(p);
            BadCable cable(p, latency, 7);
            PacketEngine e(cable.network, cable.spec);
            e.add(cable.flow(packets));
            REQUIRE(e.run(PacketEngine::never));
            CHECK(e.received_bytes(0) == packets * cable.spec.payload_bytes);
            CHECK(e.totals().lost_on_links == 0);
            CHECK(e.totals().retransmitted == 0);
            CHECK(e.audit() == "");
            // With each goes what was sent until its sender knew: whole frames of a round trip.
            const double with = 1 + std::ceil(2.0 * static_cast<double>(latency) / frame_ps);
            const double expected = p * packets * with;
            const double deviation = with * std::sqrt(p * packets);
            CHECK(std::abs(static_cast<double>(e.totals().replayed) - expected) <
                  3 * deviation + 0.02 * expected);
            const double line = static_cast<double>(packets * frame_ps);
            const double replayed_ps = static_cast<double>(e.totals().replayed * frame_ps);
            const double waited = static_cast<double>(e.end(0).count()) - line - replayed_ps;
            CHECK(waited > 0);  // the first frame's way, the last one's acknowledgement, and
            CHECK(waited < 6 * static_cast<double>(latency) + frame_ps);  // where it was the last
        }
    }
}

TEST_CASE("on a short cable a frame with wrong bits costs two: itself and the one under way") {
    constexpr std::int64_t packets = 200'000;
    const double p = 2e-3;
    BadCable cable(p, 1, 7);
    PacketEngine e(cable.network, cable.spec);
    e.add(cable.flow(packets));
    REQUIRE(e.run(PacketEngine::never));
    // A frame is over while the next is under way: two are sent again for each error.
    const double goodput =
        static_cast<double>(packets * frame_ps) / static_cast<double>(e.end(0).count());
    CHECK(goodput == doctest::Approx(1 / (1 + 2 * p)).epsilon(6 * std::sqrt(p / packets) + 1e-4));
}

TEST_CASE("a frame that was sent again in vain as often as it may be is lost to the transport") {
    BadCable cable(0.5, us, 1);
    PacketEngine e(cable.network, cable.spec);
    e.add(cable.flow(200));
    REQUIRE(e.run(PacketEngine::never));
    CHECK(e.received_bytes(0) == 200 * cable.spec.payload_bytes);
    CHECK(e.totals().lost_on_links > 0);
    CHECK(e.totals().retransmitted > 0);
}

TEST_CASE("books agree at every event while links with credits send again, and go down") {
    Star star(4, 400'000, gbit(10));
    for (PacketLink& l : star.network.links) {
        l.vl_buffer_bytes = 12'000;
        l.bit_error_rate = 2e-6;
    }
    PacketSpec spec;
    spec.classes = {{FlowControl::credits, false, 0}, {FlowControl::credits, true, 1}};
    spec.link_retry = {true, 7};
    spec.retransmission_timeout = Picoseconds(1000 * us);
    PacketEngine e(star.network, spec);
    for (std::size_t i = 0; i < 4; ++i) e.add(star.flow(i, 300'000));
    e.flap(star.down, Picoseconds(300 * us), Picoseconds(340 * us));
    e.flap(star.ups[1], Picoseconds(500 * us), Picoseconds(600 * us));
    while (!e.run(PacketEngine::never, 1)) REQUIRE(e.audit() == "");
    for (std::size_t i = 0; i < 4; ++i) CHECK(e.received_bytes(i) == 300'000);
    CHECK(e.totals().replayed > 0);
    CHECK(e.totals().lost_on_links > 0);  // to the outages
}
