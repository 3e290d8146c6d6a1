#pragma once
// How long a collective takes when nothing else uses its links: the algorithm and protocol that NCCL
// would choose (tuner.h), at the speed that nccl-tests measures. README.md has the equations.

#include <cstdint>
#include <optional>

#include "models/collective/algorithm.h"
#include "models/collective/communicator.h"
#include "models/collective/tuner.h"

namespace railyard {

struct CollectiveCost {
    Choice choice;
    std::int64_t channels = 0;
    double latency_s = 0;    // of the smallest message
    double bytes_per_s = 0;  // bytes / time that very large messages approach
    double seconds = 0;
};

// `bytes` is the size as nccl-tests counts it: all_gather the output, reduce_scatter the input,
// all others each rank's buffer. Nothing costs nothing: no bytes, or one rank, is 0 seconds, with
// what would be chosen for a small message.
CollectiveCost collective_cost(const Communicator& communicator, Collective collective,
                               double bytes);

// The cost with this algorithm and protocol; nullopt when they are not available.
std::optional<CollectiveCost> collective_cost(const Communicator& communicator,
                                              Collective collective, double bytes, Choice choice);

// The seconds of the first, a few hundred nanoseconds a call.
inline double seconds(Collective collective, const Communicator& communicator, double bytes) {
    return collective_cost(communicator, collective, bytes).seconds;
}

}  // namespace railyard
