#pragma once
// Which point of a run in the database is best, by what, and whether it is better than the next.

#include "tools/results/results_db.h"
#include "tools/study/arms.h"
#include "tools/study/deciding_metric.h"
#include "tools/study/verdict_estimates.h"

namespace railyard {

// By what the run's points are judged: as the run itself was, else as usual. None: no point has a result.
std::optional<DecidingMetric> deciding_metric(std::int64_t run, Database& db);
// As deciding_metric says of their designs.
std::optional<DecidingMetric> usual_metric(std::int64_t run, Database& db);
// One that somebody names. Throws ScenarioError when no point has it.
DecidingMetric named_metric(std::int64_t run, const std::string& metric, Database& db);

struct RankedPoint {
    std::int64_t point = 0;
    std::int64_t position = 0;
    std::string label;
    std::string file;  // of its scenario
    std::string toml;
    std::vector<std::string> settings;
    // By which it is ranked, and over how many replicas; one has no interval.
    double mean = 0;
    Interval interval;
    std::int64_t replicas = 0;
};
// The best so many, each of the run's points once.
std::vector<RankedPoint> best_points(std::int64_t run, const DecidingMetric& by, std::int64_t count,
                                     Database& db);

// The best point and the next, on the same random numbers.
struct RunVerdict {
    RankedPoint best;
    RankedPoint second;
    MetricComparison difference;  // the second's less the best's
};
// None: there are no two points to compare. Else the database keeps it.
std::optional<RunVerdict> keep_verdict(std::int64_t run, const DecidingMetric& by, ResultsDb& db,
                                       const std::shared_ptr<WindowCache>& windows);
// As the database has kept it.
std::optional<RunVerdict> stored_verdict(std::int64_t run, const DecidingMetric& by, Database& db);

// What each value of an axis gives in a metric, over all other axes.
struct AxisMeans {
    std::string key;
    std::int64_t values = 0;  // different ones
    struct Value {
        std::string text;
        std::int64_t points;
        double mean, lowest, highest;
    };
    std::vector<Value> means{};  // of those that have the metric, in order
};
std::vector<AxisMeans> axis_means(std::int64_t run, const std::string& metric, Database& db);

// Does it survive? `like` as verdict_estimates takes it.
VerdictEstimates estimates_of(const RunVerdict& verdict, const TrialOptions& like,
                              const std::shared_ptr<WindowCache>& windows);

}  // namespace railyard
