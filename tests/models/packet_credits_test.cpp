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
