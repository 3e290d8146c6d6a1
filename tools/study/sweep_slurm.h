#pragma once
// A sweep as a Slurm job array: the coordinator submits it, merges shards as they become whole, has tasks
// that died run again, and leaves the same database as a sweep on one machine.

#include "tools/study/sweep_work.h"

namespace railyard {

struct SlurmOptions {
    std::string folder;          // between coordinator and tasks, which all machines must see
    std::int64_t tasks = 16;     // of the array, at most
    std::string sbatch;          // further options for sbatch, as one writes them
    double poll_s = 2;           // between looks
    std::int64_t tries_max = 3;  // of a task
};

// What a coordinator that was killed has left in the folder: its array is ended, its whole shards are
// merged, the rest is dropped. Nothing when there is no folder.
void take_over(const std::string& folder, ResultsDb& db);

// As run_points, on Slurm. Throws ScenarioError when there is no Slurm, it refuses the array, or a task fails
// `tries_max` times; what was merged stays.
void run_on_slurm(const std::vector<SweepPoint>& points, const SweepOptions& sweep,
                  const std::string& version, const SlurmOptions& options, ResultsDb& db);

}  // namespace railyard
