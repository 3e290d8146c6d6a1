#include "models/fabric/optics.h"

#include <algorithm>
#include <cmath>

#include "sim/rng.h"

namespace railyard {

namespace {

// 1 - (1 - x)^n.
double any_of_so_many(double x, double n) {
    return x * n < 1e-7 ? x * n : 1 - portable_exp(n * portable_log(1 - x));
}

}  // namespace

Optics read_optics(Catalogue& c, const std::string& name) {
    const auto number = [&](const char* key) { return c.number("optics", name, key); };
    const auto rate = [&](const char* key) { return c.rate("optics", name, key); };
    const auto time = [&](const char* key) { return c.time("optics", name, key); };
    return {name,
            number("dirty_bit_error_rate"),
            rate("dirty_rate"),
            time("dirty_time"),
            rate("flap_rate"),
            time("flap_time"),
            rate("annual_failure_rate"),
            time("repair_time")};
}

double rate_after_correction(double bit_error_rate) {
    constexpr int symbols = 544;
    constexpr int mended = 15;
    constexpr int symbol_bits = 10;
    const double wrong = any_of_so_many(bit_error_rate, symbol_bits);
    // C(n, i) s^i (1 - s)^(n - i), one term from the one before.
    double term = 1 - any_of_so_many(wrong, symbols);
    if (term == 0) return 1.0 / (symbols * symbol_bits);  // each frame has a wrong symbol
    double lost = 0;
    for (int i = 1; i <= symbols; ++i) {
        term *= (symbols - i + 1) * wrong / (i * (1 - wrong));
        if (i > mended) lost += term;
    }
    return std::min(lost, 1.0) / (symbols * symbol_bits);
}

double share_left(const PacketSpec& packets, double rate, Bandwidth line,
                  Picoseconds link_round_trip, Picoseconds network_round_trip) {
    const auto frame = real(packets.payload_bytes + packets.header_bytes);
    const double lost = any_of_so_many(rate, 8 * frame);
    const double frame_ps = frame / line.bytes_per_second() * 1e12;
    const auto frames_in = [&](Picoseconds time) {
        return std::ceil(real(time.count()) / frame_ps);
    };
    if (packets.link_retry.enabled) return 1 / (1 + lost * (1 + frames_in(link_round_trip)));
    const bool all_again = packets.recovery == Recovery::go_back_n;
    return (1 - lost) / (1 + (all_again ? lost * frames_in(network_round_trip) : 0));
}

}  // namespace railyard
