#include "models/collective/alpha_beta.h"

#include <cmath>

namespace railyard {

namespace {

// n - 1 steps, each moving 1/n of the buffer: one pass around a ring, or one pairwise exchange with
// all.
double one_pass_seconds(std::int64_t n, double bytes, RingLink link) {
    const double ranks = static_cast<double>(n);
    return (ranks - 1) * (link.alpha_s + bytes / ranks / link.bytes_per_s);
}

}  // namespace

double ring_all_gather_seconds(std::int64_t n, double bytes, RingLink link) {
    return one_pass_seconds(n, bytes, link);
}

double ring_reduce_scatter_seconds(std::int64_t n, double bytes, RingLink link) {
    return one_pass_seconds(n, bytes, link);
}

double ring_all_reduce_seconds(std::int64_t n, double bytes, RingLink link) {
    return ring_reduce_scatter_seconds(n, bytes, link) + ring_all_gather_seconds(n, bytes, link);
}

double halving_doubling_all_reduce_seconds(std::int64_t n, double bytes, RingLink link) {
    const double ranks = static_cast<double>(n);
    return 2 * std::log2(ranks) * link.alpha_s + 2 * (ranks - 1) / ranks * bytes / link.bytes_per_s;
}

double pairwise_all_to_all_seconds(std::int64_t n, double bytes, RingLink link) {
    return one_pass_seconds(n, bytes, link);
}

}  // namespace railyard
