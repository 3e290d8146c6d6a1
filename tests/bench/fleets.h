#pragma once
// Fleets to measure: many jobs under Slurm, and a year of failures and repair.

#include <string>

#include "models/scheduler/scheduler.h"

namespace railyard {

struct MeasuredFleet {
    FleetSpec spec;
    FleetJobs jobs;
    std::vector<FailureCause> causes;
    Instant end = Instant::max();
};

// So many jobs on 2,000 nodes of 8 GPUs at 95 % of what these can do: log-normal run times of 2 h on average,
// 1 to 512 GPUs, half of the jobs on one, time limits of 1 to 5 times the run time.
MeasuredFleet busy_fleet(std::size_t jobs);

// A year of 4,096 nodes, 3.8 failures per 1,000 node-days, two days of repair: one job of 4,000 nodes that
// saves every hour.
MeasuredFleet year_of_failures();

// Digest of every job's start and end.
std::string run_measured(const MeasuredFleet& fleet);

}  // namespace railyard
