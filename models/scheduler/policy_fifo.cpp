// First in, first out.

#include "models/scheduler/policy.h"

namespace railyard {

std::unique_ptr<QueuePolicy> make_fifo(ClusterState& cluster) {
    return make_head_first(cluster, submitted_before);
}

}  // namespace railyard
