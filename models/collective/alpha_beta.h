#pragma once
// Times of collectives by alpha-beta: every step costs a latency and its bytes over a bandwidth.

#include <cstdint>

namespace railyard {

// One hop of a ring: `alpha_s` seconds per step, `bytes_per_s` that one rank sends.
struct RingLink {
    double alpha_s = 0;
    double bytes_per_s = 0;
};

// Seconds, contention-free, over n >= 1 ranks (0 for one rank). `bytes` is the size as nccl-tests
// counts it: all-reduce the buffer, all-gather the output, reduce-scatter the input.
double ring_all_reduce_seconds(std::int64_t n, double bytes, RingLink link);
double ring_all_gather_seconds(std::int64_t n, double bytes, RingLink link);
double ring_reduce_scatter_seconds(std::int64_t n, double bytes, RingLink link);
double halving_doubling_all_reduce_seconds(std::int64_t n, double bytes, RingLink link);
// `bytes`: each rank's buffer, of which it keeps 1/n.
double pairwise_all_to_all_seconds(std::int64_t n, double bytes, RingLink link);

}  // namespace railyard
