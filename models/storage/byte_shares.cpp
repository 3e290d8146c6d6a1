#include "models/storage/byte_shares.h"

#include <algorithm>
#include <cmath>

#include "sim/check.h"

namespace railyard {

double ByteShares::Limit::level() const {
    return rising > 0 ? std::max(0.0, free) / rising : infinity;
}

void ByteShares::add(const Claim& claim) {
    claims_.push_back(claim);
    for (std::size_t i = 0; i < claim.limits.size(); ++i) {
        Limit& limit = limits_[claim.limits[i]];
        limit.rising += claim.weight * claim.use[i];
        limit.several |= limit.client != SIZE_MAX && limit.client != claim.client;
        limit.client = claim.client;
    }
}

double ByteShares::next_level(const std::vector<Claim*>& rising) const {
    double level = infinity;
    for (const Limit& limit : limits_) level = std::min(level, limit.level());
    for (const Claim* each : rising) level = std::min(level, real(each->cap) / each->weight);
    return level;
}

bool ByteShares::settle(Claim& claim, double level) const {
    if (real(claim.cap) / claim.weight <= level) {
        claim.rate = claim.cap;
        claim.wall = claim.cap_wall;
        return true;
    }
    const auto full = std::ranges::find_if(
        claim.limits, [&](std::size_t l) { return limits_[l].level() <= level; });
    if (full == claim.limits.end()) return false;
    claim.rate = std::llround(level * claim.weight);
    const Limit& limit = limits_[*full];
    claim.wall = limit.several ? Wall::neighbours : limit.wall;
    return true;
}

void ByteShares::solve() {
    std::vector<Claim*> rising;
    for (Claim& claim : claims_) rising.push_back(&claim);
    while (!rising.empty()) {
        const double level = next_level(rising);
        std::vector<Claim*> still;
        std::vector<Claim*> settled;
        for (Claim* each : rising) (settle(*each, level) ? settled : still).push_back(each);
        RY_CHECK(!settled.empty());
        for (const Claim* each : settled) {
            for (std::size_t i = 0; i < each->limits.size(); ++i) {
                limits_[each->limits[i]].free -= real(each->rate) * each->use[i];
            }
        }
        // Summed anew: what rounding leaves of a limit that nobody rises on would bound the others.
        for (Limit& limit : limits_) limit.rising = 0;
        for (const Claim* each : still) {
            for (std::size_t i = 0; i < each->limits.size(); ++i) {
                limits_[each->limits[i]].rising += each->weight * each->use[i];
            }
        }
        rising = std::move(still);
    }
}

}  // namespace railyard
