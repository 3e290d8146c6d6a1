#include "tools/study/run_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/program/lists.h"

namespace railyard {

namespace {

std::vector<WorkBasis> work_of_points(std::int64_t run, Database& db) {
    std::vector<WorkBasis> out;  // read as the rows come: a text that is none is a damaged database
    db.query(
        "SELECT DISTINCT p.work FROM run_points rp JOIN points p ON p.point = rp.point "
        "JOIN point_metrics g ON g.point = rp.point AND g.name = 'goodput' WHERE rp.run = ?",
        [&](const Row& row) { out.push_back(read_work(row.text(0))); }, run);
    return out;
}

std::optional<RunVerdict> verdict_of(std::int64_t run, const DecidingMetric& by, ResultsDb& db,
                                     const std::shared_ptr<WindowCache>& windows) {
    const std::vector<RankedPoint> points = best_points(run, by, 2, db.database());
    if (points.size() < 2) return std::nullopt;
    std::vector<ComparedArm> arms;
    // Pairs are replicas that both have.
    const std::int64_t pairs =
        std::min(db.replica_count(points[0].point), db.replica_count(points[1].point));
    if (pairs == 0) return std::nullopt;
    for (const RankedPoint& point : points) {
        ComparedArm arm{point.label, point.file, point.toml, point.settings};
        ScenarioChanges changes;
        changes.settings = point.settings;
        changes.windows = windows;
        changes.phases = true;
        arm.scenario = load_scenario(arm.toml, arm.file, changes);
        ReplicaTally tally(arm.scenario);
        db.each_replica(point.point, [&](const StoredReplica& r) {
            if (tally.replicas() < pairs) tally.add(figures_of(r));
        });
        arm.sums = tally.take();
        if (arm.scenario.cost) arm.cost = study_costs(arm.scenario.cost->plan, arm.sums.uses);
        arms.push_back(std::move(arm));
    }
    for (const MetricComparison& m : compare_arms(arms, 0, 1, by.metric, by.better, 0.95)) {
        if (m.metric == by.metric) return RunVerdict{points[0], points[1], m};
    }
    return std::nullopt;
}

}  // namespace

std::optional<DecidingMetric> deciding_metric(std::int64_t run, Database& db) {
    std::optional<DecidingMetric> out;
    db.query(
        "SELECT metric, better, why FROM runs WHERE run = ? AND metric IS NOT NULL",
        [&](const Row& row) {
            const Better better = row.text(1) == "higher" ? Better::higher : Better::lower;
            out = {row.text(0), better, row.text(2)};
        },
        run);
    if (!out) out = usual_metric(run, db);
    return out;
}

std::optional<DecidingMetric> usual_metric(std::int64_t run, Database& db) {
    const std::vector<WorkBasis> designs = work_of_points(run, db);
    return designs.empty() ? std::nullopt : std::optional(deciding_metric(designs));
}

DecidingMetric named_metric(std::int64_t run, const std::string& metric, Database& db) {
    const std::vector<std::string> names =
        db.texts("SELECT DISTINCT name FROM metric_means WHERE run = ? ORDER BY name", run);
    if (!contains(names, metric)) {
        throw ScenarioError(fmt::format("--metric: no point has a metric '{}'", metric),
                            did_you_mean(metric, names));
    }
    return {metric, better_of(metric), ""};
}

std::vector<RankedPoint> best_points(std::int64_t run, const DecidingMetric& by, std::int64_t count,
                                     Database& db) {
    std::vector<RankedPoint> out;
    db.query(
        "SELECT rp.point, min(rp.position), rp.label, s.file, s.toml, p.settings, m.mean, m.low, "
        "m.high, p.replicas FROM run_points rp JOIN points p ON p.point = rp.point JOIN scenarios "
        "s ON s.scenario = p.scenario JOIN point_metrics m ON m.point = rp.point AND m.name = ? "
        "WHERE rp.run = ? AND m.mean IS NOT "
        "NULL GROUP BY rp.point ORDER BY m.mean * ?, rp.position LIMIT ?",
        [&](const Row& row) {
            const auto end = [&](int column) {
                return row.null(column) ? INFINITY : row.real(column);
            };
            out.push_back({row.integer(0),
                           row.integer(1),
                           row.text(2),
                           row.text(3),
                           row.text(4),
                           nlohmann::json::parse(row.text(5)).get<std::vector<std::string>>(),
                           row.real(6),
                           {end(7), end(8)},
                           row.integer(9)});
        },
        by.metric, run, by.better == Better::higher ? -1.0 : 1.0, count);
    return out;
}

std::optional<RunVerdict> keep_verdict(std::int64_t run, const DecidingMetric& by, ResultsDb& db,
                                       const std::shared_ptr<WindowCache>& windows) {
    const auto out = verdict_of(run, by, db, windows);
    if (out) {
        MetricComparison kept = out->difference;
        kept.a = static_cast<std::size_t>(out->best.position);
        kept.b = static_cast<std::size_t>(out->second.position);
        db.add_comparison(run, kept);
    }
    db.commit();
    return out;
}

std::optional<RunVerdict> stored_verdict(std::int64_t run, const DecidingMetric& by, Database& db) {
    const std::vector<RankedPoint> points = best_points(run, by, 2, db);
    if (points.size() < 2) return std::nullopt;
    std::optional<RunVerdict> out;
    db.query(
        "SELECT a, difference, verdict FROM comparisons WHERE run = ? AND metric = ? AND min(a, b) "
        "= ? AND max(a, b) = ?",
        [&](const Row& row) {
            RunVerdict found{points[0], points[1], {by.metric, by.better, 0, 1, {}}};
            PairedComparison& pairs = found.difference.pairs;
            const bool best_is_a = row.integer(0) == points[0].position;
            pairs.difference = best_is_a ? row.real(1) : -row.real(1);
            const std::string verdict = row.text(2);
            pairs.verdict = verdict == "undecided" ? Verdict::undecided
                            : verdict == "equal"   ? Verdict::equal
                                                   : Verdict::first;
            out = std::move(found);
        },
        run, by.metric, std::min(points[0].position, points[1].position),
        std::max(points[0].position, points[1].position));
    return out;
}

std::vector<AxisMeans> axis_means(std::int64_t run, const std::string& metric, Database& db) {
    std::vector<AxisMeans> out;
    db.query(
        "SELECT a.key, count(DISTINCT v.text) FROM axes a LEFT JOIN axis_values v ON v.run = a.run "
        "AND v.axis = a.axis WHERE a.run = ? GROUP BY a.axis ORDER BY a.axis",
        [&](const Row& row) {
            out.push_back({row.text(0), row.integer(1)});
        },
        run);
    for (AxisMeans& axis : out) {
        db.query(
            "SELECT text, points, mean, lowest, highest FROM axis_means WHERE run = ? AND key = ? "
            "AND name = ? ORDER BY value, text",
            [&](const Row& row) {
                axis.means.push_back(
                    {row.text(0), row.integer(1), row.real(2), row.real(3), row.real(4)});
            },
            run, axis.key, metric);
    }
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
        {m.metric, m.better, m.pairs.difference, m.pairs.verdict != Verdict::undecided});
}

}  // namespace railyard
