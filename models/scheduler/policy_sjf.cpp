// Shortest job first, by what is expected of it.

#include "models/scheduler/policy.h"

namespace railyard {

namespace {

bool shorter(const ClusterState& cluster, std::size_t a, std::size_t b) {
    const Duration x = cluster.expected(a);
    const Duration y = cluster.expected(b);
    return x != y ? x < y : submitted_before(cluster, a, b);
}

}  // namespace

std::unique_ptr<QueuePolicy> make_sjf(ClusterState& cluster) {
    return make_head_first(cluster, shorter);
}

}  // namespace railyard
