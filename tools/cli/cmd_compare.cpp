// railyard compare: which of these designs is better, by how much, how sure is that, and why.

#include <fmt/format.h>

#include "tools/cli/cmd.h"
#include "tools/cli/compare_tables.h"
#include "tools/cli/cost_report.h"
#include "tools/cli/study_arguments.h"
#include "tools/cli/terminal.h"
#include "tools/cli/terminal_observer.h"
#include "tools/study/trials.h"

namespace railyard {

namespace {

struct CompareArguments {
    std::vector<std::string> files;
    std::vector<Arm> arms;              // beside the one file
    std::vector<std::string> settings;  // of the second arm with one file alone, else of all arms
    std::vector<std::string> common;    // --seed, --replicas
    std::string metric;                 // that decides; empty: deciding_metric says
    std::string better;
    std::string db;
    unsigned threads = 1;
    bool json = false;
    bool estimates = true;
};

CompareArguments parse_compare(const std::vector<std::string>& arguments) {
    CompareArguments out;
    CommandLine line(
        "railyard compare A.toml B.toml [C.toml...] | A.toml --set KEY=VALUE | A.toml --vary "
        "KEY=V1,V2",
        "Runs designs on the same random numbers and prints their difference with its interval, "
        "the\n"
        "verdict, and their ledgers and costs side by side. With one file alone --set makes the\n"
        "second design; beside --arm, --vary or more files it changes all of them.");
    line.positional("scenario", -1);
    line.add_settings();
    line.add()("vary", po::value<std::vector<std::string>>()->composing(),
               "A design for each value: --vary job.checkpoint.interval=\"10 min\",\"1 h\"");
    line.add()("arm", po::value<std::vector<std::string>>()->composing(),
               "A design by name: --arm \"IB: fabric.compute.kind=infiniband; KEY=VALUE\"");
    line.add()("metric", po::value(&out.metric),
               "The metric that decides; without it what designs get done: goodput on the same "
               "GPUs, else\ntokens per time or money; of many jobs their mean bounded slowdown");
    line.add()("better", po::value(&out.better),
               "higher or lower; without it by the metric's name");
    line.add()("seed", a_text(), "Seed of all random streams (run.seed)");
    line.add()("replicas", a_text(), "Number of replicas of each (run.replicas)");
    line.add_threads();
    line.add_json();
    line.add()("no-estimates", "Don't try the estimates that the verdict hangs on");
    line.add()("db", a_text(), "Write designs and comparisons to this SQLite file");
    const auto values = line.parse(arguments);
    out.files = all_of(values, "scenario");
    out.arms = arms_of(all_of(values, "vary"), all_of(values, "arm"));
    out.settings = settings_of(values);
    out.common = luck_settings_of(values);
    if (!out.better.empty() && out.better != "higher" && out.better != "lower") {
        throw ScenarioError(
            fmt::format("--better: expected higher or lower, found {}", out.better));
    }
    out.db = file_option(values, "db");
    out.threads = threads_of(values);
    out.json = values.count("json") > 0;
    out.estimates = values.count("no-estimates") == 0;
    return out;
}

// A, B ... Z, then by number.
std::string letter(std::size_t i) {
    constexpr std::size_t letters = 26;
    return i < letters ? std::string(1, static_cast<char>('A' + i)) : fmt::format("arm {}", i + 1);
}

std::vector<std::string> joined(std::vector<std::string> first,
                                const std::vector<std::string>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

std::vector<ComparedArm> load_arms(const CompareArguments& args) {
    const auto windows = watched_windows();
    std::vector<ComparedArm> arms;
    const auto add = [&](const std::string& name, const std::string& file,
                         const std::vector<std::string>& settings) {
        arms.push_back(load_arm(name, file, joined(settings, args.common), windows));
    };
    if (args.files.size() > 1) {
        if (!args.arms.empty()) {
            throw ScenarioError(
                "--arm and --vary make designs of one scenario, and there are several",
                "name one scenario, or leave them out");
        }
        for (std::size_t i = 0; i < args.files.size(); ++i)
            add(letter(i), args.files[i], args.settings);
        return arms;
    }
    if (args.files.empty()) {
        throw ScenarioError("compare needs two designs",
                            "railyard compare A.toml B.toml, or A.toml --set KEY=VALUE; 'compare "
                            "--help' says more");
    }
    if (args.arms.empty()) {
        add(letter(0), args.files[0], {});
        if (!args.settings.empty()) add(letter(1), args.files[0], args.settings);
    } else {
        add(letter(0), args.files[0], args.settings);
    }
    for (const Arm& arm : args.arms) {
        const std::string name = letter(arms.size());
        add(arm.name.empty() ? name : fmt::format("{} ({})", name, arm.name), args.files[0],
            joined(args.settings, arm.settings));
    }
    if (arms.size() < 2) {
        throw ScenarioError("compare needs two designs, and there is one",
                            "name a second scenario, or say what changes: --set KEY=VALUE");
    }
    return arms;
}

bool run_all(const CompareArguments& args, std::vector<ComparedArm>& arms, SavedRun& saved) {
    Progress progress("replicas");
    CampaignOptions options;
    options.threads = args.threads;
    options.cancelled = &interrupted();
    options.progress = progress.updates();
    return run_arms(arms, options, saved);
}

DecidingMetric chosen_metric(const std::vector<ComparedArm>& arms, const CompareArguments& args) {
    DecidingMetric out{args.metric, better_of(args.metric), ""};
    if (args.metric.empty()) {
        out = deciding_metric(arms);
    } else {
        find_common_metric(arms, args.metric);
    }
    if (!args.better.empty()) out.better = args.better == "higher" ? Better::higher : Better::lower;
    return out;
}

void try_estimates(Comparison& c, const CompareArguments& args) {
    const MetricComparison& front = c.front_runners();
    const Verdict verdict = front.pairs.verdict;
    if (verdict == Verdict::equal) return;  // nothing that could turn
    const auto judged = [&](std::size_t i) {
        const ComparedArm& arm = c.arms[i];
        return JudgedDesign{arm.name,
                            arm.toml,
                            arm.file,
                            {.settings = arm.settings, .windows = arm.scenario.windows}};
    };
    Progress progress("estimates");
    TrialOptions like = trial_options(args.threads, progress);
    like.replicas = c.arms[0].scenario.replicas;
    c.estimates = verdict_estimates(
        like, judged(front.a), judged(front.b),
        {front.metric, front.better, front.pairs.difference, verdict != Verdict::undecided});
}

Ending worst_ending(const Comparison& c) {
    Ending worst = Ending::complete;
    for (const ComparedArm& arm : c.arms) {
        if (arm.sums.worst == Ending::stuck) return Ending::stuck;
        if (arm.sums.worst == Ending::limit || !arm.limits.empty()) worst = Ending::limit;
    }
    return worst;
}

SavedRun saved_run(const Comparison& c, const std::string& path) {
    SavedRun out(path, {.kind = "compare",
                        .key = {},
                        .file = c.arms[0].file,
                        .title = c.arms[0].scenario.title,
                        .version = result_version(),
                        .seed = c.arms[0].scenario.seed,
                        .points_wanted = std::ssize(c.arms),
                        .replicas_wanted = c.arms[0].scenario.replicas,
                        .study = {}});
    for (const ComparedArm& arm : c.arms) {
        out.add_point(arm.scenario, arm.toml, arm.settings, arm.name);
    }
    return out;
}

void save_verdict(const Comparison& c, SavedRun& saved) {
    saved.write([&](ResultsDb& db, std::int64_t run) {
        for (const MetricComparison& m : c.metrics) db.add_comparison(run, m);
        db.decide(run, c.decided_by.metric, c.decided_by.better, c.decided_by.why);
    });
    saved.finish(ending_name(worst_ending(c)), nullptr);
}

int exit_code(const Comparison& c) {
    std::vector<Deadlock> deadlocks;
    for (const ComparedArm& arm : c.arms) {
        if (!arm.stuck || arm.sums.worst == Ending::stuck) continue;
        deadlocks.push_back({arm.name, arm.stuck->replica, arm.stuck->report});
    }
    warn_of_deadlocks(deadlocks);
    switch (worst_ending(c)) {
        case Ending::complete:
            return exit_ok;
        case Ending::stuck:
            fmt::print(stderr, "railyard: stuck: some replicas never get their job done\n");
            return exit_stuck;
        case Ending::limit:
            break;
    }
    for (const ComparedArm& arm : c.arms) {
        complain_of_limits(arm.limits);
        if (arm.sums.worst == Ending::limit) {
            fmt::print(
                stderr,
                "railyard: limit: {}: run.events_max = {} was reached: this result is partial\n",
                arm.name, arm.scenario.events_max);
        }
    }
    return exit_limit;
}

}  // namespace

int cmd_compare(const std::vector<std::string>& arguments) {
    const CompareArguments args = parse_compare(arguments);
    Comparison comparison;
    comparison.arms = load_arms(args);
    for (const ComparedArm& arm : comparison.arms) print_warnings(arm.scenario.warnings);
    for (const ComparedArm& arm : comparison.arms) {
        if (arm.scenario.no_path.empty()) continue;
        fmt::print(stderr, "railyard: stuck: {}: the job can't take its first step: {}\n", arm.name,
                   arm.scenario.no_path);
        return exit_stuck;
    }
    check_pairs(comparison.arms);
    std::vector<std::pair<std::string, const Scenario*>> designs;
    for (const ComparedArm& arm : comparison.arms) designs.emplace_back(arm.name, &arm.scenario);
    warn_of_prices_missing(designs);
    comparison.decided_by = chosen_metric(comparison.arms, args);
    share_replicas(comparison.arms);
    SavedRun saved = saved_run(comparison, args.db);
    if (!run_all(args, comparison.arms, saved)) {
        if (args.db.empty() || saved.failed()) throw Interrupted();
        fmt::print(stderr,
                   "railyard: interrupted before there was a result: the replicas that were "
                   "finished are in {}\n",
                   visible(args.db));
        return exit_interrupted;
    }
    const std::int64_t arms = std::ssize(comparison.arms);
    comparison.confidence = corrected_confidence(0.95, arms * (arms - 1) / 2);
    comparison.metrics = compare_all(comparison.arms, comparison.decided_by, comparison.confidence);
    save_verdict(comparison, saved);
    if (args.estimates) try_estimates(comparison, args);
    if (args.json) {
        fmt::print("{}\n", comparison_json(comparison, version()));
    } else {
        print_comparison(comparison);
    }
    const int code = exit_code(comparison);
    if (saved.failed()) {
        fmt::print(stderr, "railyard: this result is whole; the database is not\n");
        return code == exit_ok ? int{exit_limit} : code;
    }
    return code;
}

}  // namespace railyard
