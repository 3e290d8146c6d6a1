#include "models/scheduler/kueue_quota.h"

#include <algorithm>

#include "sim/check.h"

namespace railyard {

KueueQuotas::KueueQuotas(const FleetSpec& spec) : queues_(spec.kube.queues) {
    for (const KubeQueue& queue : queues_) {
        quota_.push_back(queue.quota);
        used_.emplace_back(spec.groups.size());
        if (!queue.quota.empty()) continue;
        for (const NodeGroup& group : spec.groups) {
            quota_.back().push_back({group.nodes * group.gpus_per_node, {}});
        }
    }
}

void KueueQuotas::use(std::uint32_t queue, std::uint32_t flavor, std::int64_t gpus) {
    used_[queue][flavor] += gpus;
    RY_CHECK(used_[queue][flavor] >= 0);
}

bool KueueQuotas::lends(std::uint32_t queue, std::uint32_t other) const {
    return queue == other ||
           (!queues_[queue].cohort.empty() && queues_[queue].cohort == queues_[other].cohort);
}

bool KueueQuotas::fits(std::uint32_t queue, std::uint32_t flavor, std::int64_t gpus) const {
    if (used_[queue][flavor] + gpus > most(queue, flavor)) return false;
    std::int64_t left = -gpus;
    for (std::uint32_t q = 0; q < queues_.size(); ++q) {
        if (lends(queue, q)) left += nominal(q, flavor) - used_[q][flavor];
    }
    return left >= 0;
}

std::int64_t KueueQuotas::most(std::uint32_t queue, std::uint32_t flavor) const {
    std::int64_t all = 0;
    for (std::uint32_t q = 0; q < queues_.size(); ++q) {
        if (lends(queue, q)) all += nominal(q, flavor);
    }
    const KueueQuota& own = quota_[queue][flavor];
    return own.borrowing_limit ? std::min(all, own.nominal + *own.borrowing_limit) : all;
}

}  // namespace railyard
