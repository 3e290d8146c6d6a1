#pragma once
// Quota of Kueue's cluster queues: GPUs, or slices of a profile, of each flavour, lent and borrowed within a
// cohort.

#include <vector>

#include "models/scheduler/world_cluster.h"

namespace railyard {

// A resource (a device of the cluster) of a flavour (a group of nodes), as Kueue calls it.
struct FlavorResource {
    std::uint32_t flavor = 0;
    std::size_t device = 0;
};

class KueueQuotas {
  public:
    // A queue without quota has all there is as its own; one with some has none of what it doesn't name.
    KueueQuotas(const WorldSpec& spec, const WorldCluster& cluster);

    // Negative: gives back.
    void use(std::uint32_t queue, FlavorResource resource, std::int64_t count);
    bool fits(std::uint32_t queue, FlavorResource resource, std::int64_t count) const;
    bool fits_some(std::uint32_t queue, std::size_t device, std::int64_t count) const;  // flavour
    // Whether so many more would be beyond the queue's own.
    bool borrows(std::uint32_t queue, FlavorResource resource, std::int64_t count) const {
        return used(queue, resource) + count > quota(queue, resource).nominal;
    }
    bool lends(std::uint32_t queue, std::uint32_t other) const;  // of one cohort, or the same
    // The most that one workload can have, if nobody else had any.
    std::int64_t most(std::uint32_t queue, FlavorResource resource) const;

  private:
    std::size_t index(FlavorResource r) const { return r.device * flavors_ + r.flavor; }
    const KueueQuota& quota(std::uint32_t queue, FlavorResource r) const {
        return quota_[queue][index(r)];
    }
    std::int64_t used(std::uint32_t queue, FlavorResource r) const {
        return used_[queue][index(r)];
    }

    const std::vector<KubeQueue>& queues_;
    std::size_t flavors_;
    std::vector<std::vector<KueueQuota>> quota_;  // by queue, then by index()
    std::vector<std::vector<std::int64_t>> used_;
};

}  // namespace railyard
