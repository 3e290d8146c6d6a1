#pragma once
// The jobs that a waiting job may preempt under Slurm (PreemptType=preempt/qos), and what becomes of them.

#include <algorithm>
#include <functional>
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
    bool may_displace(JobIndex job, JobIndex victim) const {
        const std::vector<std::uint32_t>& theirs = qos(job).preempts;
        return std::ranges::find(theirs, world_.job(victim).qos) != theirs.end();
    }
    // Whether a job's pods may be where these nodes have room for a full one and for its last, smaller one;
    // none: wherever there is room.
    using Suits = std::function<bool(const NodeSet& full, const NodeSet& rest)>;
    // Fewest running jobs, of least priority and of these the youngest, whose GPUs (or slices of the same
    // profile) and the free ones would do for `job` now, where they are; none when it may displace nobody,
    // or that would not help.
    std::vector<JobIndex> victims(JobIndex job, const NodeSet& allowed, const Suits& suits) const;
    // Displaces it for `job`, once its grace time is over. True when it is gone already.
    bool displace(JobIndex victim, JobIndex job);
    // Displaces those whose time has come. Returns whom that is done for, and for whom all have left by now:
    // they come first.
    std::vector<JobIndex> schedule();
    // Has left for one that still waits for others to leave, and doesn't come back before that.
    bool makes_way(JobIndex victim) const { return made_way_.contains(victim); }
    void make_way(JobIndex victim, JobIndex job) { made_way_[victim] = job; }
    bool displacing(JobIndex victim) const { return leaving_.contains(victim); }
    bool any_leaving_for(JobIndex job) const {
        return std::ranges::any_of(leaving_,
                                   [job](const auto& each) { return each.second.for_whom == job; });
    }

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
    std::map<JobIndex, JobIndex> made_way_;  // by victim that has left: for whom
};

}  // namespace railyard
