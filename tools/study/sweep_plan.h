#pragma once
// What a study asks of a database: its run and points there, and what is left to do.

#include "tools/results/results_db.h"
#include "tools/study/study.h"
#include "tools/study/sweep_work.h"

namespace railyard {

struct SweepPlan {
    std::int64_t run = 0;
    bool resumed = false;           // the same sweep has been here before
    std::int64_t points = 0;        // different ones
    std::vector<SweepPoint> to_do;  // in the study's order
    // Those of which other sources (another version of the program) have left results.
    std::int64_t of_other_version = 0;
    std::string other_version;  // one of them
};

// Writes the run, its points and where they lie on the axes, or finds them, and commits. A point that has
// enough replicas already, whoever asked for them, is not to be done again. What another version left there
// stays, and its points are new ones.
SweepPlan plan_sweep(const Study& study, const std::string& version, ResultsDb& db);

// Counts of points, and the run's status, after all is done.
struct SweepOutcome {
    std::string status;  // complete, limit, stuck, impossible, failed, interrupted
    std::string digest;  // of all points
    struct Count {
        std::int64_t complete = 0;
        std::int64_t impossible = 0;
        std::int64_t stuck = 0;
        std::int64_t limit = 0;
        std::int64_t failed = 0;
        std::int64_t open = 0;
    } points;
};
SweepOutcome finish_sweep(std::int64_t run, ResultsDb& db);

}  // namespace railyard
