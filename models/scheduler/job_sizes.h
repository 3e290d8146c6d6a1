#pragma once
// The sizes of jobs that go on on fewer of their nodes after a failure, and grow again: README.md, Elastic
// jobs, has the model.

#include "models/scheduler/world_jobs.h"

namespace railyard {

class JobSizes {
  public:
    // References must outlive it.
    JobSizes(const WorldClock& clock, const WorldRun& run, const WorldCluster& cluster,
             LiveJobs& jobs, WorldOutcome& outcome)
        : clock_(clock), run_(run), cluster_(cluster), jobs_(jobs), outcome_(outcome) {}

    // It gathers, and is not whole: how long it waits for the nodes that it lacks, if it can go on without.
    void expect_smaller(JobIndex job);
    // Its sound nodes are enough for some size.
    bool enough(JobIndex job) const;
    // It starts: on all of its nodes, or on as many of the sound ones as whole replicas take.
    void settle(JobIndex job);
    // It runs on fewer nodes than it asked for, and holds enough for more replicas.
    bool could_grow(JobIndex job) const;
    // What it holds beside the nodes that it runs on, until now.
    void book_unused(JobIndex job);

  private:
    Allocation sound_nodes(const LiveJob& job) const;
    // All that it asked for.
    static bool whole(const LiveJob& job, const Allocation& sound);
    const SmallerWorldJob* largest_on(const LiveJob& job, std::size_t nodes) const;

    const WorldClock& clock_;
    const WorldRun& run_;
    const WorldCluster& cluster_;
    LiveJobs& jobs_;
    WorldOutcome& outcome_;
};

}  // namespace railyard
