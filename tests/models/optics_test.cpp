#include "models/fabric/optics.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/packets.h"

using namespace railyard;

namespace {

constexpr std::int64_t frame_bytes = 4154;
const Bandwidth line = gbit(400);

// What a flow gets of a link of this latency, of whose bits this part comes wrong after correction.
double share_on_packets(PacketSpec spec, double rate, std::int64_t latency_ps,
                        std::int64_t packets) {
    Chain one({line}, Picoseconds(latency_ps));
    one.network.links[one.path[0]].bit_error_rate = rate;
    spec.retransmission_timeout = Picoseconds(100'000'000);
    PacketEngine e(one.network, spec);
    e.add(one.flow(packets * spec.payload_bytes));
    REQUIRE(e.run(PacketEngine::never));
    return static_cast<double>(packets * frame_bytes * 20) /
           static_cast<double>(e.end(0).count() - 2 * latency_ps);
}

}  // namespace

TEST_CASE("at the limit for receivers, 2.4e-4, correction leaves some 1e-15, and of 1e-8 nothing") {
    // 16 in 5,440 bits of a lost codeword are wrong; a rate here counts lost codewords.
    const double limit = 16 * rate_after_correction(2.4e-4);
    CHECK(limit > 1e-15);
    CHECK(limit < 1e-14);
    CHECK(rate_after_correction(1e-8) < 1e-60);
    CHECK(rate_after_correction(0.5) == doctest::Approx(1.0 / 5440));
}

TEST_CASE("correction's sum is the binomial tail, computed otherwise") {
    for (const double rate : {5e-4, 1e-3, 3e-3}) {
        const double s = 1 - std::pow(1 - rate, 10);
        double sound = 0;
        for (int i = 0; i <= 15; ++i) {
            sound += std::exp(std::lgamma(545) - std::lgamma(i + 1) - std::lgamma(545 - i) +
                              i * std::log(s) + (544 - i) * std::log1p(-s));
        }
        CHECK(rate_after_correction(rate) * 5440 == doctest::Approx(1 - sound).epsilon(1e-6));
    }
}

TEST_CASE("what errors leave of a link is what packets get on it, with retry and without") {
    constexpr std::int64_t packets = 100'000;
    for (const std::int64_t latency : {200'000, 1'000'000}) {
        for (const double rate : {3e-9, 3e-8}) {
            CAPTURE(latency);
            CAPTURE(rate);
            PacketSpec spec;
            spec.ack_class = -1;
            const Picoseconds round_trip(2 * latency);
            const double p = 1 - std::pow(1 - rate, 8 * frame_bytes);
            for (const bool retry : {true, false}) {
                CAPTURE(retry);
                spec.link_retry = {retry, 7};
                const double law = share_left(spec, rate, line, round_trip, round_trip);
                const double w = std::ceil(2.0 * static_cast<double>(latency) / (frame_bytes * 20));
                const double deviation = (1 + w) * std::sqrt(p / packets);
                CHECK(share_on_packets(spec, rate, latency, packets) ==
                      doctest::Approx(law).epsilon(3 * deviation + 0.003));
            }
        }
    }
}
