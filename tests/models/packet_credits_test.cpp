// How a link is held back: pauses that are renewed, InfiniBand's credits, deadlock, turns, headroom shared.

#include <doctest/doctest.h>

#include "models/fabric/fabric.h"

using namespace railyard;

namespace {

constexpr std::int64_t us = 1'000'000;  // in ps
constexpr Bandwidth gbit(std::int64_t n) {
    return Bandwidth::bits_per_second(n * 1'000'000'000);
}
constexpr std::int64_t endless = std::int64_t{1} << 40;

PacketFlow flow_of(std::vector<LinkId> path, std::int64_t bytes = endless, int traffic_class = 1) {
    PacketFlow f;
    f.path = std::move(path);
    f.bytes = bytes;
    f.traffic_class = traffic_class;
    return f;
}

// NIC - switches - NIC, every link alike.
struct Chain {
    PacketNetwork network;
    std::vector<LinkId> path;

    Chain(std::size_t links, Bandwidth rate, Picoseconds latency = Picoseconds(us)) {
        VertexId at = network.add_nic();
        for (std::size_t i = 0; i < links; ++i) {
            const VertexId next =
                i + 1 == links ? network.add_nic() : network.add_switch(16'000'000);
            path.push_back(network.add_cable(at, next, rate, latency));
            at = next;
        }
        for (PacketLink& l : network.links) l.headroom_bytes = 200'000;
    }
};

}  // namespace

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
    spec.classes = {{FlowControl::credits, false}, {FlowControl::credits, false}};
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
        PacketNetwork network;
        const VertexId left = network.add_switch(16'000'000);
        const VertexId right = network.add_switch(16'000'000);
        const auto cable = [&](VertexId a, VertexId b) {
            return network.add_cable(a, b, gbit(400), Picoseconds(us));
        };
        const LinkId middle = cable(left, right);
        const LinkId down = cable(right, network.add_nic());
        std::vector<std::vector<LinkId>> paths;
        for (int i = 0; i < 8; ++i) paths.push_back({cable(network.add_nic(), left), middle, down});
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
    e.add(flow_of(chain.path, endless, 1));
    e.add(flow_of(chain.path, endless, 0));
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
    Diagnostics diagnostics;
    ValueReader reader{diagnostics, ""};
    Catalogue catalogue{reader, ValueChoice::corrected, nullptr};
    spec.credits = read_credits(catalogue);
    const std::int64_t leaf = 4'096'000LL << 16;
    CHECK(spec.credits.leaf_lifetime == Picoseconds(leaf));
    CHECK(spec.credits.lifetime == Picoseconds(4'096'000LL << 18));
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
