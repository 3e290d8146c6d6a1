#include "models/fabric/link_faults.h"

#include <algorithm>

#include "sim/check.h"

namespace railyard {

namespace {

// -log(1 - x), to the last bits also where x is far below one.
double log_loss(double x) {
    return x < 1e-4 ? x * (1 + x * (0.5 + x * (1.0 / 3 + x / 4))) : -portable_log(1 - x);
}

std::int64_t bits_to_error(double rate, RandomStream& random) {
    return static_cast<std::int64_t>(std::min(random.exponential() / rate, 9e18));
}

}  // namespace

LinkFaults::LinkFaults(double bit_error_rate, RandomStream random)
    : rate_(log_loss(bit_error_rate)), random_(random) {
    RY_CHECK(bit_error_rate >= 0 && bit_error_rate < 1);
    if (rate_ > 0) good_bits_ = bits_to_error(rate_, random_);
}

std::int64_t LinkFaults::up_after(std::int64_t now) const {
    std::int64_t up = now;
    for (const Outage& o : outages_) {
        if (o.down <= now) up = std::max(up, o.up);
    }
    return up;
}

bool LinkFaults::cut(std::int64_t sent, std::int64_t there) const {
    return std::ranges::any_of(outages_,
                               [&](const Outage& o) { return o.down < there && sent < o.up; });
}

// One draw for each wrong bit, none for a packet. What follows a wrong bit is as if nothing had been.
bool LinkFaults::flips(std::int64_t bytes) {
    if (rate_ == 0) return false;
    const std::int64_t bits = 8 * bytes;
    if (good_bits_ >= bits) {
        good_bits_ -= bits;
        return false;
    }
    good_bits_ = bits_to_error(rate_, random_);
    return true;
}

}  // namespace railyard
