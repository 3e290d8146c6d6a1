#include "tools/study/run_verdict.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace railyard {

namespace {

bool any(std::int64_t run, const char* metric, Database& db) {
    return db.integer("SELECT count(*) FROM metric_means WHERE run = ? AND name = ?", run, metric)
               .value_or(0) > 0;
}

bool all_have(std::int64_t run, const char* metric, Database& db) {
    return db.integer("SELECT count(*) FROM metric_means WHERE run = ? AND name = ? AND mean > 0",
                      run, metric) ==
           db.integer("SELECT count(*) FROM metric_means WHERE run = ? AND name = 'goodput'", run);
}

// What a productive GPU-day trains differs between points: they compute more or less for the same.
bool work_differs(std::int64_t run, const char* per_day, Database& db) {
    constexpr double rounding = 1e-3;  // means over replicas
    double low = 0;
    double high = 0;
    db.query(
        "SELECT min(w.mean / (g.mean * p.gpus)), max(w.mean / (g.mean * p.gpus)) FROM run_points "
        "rp JOIN points p ON p.point = rp.point JOIN point_metrics g ON g.point = rp.point AND "
        "g.name = 'goodput' JOIN point_metrics w ON w.point = rp.point AND w.name = ? WHERE "
        "rp.run = ? AND g.mean > 0",
        [&](const Row& row) {
            low = row.real(0);
            high = row.real(1);
        },
        per_day, run);
    return high - low > rounding * high;
}

bool gpus_differ(std::int64_t run, Database& db) {
    return db.integer(
                 "SELECT count(DISTINCT gpus) FROM overview WHERE run = ? AND goodput IS NOT "
                 "NULL",
                 run)
               .value_or(0) > 1;
}

}  // namespace

std::optional<DecidingMetric> deciding_metric(std::int64_t run, Database& db) {
    if (any(run, "bounded_slowdown_mean", db)) {
        return DecidingMetric{"bounded_slowdown_mean", Better::lower,
                              "the load that is offered sets the goodput of many jobs"};
    }
    if (!any(run, "goodput", db)) return std::nullopt;
    const bool tokens = all_have(run, "tokens_per_day", db);
    const char* per_day = tokens ? "tokens_per_day" : "steps_per_day";
    if (!gpus_differ(run, db) && !work_differs(run, per_day, db)) {
        return DecidingMetric{"goodput", Better::higher,
                              "a point of goodput is the same work in all designs"};
    }
    const std::string why =
        "a productive GPU-hour is not the same work in all designs, or there are not as many";
    if (tokens && all_have(run, "cost_per_1e12_tokens", db)) {
        return DecidingMetric{"cost_per_1e12_tokens", Better::lower, why};
    }
    return DecidingMetric{per_day, Better::higher, why};
}

std::vector<RankedPoint> best_points(std::int64_t run, const DecidingMetric& by, std::int64_t count,
                                     Database& db) {
    std::vector<RankedPoint> out;
    db.query(
        "SELECT rp.point, min(rp.position), rp.label, s.file, s.toml, p.settings FROM run_points "
        "rp "
        "JOIN points p ON p.point = rp.point JOIN scenarios s ON s.scenario = p.scenario JOIN "
        "point_metrics m ON m.point = rp.point AND m.name = ? WHERE rp.run = ? AND m.mean IS NOT "
        "NULL GROUP BY rp.point ORDER BY m.mean * ?, rp.position LIMIT ?",
        [&](const Row& row) {
            out.push_back({row.integer(0), row.integer(1), row.text(2), row.text(3), row.text(4),
                           nlohmann::json::parse(row.text(5)).get<std::vector<std::string>>()});
        },
        by.metric, run, by.better == Better::higher ? -1.0 : 1.0, count);
    return out;
}

std::optional<RunVerdict> run_verdict(std::int64_t run, const DecidingMetric& by, ResultsDb& db) {
    const std::vector<RankedPoint> points = best_points(run, by, 2, db.database());
    if (points.size() < 2) return std::nullopt;
    std::vector<ComparedArm> arms;
    for (const RankedPoint& point : points) {
        ComparedArm arm{point.label, point.file, point.toml, point.settings};
        ScenarioChanges changes;
        changes.settings = point.settings;
        arm.scenario = load_scenario(arm.toml, arm.file, changes);
        arm.records = db.replicas_of(point.point);
        if (arm.records.empty()) return std::nullopt;
        arms.push_back(std::move(arm));
    }
    // Pairs are replicas that both have.
    const std::size_t pairs = std::min(arms[0].records.size(), arms[1].records.size());
    for (ComparedArm& arm : arms) {
        arm.records.resize(pairs);
        if (arm.scenario.cost) arm.cost = study_costs(arm.records, arm.scenario);
    }
    for (const MetricComparison& m : compare_arms(arms, 0, 1, by.metric, by.better, 0.95)) {
        if (m.metric == by.metric) return RunVerdict{points[0], points[1], m};
    }
    return std::nullopt;
}

std::optional<RunVerdict> stored_verdict(std::int64_t run, const DecidingMetric& by, Database& db) {
    const std::vector<RankedPoint> points = best_points(run, by, 2, db);
    if (points.size() < 2) return std::nullopt;
    std::optional<RunVerdict> out;
    db.query(
        "SELECT unit, a, difference, verdict FROM comparisons WHERE run = ? AND metric = ? AND "
        "min(a, b) = ? AND max(a, b) = ?",
        [&](const Row& row) {
            RunVerdict found{points[0], points[1], {by.metric, row.text(0), by.better, 0, 1, {}}};
            PairedComparison& pairs = found.difference.pairs;
            const bool best_is_a = row.integer(1) == points[0].position;
            pairs.difference = best_is_a ? row.real(2) : -row.real(2);
            const std::string verdict = row.text(3);
            pairs.verdict = verdict == "undecided" ? Verdict::undecided
                            : verdict == "equal"   ? Verdict::equal
                                                   : Verdict::first;
            out = std::move(found);
        },
        run, by.metric, std::min(points[0].position, points[1].position),
        std::max(points[0].position, points[1].position));
    return out;
}

VerdictEstimates estimates_of(const RunVerdict& verdict, const TrialOptions& like,
                              const std::shared_ptr<WindowCache>& windows) {
    const auto judged = [&](const RankedPoint& point) {
        return JudgedDesign{
            point.label, point.toml, point.file, {.settings = point.settings, .windows = windows}};
    };
    const MetricComparison& m = verdict.difference;
    return verdict_estimates(
        like, judged(verdict.best), judged(verdict.second),
        {m.metric, m.unit, m.better, m.pairs.difference, m.pairs.verdict != Verdict::undecided});
}

}  // namespace railyard
