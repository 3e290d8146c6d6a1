// Highest priority first, without preemption.

#include "models/scheduler/policy.h"

namespace railyard {

namespace {

bool higher(const ClusterState& cluster, std::size_t a, std::size_t b) {
    const std::int64_t x = cluster.job(a).priority;
    const std::int64_t y = cluster.job(b).priority;
    return x != y ? x > y : submitted_before(cluster, a, b);
}

}  // namespace

std::unique_ptr<QueuePolicy> make_priority(ClusterState& cluster) {
    return make_head_first(cluster, higher);
}

}  // namespace railyard
