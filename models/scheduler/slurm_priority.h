#pragma once
// Slurm's multifactor priority, as of the last multiple of its period.

#include <vector>

#include "models/scheduler/world_scheduler.h"

namespace railyard {

// What accounts have used, decayed: u(t) = sum of GPU time x 2^(-age / half-life), taken over whole periods.
class SlurmUsage {
  public:
    SlurmUsage(std::size_t accounts, const SlurmPriority& rules);

    void change_rate(std::uint32_t account, std::int64_t gpus, Instant now);  // by so many GPUs
    // GPU-seconds as of the last multiple of the period up to `now`.
    double usage(std::uint32_t account, Instant now);

  private:
    struct Account {
        double decayed = 0;  // GPU-s, as of the last multiple
        double fresh = 0;    // GPU-s since
        std::int64_t gpus = 0;
        Instant until{};  // what is counted
    };
    void bring_up(Account& account, Instant now);

    Duration period_;
    double decay_exponent_;  // of a period
    double decay_;
    std::vector<Account> accounts_;
};

class SlurmPriorities {
  public:
    explicit SlurmPriorities(const WorldView& world);

    void runs(JobIndex job);  // from now on
    void stops(JobIndex job);
    // Whether waiting makes a difference between jobs, or usage does: whether an order may change by itself.
    bool change() const { return rules_.age > 0 || rules_.fair_share > 0; }
    Instant as_of(Instant now) const;
    // Slurm's sum of weights x factors. Call refresh() first, at any instant of the same period.
    std::int64_t priority(JobIndex job, Instant now) const;
    void refresh(Instant now);
    // Fair tree over one level of accounts: 1 for the account that is furthest below its share, 1/n for the
    // furthest above; equal for equals.
    double fair_share(std::uint32_t account) const { return fair_share_[account]; }

  private:
    const WorldView& world_;
    const SlurmPriority& rules_;
    SlurmUsage usage_;
    std::vector<double> fair_share_;
    std::vector<double> partition_factor_;
    std::vector<double> qos_factor_;
    double nodes_ = 0;
    double gpus_ = 0;
};

}  // namespace railyard
