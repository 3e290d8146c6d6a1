// railyard sweep: simulates a study's points into a database, and goes on where it was stopped.

#include <fmt/format.h>

#include <algorithm>

#include "sim/check.h"
#include "tools/cli/cmd.h"
#include "tools/cli/metric_text.h"
#include "tools/cli/study_arguments.h"
#include "tools/cli/terminal.h"
#include "tools/cli/terminal_observer.h"
#include "tools/cli/verdict_table.h"
#include "tools/program/json_text.h"
#include "tools/study/run_verdict.h"
#include "tools/study/sweep_plan.h"
#include "tools/study/sweep_task.h"

namespace railyard {

namespace {

struct SweepArguments : StoredStudy {
    bool estimates = true;
    std::string metric;  // that decides; empty: deciding_metric says
    // For a task of the array:
    std::string task_folder;
    std::int64_t task = 0;
};

SweepArguments parse_sweep(const std::vector<std::string>& arguments) {
    SweepArguments out;
    CommandLine line(
        "railyard sweep STUDY.toml [options]",
        "Simulates every point of a study: a scenario and axes through its keys. Points go to the\n"
        "database as they finish; stopped or killed, the same command goes on from there.");
    line.positional("study", 1);
    line.add_settings();
    line.add()("db", a_text(), "The SQLite file; without it STUDY.sqlite, here");
    line.add_threads();
    line.add_json();
    line.add()("no-estimates", "Don't try the estimates that the best point hangs on");
    line.add()("metric", po::value(&out.metric)->default_value(""),
               "What decides which point is best, as for compare");
    add_slurm_options(line);
    line.add()("task", po::value(&out.task_folder),
               "Run one task of a Slurm array: the sweep's folder");
    line.add()("index", po::value(&out.task)->default_value(0), "Number of the task, with --task");
    const auto values = line.parse(arguments);
    if (values.count("task")) {
        out.threads = threads_of(values);
        return out;
    }
    static_cast<StoredStudy&>(out) =
        stored_study(values, word_given(values, "study", "sweep needs a study",
                                        "railyard sweep STUDY.toml; 'sweep --help' says more"));
    out.estimates = values.count("no-estimates") == 0;
    return out;
}

// Points that have no result, each with its reason, as far as a person reads.
void name_failures(std::int64_t run, const std::string& status, Database& db) {
    constexpr std::size_t named_max = 20;
    const std::vector<std::string> all = db.texts(
        "SELECT label || ': ' || coalesce(problem, '') FROM overview WHERE run = ? AND status = ? "
        "ORDER BY position",
        run, status);
    for (std::size_t i = 0; i < std::min(named_max, all.size()); ++i) {
        fmt::print(stderr, "railyard: {}: {}\n", status, visible(all[i]));
    }
    if (all.size() > named_max) {
        fmt::print(stderr,
                   "railyard: {}: and {} more points\n    sqlite3 {} \"SELECT label, problem FROM "
                   "overview WHERE run = {} AND status = '{}'\"\n",
                   status, all.size() - named_max, visible(db.path()), run, status);
    }
}

void print_best(std::int64_t run, const DecidingMetric& by, Database& db) {
    constexpr std::int64_t shown = 5;
    Table table({"best " + by.metric, ">mean", "95 % interval", ">replicas"});
    const auto text = [&](double v) { return metric_text(by.metric, v); };
    for (const RankedPoint& point : best_points(run, by, shown, db)) {
        table.add({visible(point.label), text(point.mean),
                   interval_text(point.interval, text, "one replica: none"),
                   fmt::format("{}", point.replicas)});
    }
    if (!table.empty()) fmt::print("\n{}", table.text());
    fmt::print("  {} is better{}{}\n", better_name(by.better), by.why.empty() ? "" : ": ", by.why);
}

// What each value of an axis gives, over all others.
void print_axes(std::int64_t run, std::int64_t points, const DecidingMetric& by, Database& db) {
    constexpr std::int64_t values_max = 20;
    const std::vector<AxisMeans> axes = axis_means(run, by.metric, db);
    for (const AxisMeans& axis : axes) {
        const bool own = axes.size() > 1 && axis.values == points;  // nothing to take a mean over
        if (own || axis.values > values_max) continue;
        Table table({visible(axis.key),
                     ">points",
                     {"mean " + by.metric, Table::Align::right},
                     ">lowest",
                     ">highest"});
        const auto text = [&](double v) { return metric_text(by.metric, v); };
        for (const AxisMeans::Value& v : axis.means) {
            table.add({visible(v.text), fmt::format("{}", v.points), text(v.mean), text(v.lowest),
                       text(v.highest)});
        }
        if (!table.empty()) fmt::print("\n{}", table.text());
    }
}

// The best point against the next, and the estimates that this hangs on.
struct Judged {
    DecidingMetric by;
    std::optional<RunVerdict> verdict;
    std::optional<VerdictEstimates> estimates;
};

void print_verdict(const Judged& judged) {
    if (!judged.verdict) return;
    const RunVerdict& v = *judged.verdict;
    const PairedComparison& p = v.difference.pairs;
    const auto text = [&](double d) { return difference_text(v.difference.metric, d); };
    fmt::print("\n  A, {}, {} B, {}  ({} B - A: {}, 95 % interval {})\n", visible(v.best.label),
               p.verdict == Verdict::first   ? "over"
               : p.verdict == Verdict::equal ? "is equal to"
                                             : "is not told from",
               visible(v.second.label), v.difference.metric, text(p.difference),
               interval_text(p.interval, text, "one pair: none"));
    if (!judged.estimates) return;
    print_verdict_estimates(*judged.estimates, "A", "B");
    if (judged.estimates->default_ranges) print_default_range();
}

void print_outcome(const SweepPlan& plan, const SweepOutcome& outcome,
                   const std::optional<Judged>& judged, Database& db) {
    if (judged) {
        print_best(plan.run, judged->by, db);
        print_axes(plan.run, plan.points, judged->by, db);
        print_verdict(*judged);
    }
    const SweepOutcome::Count& n = outcome.points;
    fmt::print("\n  {} points: {} complete", plan.points, n.complete);
    const auto also = [](std::int64_t count, const char* what) {
        if (count > 0) fmt::print(", {} {}", count, what);
    };
    also(n.impossible, "impossible");
    also(n.stuck, "stuck");
    also(n.limit, "cut off by a limit");
    also(n.failed, "failed");
    also(n.open, "not done");
    fmt::print("; run {} of {}  digest {}\n", plan.run, visible(db.path()), outcome.digest);
}

std::string json_text(const SweepPlan& plan, const SweepOutcome& outcome,
                      const std::optional<Judged>& judged, const std::string& db) {
    const SweepOutcome::Count& n = outcome.points;
    Json out = {{"db", db},
                {"run", plan.run},
                {"status", outcome.status},
                {"points", plan.points},
                {"simulated", plan.to_do.size()},
                {"complete", n.complete},
                {"impossible", n.impossible},
                {"stuck", n.stuck},
                {"limit", n.limit},
                {"failed", n.failed},
                {"open", n.open},
                {"digest", outcome.digest},
                {"version", result_version()}};
    if (!judged) return one_line(out);
    out["metric"] = judged->by.metric;
    out["why_this_metric"] = judged->by.why;
    if (judged->verdict) {
        const RunVerdict& v = *judged->verdict;
        out["best"] = v.best.label;
        out["second"] = v.second.label;
        out["verdict"] = verdict_name(v.difference.pairs.verdict);
    }
    if (judged->estimates) {
        out["estimates"] = verdict_estimates_json(*judged->estimates, judged->verdict->best.label,
                                                  judged->verdict->second.label);
    }
    return one_line(out);
}

std::optional<Judged> judge(const SweepPlan& plan, const SweepArguments& args, ResultsDb& db) {
    auto by = usual_metric(plan.run, db.database());
    if (!by || interrupted()) return std::nullopt;
    if (!args.metric.empty()) by = named_metric(plan.run, args.metric, db.database());
    db.decide(plan.run, by->metric, by->better, by->why);
    const auto windows = watched_windows();
    Judged out{*by, keep_verdict(plan.run, *by, db, windows), {}};
    const bool open = out.verdict && out.verdict->difference.pairs.verdict != Verdict::equal;
    if (!args.estimates || !open) return out;
    Progress progress("estimates");
    out.estimates = estimates_of(*out.verdict, trial_options(args.threads, progress), windows);
    return out;
}

int exit_code(const SweepPlan& plan, const SweepOutcome& outcome, Database& db) {
    for (const char* status : {"impossible", "failed", "stuck", "limit"}) {
        name_failures(plan.run, status, db);
    }
    const SweepOutcome::Count& n = outcome.points;
    if (n.open > 0) {
        fmt::print(stderr,
                   "railyard: interrupted: {} of {} points are done; the same command goes on from "
                   "there\n",
                   plan.points - n.open, plan.points);
        return exit_interrupted;
    }
    if (n.impossible == plan.points) return exit_user_error;
    return outcome.status == "complete" ? exit_ok : exit_limit;
}

void warn_of_other_version(const SweepPlan& plan, const std::string& db) {
    if (plan.of_other_version == 0) return;
    fmt::print(stderr,
               "railyard: {} of the points are in {} as other sources made them (railyard {}): "
               "those rows stay, the points are run again\n",
               plan.of_other_version, visible(db), visible(plan.other_version));
}

}  // namespace

int cmd_sweep(const std::vector<std::string>& arguments) {
    const SweepArguments args = parse_sweep(arguments);
    contain_failed_checks();
    if (!args.task_folder.empty()) {
        run_task(args.task_folder, static_cast<std::size_t>(args.task), result_version(),
                 args.threads, interrupted());
        return exit_ok;
    }
    const Study study = read_study(args.study, args.settings);
    ResultsDb db(args.db);
    if (args.slurm) take_over(args.slurm->folder, db);
    const SweepPlan plan = plan_sweep(study, result_version(), db);
    const auto to_do = std::ssize(plan.to_do);
    if (to_do < plan.points && !args.json) {
        fmt::print("  {} of {} points are in {} already\n", plan.points - to_do, plan.points,
                   visible(args.db));
    }
    warn_of_other_version(plan, args.db);
    const double cpu_before = process_cpu_seconds();
    SweepOutcome outcome;
    std::optional<Judged> judged;
    std::vector<Deadlock> deadlocks;
    const auto deadlocked = [&](std::int64_t point, std::int64_t replica,
                                const std::string& report) {
        const auto labels = db.database().texts(
            "SELECT label FROM run_points WHERE run = ? AND point = ?", plan.run, point);
        deadlocks.push_back({labels.back(), replica, report});
    };
    try {
        std::optional<Progress> progress("points");
        const auto update = [&](std::int64_t done) { progress->update(done, to_do); };
        const SweepOptions sweep = {study.scenario_text, study.scenario_file, study.rule,
                                    args.threads,        &interrupted(),      update,
                                    deadlocked};
        if (args.slurm) {
            run_on_slurm(plan.to_do, sweep, result_version(), *args.slurm, db);
        } else {
            const SweepWorkDone work = run_points(plan.to_do, sweep, db);
            db.add_times(plan.run, process_cpu_seconds() - cpu_before, work.database_s);
        }
        progress.reset();
        outcome = finish_sweep(plan.run, db);
        judged = judge(plan, args, db);
    } catch (const DatabaseError& error) {
        return stopped_by(error, "sweep");
    }
    if (args.json) {
        fmt::print("{}\n", json_text(plan, outcome, judged, args.db));
    } else {
        print_outcome(plan, outcome, judged, db.database());
    }
    std::fflush(stdout);
    warn_of_deadlocks(deadlocks);
    return exit_code(plan, outcome, db.database());
}

}  // namespace railyard
