#pragma once
// What runs of jobs have done, in the books: GPU time by category, steps, contention and by whom, and events.

#include <string>

#include "models/scheduler/world_jobs.h"
#include "models/scheduler/world_repair.h"

namespace railyard {

class RunBooks {
  public:
    // References must outlive it.
    RunBooks(const WorldClock& clock, const WorldRun& run, const WorldCluster& cluster,
             LiveJobs& jobs, WorldOutcome& outcome);

    // What becomes of steps that are done and not saved.
    enum class Unsaved : std::uint8_t { lost, kept, held_in_memory };
    // What a job has done since it was booked last.
    void book_until(JobIndex job, Instant end, Unsaved unsaved, const StateLoss& loss = {});
    // What is in a store stays there.
    void keep_what_lasts(JobIndex job);
    void record(const char* kind, JobIndex job, std::string cause, NodeIndex node) const;

  private:
    const WorldClock& clock_;
    const WorldRun& run_;
    const WorldCluster& cluster_;
    LiveJobs& jobs_;
    WorldOutcome& outcome_;
    bool goes_back_far_;  // numbers may be wrong: what is saved can be lost as well
};

}  // namespace railyard
