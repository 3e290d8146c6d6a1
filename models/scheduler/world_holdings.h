#pragma once
// Who holds which GPUs: what a job takes or gives back changes the cluster, the books and the job at once.

#include "models/scheduler/world_books.h"
#include "models/scheduler/world_jobs.h"

namespace railyard {

class WorldHoldings {
  public:
    // References must outlive it.
    WorldHoldings(const WorldView& world, WorldCluster& cluster, WorldBooks& books, LiveJobs& jobs,
                  WorldOutcome& outcome)
        : world_(world), cluster_(cluster), books_(books), jobs_(jobs), outcome_(outcome) {}

    // Free GPUs, no more than the job asked for.
    void take(JobIndex job, const Allocation& gpus);
    // All that it holds, on one node or on all.
    void give_back(JobIndex job, NodeIndex node);
    Allocation give_back_all(JobIndex job);

    // What a job that holds GPUs without running has done since its phase began.
    void book_phase(JobIndex job);

  private:
    void give_back(JobIndex job, const Allocation& gpus);

    const WorldView& world_;
    WorldCluster& cluster_;
    WorldBooks& books_;
    LiveJobs& jobs_;
    WorldOutcome& outcome_;
};

}  // namespace railyard
