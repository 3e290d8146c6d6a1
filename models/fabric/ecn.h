#pragma once
// ECN marking as a switch's egress queue does it (RED on the instantaneous queue).

#include <cstdint>

#include "sim/rng.h"

namespace railyard {

// p = 0 up to kmin, rising to pmax at kmax, `beyond` above it. kmin <= kmax; equal: a step.
struct EcnProfile {
    std::int64_t kmin_bytes = INT64_MAX;  // INT64_MAX: nothing is marked
    std::int64_t kmax_bytes = INT64_MAX;
    double pmax = 0;
    double beyond = 1;

    bool marks(std::int64_t queue_bytes, RandomStream& random) const {
        if (queue_bytes <= kmin_bytes) return false;
        if (queue_bytes > kmax_bytes) return beyond >= 1 || random.chance(beyond);
        return random.chance(pmax * real(queue_bytes - kmin_bytes) / real(kmax_bytes - kmin_bytes));
    }
};

}  // namespace railyard
