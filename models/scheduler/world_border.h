#pragma once
// Jobs that ran before the campaign: they go on where they were, or stop.

#include <map>
#include <vector>

#include "models/scheduler/job_sizes.h"
#include "models/scheduler/power_room.h"
#include "models/scheduler/world_holdings.h"
#include "models/scheduler/world_runs.h"

namespace railyard {

class WorldBorder {
  public:
    class Owner {
      public:
        virtual ~Owner() = default;
        virtual void wait(JobIndex job, Instant since) = 0;
        virtual void close(JobIndex job, JobEnd how) = 0;
    };

    // References must outlive it.
    WorldBorder(WorldView& world, Owner& owner, WorldScheduler& scheduler, const WorldRun& run,
                WorldCluster& cluster, const PowerRoom& power, LiveJobs& jobs, JobSizes& sizes,
                WorldHoldings& holdings, WorldRuns& runs)
        : world_(world),
          owner_(owner),
          scheduler_(scheduler),
          run_(run),
          cluster_(cluster),
          power_(power),
          jobs_(jobs),
          sizes_(sizes),
          holdings_(holdings),
          runs_(runs) {}

    // It has its GPUs from now on, or has stopped.
    void submitted(JobIndex job);
    // As if it had been switched off: what it has not saved is gone.
    void lose_run(JobIndex job);
    // Those that lacked nodes and have not got them go on without these.
    void settle();
    // Those that stopped wait in their old places, before a job with this id.
    void submit_stopped(std::int64_t before);
    bool is_open() const { return !stopped_.empty() || !lacking_.empty(); }

  private:
    bool can_go_on(JobIndex job) const;

    WorldView& world_;
    Owner& owner_;
    WorldScheduler& scheduler_;
    const WorldRun& run_;
    WorldCluster& cluster_;
    const PowerRoom& power_;
    LiveJobs& jobs_;
    JobSizes& sizes_;
    WorldHoldings& holdings_;
    WorldRuns& runs_;
    std::map<std::int64_t, JobIndex> stopped_;  // by id
    std::vector<JobIndex> lacking_;             // that go on, and had fewer nodes than they ask for
};

}  // namespace railyard
