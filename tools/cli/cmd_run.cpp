// railyard run: simulates a scenario and prints the answer.

#include <fmt/format.h>

#include "models/campaign/campaign.h"
#include "tools/cli/cmd.h"
#include "tools/cli/cost_report.h"
#include "tools/cli/metric_text.h"
#include "tools/cli/options.h"
#include "tools/cli/prediction_text.h"
#include "tools/cli/run_text.h"
#include "tools/cli/study_arguments.h"
#include "tools/cli/terminal.h"
#include "tools/program/json_text.h"
#include "tools/results/saved_run.h"

namespace railyard {

namespace {

std::string json_text(const Scenario& s, const CampaignResult& r, const Prediction* prediction) {
    std::vector<MetricSummary> summaries = r.metrics;
    std::optional<CostStudy> cost;
    if (s.cost) {
        cost = study_costs(s.cost->plan, r.uses);
        carry_prices(*cost, summaries);
    }
    Json limits = json_array(r.limits, &LimitReached::what);
    Json ledger = Json::object();
    for (std::size_t i = 0; i < r.ledger.size(); ++i) {
        if (!s.world && i >= job_category_count) break;  // only many jobs have these
        ledger[std::string(category_name(static_cast<Category>(i)))] = r.ledger[i];
    }
    Json energy = Json::object();
    for (std::size_t i = 0; i < r.energy.size(); ++i) energy[energy_name(i)] = r.energy[i];
    Json interruptions = Json::object();
    for (std::size_t i = 0; i < r.interruptions.size(); ++i) {
        interruptions[s.causes[i].name] = r.interruptions[i];
    }
    Json out = {
        {"scenario", s.file},
        {"version", version()},
        {"seed", s.seed},
        {"replicas", r.replicas},
        {"digest", r.digest},
        {"complete", r.ending() == Ending::complete && !r.cancelled},
        {"interrupted", r.cancelled},
        {"limits", limits},
        {"metrics", metrics_json(summaries)},
        {"mfu_peak", {{"precision", "bf16"}, {"flops_per_gpu", s.node.gpu.bf16_dense.per_second}}},
        {"ledger", ledger},
        {"energy_by_category", energy},
        {"interruptions", interruptions},
        {"planned_interruptions", r.planned_interruptions},
        {"simulated_s", r.simulated_s},
        {"cpu_s", r.cpu_s}};
    if (step_is_modelled(s)) {
        out["step_model_error"] = {{"software_named", s.step_error.named},
                                   {"software_shown", s.step_error.shown},
                                   {"half_within", s.step_error.half},
                                   {"nine_tenths_within", s.step_error.nine_tenths}};
    }
    if (r.stuck) out["stuck"] = stuck_json(*r.stuck);
    if (!s.draws.empty()) out["network_draws"] = draws_json(s);
    if (cost) out["cost"] = cost_json(s, *cost);
    if (prediction != nullptr) out["prediction"] = prediction_json(*prediction);
    return one_line(out);
}

struct RunArguments : StudyArguments {
    std::string db;
    std::string jobs_out;
    bool quiet_estimates = false;
    std::int64_t logged_replicas = 0;
};

RunArguments parse_run(const std::vector<std::string>& arguments) {
    CommandLine line(
        "railyard run SCENARIO.toml [options]",
        "Simulates the scenario and prints goodput, the ledger of where the rest of the GPU\n"
        "time went, interruptions, recovery, and the estimates that the answer hangs on.");
    line.positional("scenario", 1);
    add_study_options(line);
    line.add()("db", a_text(), "Write runs, metrics, ledger and events to this SQLite file");
    line.add()("db-events", a_count(1), "Write the events of this many replicas to the database");
    line.add()(
        "jobs-out", a_text(),
        "Write what became of each job of the first replica, of many jobs, to this CSV file");
    line.add()("no-estimates", "Leave out what the answer hangs on (which takes more replicas)");
    const auto values = line.parse(arguments);
    RunArguments out;
    out.quiet_estimates = values.count("no-estimates") > 0;
    const std::int64_t logged = count_option(values, "db-events", 0);
    out.db = file_option(values, "db");
    if (!out.db.empty()) out.logged_replicas = logged;
    out.jobs_out = file_option(values, "jobs-out");
    static_cast<StudyArguments&>(out) = study_arguments(values, only_scenario(values, "run"));
    out.changes.phases = true;
    out.changes.threads = out.trials.threads;
    return out;
}

// All replicas, each into the database as it is done.
CampaignResult simulate(const RunArguments& args, const Scenario& scenario, SavedRun& saved) {
    Progress progress("replicas");
    CampaignOptions options;
    options.threads = args.trials.threads;
    options.logged_replicas = args.logged_replicas;
    std::optional<JobsFile> jobs;
    if (!args.jobs_out.empty()) {
        jobs.emplace(args.jobs_out, std::vector{args.trials.file});
        options.jobs = [&](const JobRecord& job) { jobs->add(job); };
    }
    options.cancelled = &interrupted();
    options.progress = progress.updates();
    options.finished = [&](const ReplicaResult& replica) { saved.add(0, replica); };
    CampaignResult result = run_campaign(scenario, options);
    if (jobs && result.replicas > 0) jobs->keep();
    return result;
}

// The result, and what is tried beside it: how far it may be off, and on which estimates it hangs.
void print_answer(const RunArguments& args, const Scenario& scenario,
                  const CampaignResult& result) {
    TrialOptions like = args.trials;
    like.replicas = scenario.world ? 1 : 4;
    const auto predicted = [&]() -> std::optional<Prediction> {
        const bool one_cluster = scenario.phases.empty();
        if (args.quiet_estimates || result.cancelled || !one_cluster) return std::nullopt;
        return run_prediction(scenario, result, like, args.changes);
    };
    if (args.json) {
        // Replicas of many jobs take long.
        const auto prediction = scenario.world ? std::nullopt : predicted();
        fmt::print("{}\n", json_text(scenario, result, prediction ? &*prediction : nullptr));
        return;
    }
    print_result(scenario, result);
    if (!result.cancelled && scenario.phases.empty())
        print_other_clock(scenario, result, like.text, args.changes, like.threads);
    if (const auto prediction = predicted()) {
        std::vector<ShowNumber> show;
        for (const Predicted& answer : prediction->answers) {
            const bool time = answer.name.ends_with("_time");
            const bool count = answer.name == "interruptions";
            show.emplace_back([time, count](double v) {
                return count ? fmt::format("{:.3g}", v) : time ? time_text(v) : percent(v);
            });
        }
        print_prediction(*prediction, show);
        constexpr std::int64_t replicas_enough = 8;
        like.replicas = replicas_enough;
        print_estimates(rank_estimates(like, {"", like.text, like.file, args.changes}),
                        scenario.estimates.size());
    }
    fmt::print("\n  digest {}  trajectory {}  seed {}  {} replicas of {}\n", result.digest,
               result.trajectory, scenario.seed, result.replicas, time_text(result.simulated_s));
    fmt::print("  simulated in {} of CPU, {} per replica; {} with all that was tried beside it\n",
               time_text(result.cpu_s),
               time_text(result.cpu_s / static_cast<double>(result.replicas)),
               time_text(process_cpu_seconds()));
}

// Says on standard error what keeps the result from being whole.
int exit_code_of(const Scenario& scenario, const CampaignResult& result, const SavedRun& saved) {
    if (result.cancelled) {
        fmt::print(stderr,
                   "railyard: interrupted: this is the result of the {} of {} replicas that were "
                   "finished\n",
                   result.replicas, scenario.replicas);
        return exit_interrupted;
    }
    switch (result.ending()) {
        case Ending::complete:
            if (!result.stuck) break;
            warn_of_deadlocks({{"", result.stuck->replica, result.stuck->report}});
            break;
        case Ending::stuck:
            fmt::print(stderr, "railyard: stuck: replica {} at {}: {}\n", result.stuck->replica,
                       to_text(result.stuck->at.time_since_epoch()), result.stuck->report);
            return exit_stuck;
        case Ending::limit:
            complain_of_limits(result.limits);
            if (result.worst == Ending::limit) {
                fmt::print(stderr,
                           "railyard: limit: run.events_max = {} was reached: this result is "
                           "partial\n    raise it with --set run.events_max=...\n",
                           scenario.events_max);
            }
            return exit_limit;
    }
    if (saved.failed()) {
        fmt::print(stderr, "railyard: this result is whole; the database is not\n");
        return exit_limit;
    }
    return interrupted() ? exit_interrupted : exit_ok;
}

}  // namespace

int cmd_run(const std::vector<std::string>& arguments) {
    const RunArguments args = parse_run(arguments);
    const Scenario scenario = load_scenario(args.trials.text, args.trials.file, args.changes);
    if (!can_start(scenario)) return exit_stuck;
    if (!args.jobs_out.empty() && !scenario.world) {
        throw ScenarioError("--jobs-out: the scenario has one job",
                            "it is for scenarios with many, under a scheduler of many");
    }
    SavedRun saved(args.db, {.kind = "run",
                             .key = {},
                             .file = scenario.file,
                             .title = scenario.title,
                             .version = result_version(),
                             .seed = scenario.seed,
                             .replicas_wanted = scenario.replicas,
                             .study = {}});
    saved.add_point(scenario, args.trials.text, args.changes.settings, "");
    const CampaignResult result = simulate(args, scenario, saved);
    saved.finish_point(0, result);
    saved.finish(result.cancelled ? "interrupted" : ending_name(result.ending()), &result);
    if (result.replicas == 0) {
        fmt::print(stderr, "railyard: interrupted before the first replica was finished\n");
        return exit_interrupted;
    }
    print_answer(args, scenario, result);
    return exit_code_of(scenario, result, saved);
}

}  // namespace railyard
