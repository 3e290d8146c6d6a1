#pragma once
// The jobs that a waiting job may preempt under Slurm (PreemptType=preempt/qos), and what becomes of them.

#include <map>
#include <set>
#include <vector>

#include "models/scheduler/world_scheduler.h"

namespace railyard {

class SlurmPreemption {
  public:
    explicit SlurmPreemption(WorldView& world)
        : world_(world), running_(world.spec().slurm.qos.size()) {}

    void runs(JobIndex job) { running_[world_.job(job).qos].push_back(job); }
    void left(JobIndex job);
    // Fewest running jobs, of least priority and of these the youngest, whose GPUs (or slices of the same
    // profile) and the free ones would do for `job` now; none when it may displace nobody, or that would not
    // help.
    std::vector<JobIndex> victims(JobIndex job, const NodeSet& allowed) const;
    // Displaces it for `job`, once its grace time is over. True when it is gone already.
    bool displace(JobIndex victim, JobIndex job);
    // Displaces those whose time has come. Returns whom that is done for.
    std::vector<JobIndex> schedule();
    bool displacing(JobIndex victim) const { return leaving_.contains(victim); }
    bool any_leaving() const { return !leaving_.empty(); }

  private:
    const SlurmQos& qos(JobIndex job) const;
    bool may_be_displaced(JobIndex victim) const;
    bool remove(JobIndex victim, JobIndex job);

    WorldView& world_;
    std::vector<std::vector<JobIndex>> running_;  // by QOS
    struct Leaving {
        JobIndex for_whom = no_world_job;
        Instant at{};
    };
    std::map<JobIndex, Leaving> leaving_;  // in their grace time
    std::set<std::pair<Instant, JobIndex>> grace_ends_;
};

}  // namespace railyard
