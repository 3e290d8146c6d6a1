#pragma once
// Simulating many points: threads that take replicas of points, and take turns in writing what they found.
//
// What is stored does not depend on how many threads there are or when they were stopped: a point has the
// replicas 0 to n - 1, where n follows from the stopping rule's looks at fixed counts.

#include <atomic>

#include "tools/results/results_db.h"
#include "tools/study/study.h"

namespace railyard {

// A point that wants replicas.
struct SweepPoint {
    std::int64_t id = 0;  // in the database
    std::string key;
    std::vector<std::string> settings;
    bool described = false;  // its metrics' names are in the database, and maybe replicas
};

struct SweepOptions {
    std::string scenario_text;
    std::string scenario_file;
    StoppingRule rule;
    unsigned threads = 1;
    const std::atomic<bool>* cancelled = nullptr;
    std::function<void(std::int64_t done)> progress;  // points
    // At the end, of each point of which replicas have now come to their end with jobs that wait for ever:
    // the first of them.
    std::function<void(std::int64_t point, std::int64_t replica, const std::string& report)>
        deadlocked{};
};

struct SweepWorkDone {
    std::int64_t points = 0;
    double database_s = 0;  // CPU time of writing
};

// Runs the points in order and writes them as they finish, in batches. When cancelled: what was finished is
// written. Throws ScenarioError when the database can't be written; what was committed stays.
SweepWorkDone run_points(std::vector<SweepPoint> points, const SweepOptions& options,
                         ResultsDb& db);

}  // namespace railyard
