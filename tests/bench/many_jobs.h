#pragma once
// Clusters to measure: many jobs under each scheduler, and a year of failures and repair.

#include <functional>
#include <string>
#include <vector>

#include "models/scheduler/scheduler.h"

namespace railyard {

struct MeasuredWorld {
    WorldSpec spec;
    WorldJobs jobs;
    std::vector<FailureCause> causes;
    Instant end = Instant::max();
};

struct WorldBench {
    std::string name;
    double budget_s = 0;
    std::function<MeasuredWorld(bool smoke)> make;
};
// Under each kind of scheduler 100,000 jobs on 2,000 nodes of 8 GPUs, at 95 % of what these can do, and 6,155
// on 16 nodes at six times that, nearly all of which wait: log-normal run times of 2 h on average, 1 to 512
// GPUs, half of the jobs on one, time limits of 1 to 5 times the run time.
// And a year of 4,096 nodes, 3.8 failures per 1,000 node-days, two days of repair: one job of 4,000 nodes
// that saves every hour.
const std::vector<WorldBench>& world_benches();

// What a job takes that waits: of processes that run so many, or twice as many, for two hours on 16 nodes, by
// what the second holds more at its peak. All are submitted in the first minutes.
double bytes_per_waiting_job(const char* scheduler, std::size_t count);

// Digest of every job's start and end.
std::string run_measured(const MeasuredWorld& world);

}  // namespace railyard
