#pragma once
// Textbook times of collectives: every step costs a latency and its bytes over a bandwidth.

#include <cmath>
#include <cstdint>

namespace railyard {

// One hop of a ring: `alpha_s` seconds per step, `bytes_per_s` that one rank sends.
struct RingLink {
    double alpha_s = 0;
    double bytes_per_s = 0;
};

// Seconds, contention-free, over n >= 1 ranks (0 for one rank). `bytes` is the size as nccl-tests counts it:
// all-reduce the buffer, all-gather the output, reduce-scatter the input, all-to-all each rank's buffer.

// n - 1 steps, each moving 1/n of the buffer: one pass around a ring, or a pairwise exchange with all.
inline double one_pass_seconds(std::int64_t n, double bytes, RingLink link) {
    const double ranks = static_cast<double>(n);
    return (ranks - 1) * (link.alpha_s + bytes / ranks / link.bytes_per_s);
}

// A reduce-scatter and an all-gather.
inline double ring_all_reduce_seconds(std::int64_t n, double bytes, RingLink link) {
    return 2 * one_pass_seconds(n, bytes, link);
}

inline double halving_doubling_all_reduce_seconds(std::int64_t n, double bytes, RingLink link) {
    const double ranks = static_cast<double>(n);
    return 2 * std::log2(ranks) * link.alpha_s + 2 * (ranks - 1) / ranks * bytes / link.bytes_per_s;
}

}  // namespace railyard
