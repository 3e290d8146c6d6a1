#pragma once
// Quota of Kueue's cluster queues: GPUs of each flavour, lent and borrowed within a cohort.

#include <vector>

#include "models/scheduler/fleet_spec.h"

namespace railyard {

class KueueQuotas {
  public:
    // A queue without quota has all GPUs as its own.
    explicit KueueQuotas(const FleetSpec& spec);

    void use(std::uint32_t queue, std::uint32_t flavor, std::int64_t gpus);  // negative: gives back
    bool fits(std::uint32_t queue, std::uint32_t flavor, std::int64_t gpus) const;
    // Whether so many more would be beyond the queue's own.
    bool borrows(std::uint32_t queue, std::uint32_t flavor, std::int64_t gpus) const {
        return used_[queue][flavor] + gpus > nominal(queue, flavor);
    }
    bool lends(std::uint32_t queue, std::uint32_t other) const;  // of one cohort, or the same
    // Of one workload at most, if nobody else had any.
    std::int64_t most(std::uint32_t queue, std::uint32_t flavor) const;

  private:
    std::int64_t nominal(std::uint32_t queue, std::uint32_t flavor) const {
        return quota_[queue][flavor].nominal;
    }

    const std::vector<KubeQueue>& queues_;
    std::vector<std::vector<KueueQuota>> quota_;  // by queue and flavour
    std::vector<std::vector<std::int64_t>> used_;
};

}  // namespace railyard
