#include "models/scheduler/kueue_quota.h"

#include <algorithm>

#include "sim/check.h"

namespace railyard {

KueueQuotas::KueueQuotas(const WorldSpec& spec, const WorldCluster& cluster)
    : queues_(spec.kube.queues), flavors_(spec.groups.size()) {
    for (const KubeQueue& queue : queues_) {
        std::vector<KueueQuota> quota(cluster.devices() * flavors_);
        const auto give = [&](std::size_t device, const std::vector<KueueQuota>& by_flavor) {
            std::copy(by_flavor.begin(), by_flavor.end(), quota.begin() + index({0, device}));
        };
        give(0, queue.quota);
        for (const SliceQuota& of : queue.slices) {
            for (std::size_t d = 1; d < cluster.devices(); ++d) {
                if (cluster.slice_of(d) == of.slice) give(d, of.quota);
            }
        }
        const bool any = !queue.quota.empty() || !queue.slices.empty();
        for (NodeIndex n = 0; !any && n < cluster.nodes().size(); ++n) {
            for (std::size_t d = 0; d < cluster.devices(); ++d) {
                quota[index({cluster.node(n).group, d})].nominal += cluster.capacity(n, d);
            }
        }
        used_.emplace_back(quota.size());
        quota_.push_back(std::move(quota));
    }
}

void KueueQuotas::use(std::uint32_t queue, FlavorResource resource, std::int64_t count) {
    std::int64_t& used = used_[queue][index(resource)];
    used += count;
    RY_CHECK(used >= 0);
}

bool KueueQuotas::lends(std::uint32_t queue, std::uint32_t other) const {
    return queue == other ||
           (!queues_[queue].cohort.empty() && queues_[queue].cohort == queues_[other].cohort);
}

bool KueueQuotas::fits(std::uint32_t queue, FlavorResource resource, std::int64_t count) const {
    if (used(queue, resource) + count > most(queue, resource)) return false;
    std::int64_t left = -count;
    for (std::uint32_t q = 0; q < queues_.size(); ++q) {
        if (lends(queue, q)) left += quota(q, resource).nominal - used(q, resource);
    }
    return left >= 0;
}

bool KueueQuotas::fits_some(std::uint32_t queue, std::size_t device, std::int64_t count) const {
    for (std::uint32_t flavor = 0; flavor < flavors_; ++flavor) {
        if (fits(queue, {flavor, device}, count)) return true;
    }
    return false;
}

std::int64_t KueueQuotas::most(std::uint32_t queue, FlavorResource resource) const {
    std::int64_t all = 0;
    for (std::uint32_t q = 0; q < queues_.size(); ++q) {
        if (lends(queue, q)) all += quota(q, resource).nominal;
    }
    const KueueQuota& own = quota(queue, resource);
    return own.borrowing_limit ? std::min(all, own.nominal + *own.borrowing_limit) : all;
}

}  // namespace railyard
