#include <doctest/doctest.h>

#include <set>

#include "models/fabric/fabric.h"
#include "models/fabric/selective_repeat.h"
#include "sim/rng.h"

using namespace railyard;

namespace {

constexpr std::int64_t us = 1'000'000;  // in ps
constexpr Bandwidth gbit(std::int64_t n) {
    return Bandwidth::bits_per_second(n * 1'000'000'000);
}

// N senders at one switch, one receiver.
struct Star {
    PacketNetwork network;
    LinkId down;
    std::vector<LinkId> ups;

    Star(int senders, std::int64_t buffer_bytes, Bandwidth rate) {
        const VertexId sw = network.add_switch(buffer_bytes);
        down = network.add_cable(sw, network.add_nic(), rate, Picoseconds(us));
        for (int i = 0; i < senders; ++i) {
            ups.push_back(network.add_cable(network.add_nic(), sw, rate, Picoseconds(us)));
        }
    }
    PacketFlow flow(std::size_t sender, std::int64_t bytes) const {
        PacketFlow f;
        f.path = {ups[sender], down};
        f.bytes = bytes;
        return f;
    }
};

}  // namespace

// ---- selective repeat ----

TEST_CASE("a packet is lost when one sent so many places later has come, and no sooner") {
    SelectiveSender sender(64, 3);
    CHECK(sender.acknowledged(1, 0, 10) == 0);
    CHECK(sender.acknowledged(1, 2, 10) == 0);  // 1 is missing
    CHECK(sender.acknowledged(1, 3, 10) == 0);
    CHECK(sender.under_way(10) == 7);
    CHECK(sender.acknowledged(1, 4, 10) == 1);
    CHECK(sender.first_lost() == 1);
    CHECK(sender.under_way(10) == 5);
    CHECK(sender.acknowledged(1, 6, 10) == 0);  // 5 may still come
    sender.send_again(1);
    CHECK_FALSE(sender.has_lost());
    CHECK(sender.acknowledged(5, 1, 10) == 0);
    CHECK(sender.under_way(10) == 4);  // 5, 7, 8, 9
}

TEST_CASE("a packet that comes after all is not sent again") {
    SelectiveSender sender(64, 1);
    CHECK(sender.acknowledged(0, 1, 10) == 1);
    CHECK(sender.acknowledged(2, 0, 10) == 0);
    CHECK_FALSE(sender.has_lost());
}

TEST_CASE("what was sent again is lost again when something sent after it has come") {
    SelectiveSender sender(64, 1);
    CHECK(sender.acknowledged(0, 1, 10) == 1);
    sender.send_again(0);
    for (std::uint32_t n = 2; n < 10; ++n) CHECK(sender.acknowledged(0, n, 15) == 0);
    CHECK(sender.acknowledged(0, 10, 15) == 1);  // sent after packet 0 was sent again
}

TEST_CASE("selective repeat brings everything across, whatever is lost or overtaken") {
    // Both ends without an engine. On the line a packet may be overtaken by those sent up to
    // `reordering - 1` places later.
    for (const std::uint32_t reordering : {1U, 8U}) {
        for (const double loss : {0.0, 0.02, 0.3}) {
            CAPTURE(reordering);
            CAPTURE(loss);
            constexpr std::uint32_t packets = 20'000;
            constexpr std::uint32_t window = 64;
            RandomStream random(1, reordering, "test/line");
            SelectiveSender sender(window, reordering);
            SelectiveReceiver receiver(window);
            std::set<std::pair<std::uint64_t, std::uint32_t>> line;  // place in it, packet
            std::uint64_t place = 0;
            std::uint32_t expected = 0;
            std::uint32_t acknowledged = 0;
            std::uint32_t sent = 0;
            std::uint32_t came = 0;
            int timeouts = 0;
            int repeated = 0;
            while (acknowledged < packets) {
                while (sender.under_way(sent) < 40) {
                    std::uint32_t next = sent;
                    if (sender.has_lost()) {
                        next = sender.first_lost();
                        sender.send_again(next);
                        ++repeated;
                    } else if (sent == packets || sent - acknowledged == window) {
                        break;
                    } else {
                        ++sent;
                    }
                    ++place;
                    if (!random.chance(loss)) line.insert({place + random.below(reordering), next});
                }
                if (line.empty()) {
                    sender.time_out(sent);
                    ++timeouts;
                    continue;
                }
                const std::uint32_t number = line.begin()->second;
                line.erase(line.begin());
                if (receiver.take(number, expected)) ++came;
                if (random.chance(loss)) continue;  // the acknowledgement
                acknowledged = std::max(acknowledged, expected);
                sender.acknowledged(expected, number, sent);
            }
            CHECK(came == packets);
            CHECK(expected == packets);
            CHECK_FALSE(sender.has_lost());
            if (loss == 0) CHECK(repeated == 0);
            if (loss == 0) CHECK(timeouts == 0);
            // Each loss, and no more again for acknowledgements that were lost.
            if (loss == 0.02) CHECK(repeated < 2 * packets * loss * (1 + loss));
            // Eight are lost twice: half of them with the window shut, so that nothing follows.
            if (loss == 0.02) CHECK(timeouts <= 8);
        }
    }
}

TEST_CASE("selective repeat sends again what the switch lost, go-back-N all that followed it") {
    const auto run = [](Recovery recovery) {
        const Star star(2, 400'000, gbit(100));
        PacketSpec spec;
        spec.classes[1].lossless = false;
        spec.recovery = recovery;
        spec.retransmission_timeout = Picoseconds(1000 * us);
        PacketEngine e(star.network, spec);
        for (std::size_t i = 0; i < 2; ++i) e.add(star.flow(i, 4'000'000));
        REQUIRE(e.run(PacketEngine::never));
        for (std::size_t f = 0; f < 2; ++f) CHECK(e.received_bytes(f) == 4'000'000);
        CHECK(e.audit() == "");
        CHECK(e.totals().lost_lossy > 0);
        return e.totals();
    };
    const auto selective = run(Recovery::selective_repeat);
    CHECK(selective.retransmitted == selective.lost_lossy);
    const auto go_back = run(Recovery::go_back_n);
    CHECK(go_back.retransmitted > 20 * selective.retransmitted);
}
