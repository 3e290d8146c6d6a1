// railyard run: simulates a scenario and prints the answer.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "models/campaign/campaign.h"
#include "tools/cli/cmd.h"
#include "tools/cli/cost_report.h"
#include "tools/cli/metric_text.h"
#include "tools/cli/network_luck.h"
#include "tools/cli/options.h"
#include "tools/cli/prediction_text.h"
#include "tools/cli/run_text.h"
#include "tools/cli/study_arguments.h"
#include "tools/cli/terminal.h"
#include "tools/cli/terminal_observer.h"
#include "tools/program/json_text.h"
#include "tools/program/output_file.h"
#include "tools/results/saved_run.h"
#include "tools/study/trials.h"
#include "tools/study/verdict_estimates.h"

namespace railyard {

namespace {

// ": gpu 2 of node 1 at 90 % (alone 20 ms a step), ..."
std::string fault_text(const Scenario& s) {
    std::string out;
    for (std::size_t i = 0; i < s.faults.size(); ++i) {
        out += fmt::format("{} {} (alone {} a step)", i == 0 ? ":" : ",", describe(s.faults[i]),
                           to_text(s.fault_costs[i]));
    }
    return out;
}

std::string json_text(const Scenario& s, const CampaignResult& r, const Prediction* prediction) {
    std::vector<MetricSummary> summaries = r.metrics;
    std::optional<CostStudy> cost;
    if (s.cost) {
        cost = study_costs(s.cost->plan, r.uses);
        carry_prices(*cost, summaries);
    }
    Json limits = Json::array();
    for (const LimitReached& limit : r.limits) limits.push_back(limit.what);
    Json ledger = Json::object();
    for (std::size_t i = 0; i < r.ledger.size(); ++i) {
        if (!s.world && i >= job_category_count) break;  // of many jobs
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
    if (!s.draws.empty()) out["network_draws"] = draws_json(s);
    if (cost) out["cost"] = cost_json(s, *cost);
    if (prediction != nullptr) out["prediction"] = prediction_json(*prediction);
    return one_line(out);
}

// The same step with nothing in its way, and where packets carry it, by fair shares.
void print_other_networks(const Scenario& s) {
    const double whole = seconds(s.job.step.duration());
    const auto against = [&](const StepTime& other) {
        return fmt::format("{} ({:+.2f} %)", to_text(other.duration()),
                           100 * (seconds(other.duration()) / whole - 1));
    };
    fmt::print("  network: {}; on an ideal one the step takes {}{}\n", network_text(s),
               against(s.analytic_step),
               s.fair_step ? ", by fair shares without packets " + against(*s.fair_step) : "");
}

void print_design(const Scenario& s) {
    fmt::print("{}\n", coloured(s.title, Colour::bold));
    const std::int64_t spares = s.nodes.nodes - s.job.nodes;
    fmt::print("  {} nodes of {} with {} x {}{}\n", grouped(static_cast<double>(s.nodes.nodes)),
               s.node.name, s.node.gpus, s.node.gpu.name,
               spares > 0 ? fmt::format(", {} of them spare", spares) : std::string());
    if (!s.model.name.empty()) {
        const ParallelPlan& p = s.plan;
        fmt::print("  {} on {} GPUs: {}, {} sequences of {} tokens a step\n", s.model.name,
                   grouped(static_cast<double>(p.gpus())), split_text(p), p.global_batch,
                   p.sequence_length);
        fmt::print("  memory {:.1f} of {:.1f} GB per GPU\n", total_bytes(s.memory) * 1e-9,
                   static_cast<double>(s.node.gpu.usable_memory.count()) * 1e-9);
    }
    const StepTime& step = s.job.step;
    const double whole = seconds(step.duration());
    fmt::print(
        "  step {}: compute {:.1f} %, exposed communication {:.1f} %, pipeline bubble {:.1f} %\n",
        to_text(step.duration()), 100 * seconds(step.compute) / whole,
        100 * seconds(step.exposed_communication) / whole, 100 * seconds(step.bubble) / whole);
    if (step_is_modelled(s)) {
        fmt::print(
            "  published runs {}: half within {:g} % of their step, nine in ten within {:g} %\n",
            s.step_error.runs(), 100 * s.step_error.half, 100 * s.step_error.nine_tenths);
        if (s.step_error.named && !s.step_error.shown) {
            fmt::print("  of this software on such GPUs none shows more than one training\n");
        }
    }
    if (step.straggler_wait > Duration{}) {
        fmt::print("  of it waiting for stragglers {:.1f} %\n",
                   100 * seconds(step.straggler_wait) / whole);
    }
    if (step.degraded > Duration{}) {
        fmt::print("  of it waiting for parts with silent faults {:.1f} %{}\n",
                   100 * seconds(step.degraded) / whole, fault_text(s));
    }
    if (step.throttled > Duration{}) {
        fmt::print("  of it clocks and memory that heat has slowed {:.1f} %\n",
                   100 * seconds(step.throttled) / whole);
    }
    if (s.data) print_data(s);
    if (s.fidelity != Fidelity::analytic && (s.trace || !s.model.name.empty())) {
        print_other_networks(s);
        if (const std::string luck = draws_text(s); !luck.empty()) fmt::print("  {}\n", luck);
    }
    for (const LimitReached& limit : s.limits->all()) {
        fmt::print("  {}: {}\n", coloured("partial", Colour::red), limit.what);
    }
    fmt::print("  {}", s.checkpoint_description);
    if (s.job.checkpoint.mode != CheckpointMode::none) {
        fmt::print("; stall {}", to_text(s.job.checkpoint.stall_alone));
        if (s.job.checkpoint.mode == CheckpointMode::async) {
            fmt::print(", safe after {} more; a step takes {} longer meanwhile",
                       to_text(s.checkpoint_upload), to_text(s.job.checkpoint.upload_step_penalty));
        }
    }
    fmt::print("\n  failures: {}\n", failures_text(s));
}

// Replicas that met few interruptions, or none, say little of what the rare and long ones cost.
void print_few_interruptions(const Summary& interruptions) {
    constexpr double enough = 30;
    const double seen = interruptions.mean * static_cast<double>(interruptions.count);
    if (seen >= enough || interruptions.count < 2) return;
    fmt::print("  {}: {} in {} replicas together: intervals of so few leave out what is rare; {}\n",
               coloured("few", Colour::yellow),
               counted(static_cast<std::size_t>(std::llround(seen)), "interruption"),
               interruptions.count,
               seen > 0 ? fmt::format("--replicas {:.0f} has about {:.0f}",
                                      std::ceil(enough / interruptions.mean), enough)
                        : "--replicas gives more");
}

void print_headline(const Scenario& s, const CampaignResult& r) {
    Table table({"", ">mean", "95 % interval", ""});
    const auto row = [&](const char* label, const char* metric, const auto& show,
                         const char* meaning) {
        const Summary& m = r.metric(metric).summary;
        std::string interval = m.count == 1 ? "one replica: none" : "none";
        if (std::isfinite(m.ci95.low)) {
            const Interval possible = possible_part(metric, m);
            interval = fmt::format("{} to {}", show(possible.low), show(possible.high));
        }
        table.add({coloured(label, Colour::bold), show(m.mean), interval,
                   coloured(meaning, Colour::dim)});
    };
    row("goodput", "goodput", percent, "productive GPU time / all GPU time of the cluster");
    row("ETTR", "ettr", percent, "time in steps that were kept / time of the job");
    if (!s.model.name.empty()) {
        row("MFU", "mfu", percent, "model FLOPs of kept steps / bf16 peak, over the job's time");
        row("MFU of a step", "mfu_step", percent, "the same while stepping");
        row(
            "tokens trained", "tokens", [](double v) { return fmt::format("{:.4g}", v); }, "");
    }
    if (has_an_end(s)) {
        row("job finished", "job_finished", percent,
            s.stages.empty() ? "of the replicas reached job.length"
                             : "of the replicas reached the last stage's end");
    }
    row("steps kept", "steps", grouped, "");
    row("wall time", "wall_time", time_text, "");
    if (!s.causes.empty()) {
        row(
            "interruptions", "interruptions", [](double v) { return fmt::format("{:.1f}", v); },
            "unexpected ones");
        row("time between", "mean_time_between_interruptions", time_text, "");
    }
    fmt::print("\n{}", table.text());
    if (strike_rate(s).per_second > 0) print_few_interruptions(r.metric("interruptions").summary);
}

void print_ledger(const CampaignResult& r) {
    constexpr int bar_width = 24;
    Table table({"ledger", ">GPU time", "", ""});
    for (std::size_t i = 0; i < r.ledger.size(); ++i) {
        if (r.ledger[i] == 0) continue;
        const auto category = static_cast<Category>(i);
        table.add({std::string(category_name(category)), fmt::format("{:.3f} %", 100 * r.ledger[i]),
                   coloured(bar(r.ledger[i], bar_width), i == 0 ? Colour::green : Colour::yellow),
                   coloured(category_doc(category), Colour::dim)});
    }
    const double sum = std::accumulate(r.ledger.begin(), r.ledger.end(), 0.0);
    table.add({"total", fmt::format("{:.3f} %", 100 * sum), "", ""});
    fmt::print("\n{}", table.text());
}

// What a packet window has found that each storm does.
void print_storms(const Scenario& s, const CampaignResult& r) {
    bool any = false;
    for (const FailureCause& cause : s.causes) {
        if (!cause.storm) continue;
        if (!any) fmt::print("\n");
        any = true;
        fmt::print("  {} holds the job up for {}, {}\n", cause.name, to_text(cause.storm->stall),
                   cause.storm->fatal ? "until a connection gives up and the job fails"
                                      : "then it goes on");
    }
    if (any) {
        fmt::print("  {:.1f} storms a replica, {} of the job's time together\n", r.mean("storms"),
                   time_text(r.mean("storm_stall_time")));
    }
}

void print_interruptions(const Scenario& s, const CampaignResult& r) {
    if (s.causes.empty() && r.planned_interruptions == 0) return;
    std::vector<std::size_t> order(s.causes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
        return r.interruptions[a] > r.interruptions[b];
    });
    Table table({"interruptions", ">mean count", ">noticed after"});
    for (const std::size_t i : order) {
        table.add({s.causes[i].name, fmt::format("{:.1f}", r.interruptions[i]),
                   to_text(s.causes[i].detection)});
    }
    if (r.planned_interruptions > 0) {
        table.add({"(planned)", fmt::format("{:.1f}", r.planned_interruptions), "-"});
    }
    fmt::print("\n{}", table.text());
    print_storms(s, r);

    if (r.mean("interruptions") == 0) return;
    Table recovery({"an interruption costs, on average", ">"});
    for (const char* phase :
         {"lost_work", "detection", "replacement", "requeue_wait", "restart", "restore"}) {
        recovery.add({phase, time_text(r.mean(fmt::format("{}_per_interruption", phase)))});
    }
    fmt::print("\n{}", recovery.text());
}

// "Hourly" has two meanings; what the other one would give, on the same random numbers.
void print_other_clock(const Scenario& s, const CampaignResult& r, const std::string& text,
                       ScenarioChanges changes, unsigned threads) {
    if (s.checkpoint_clock.empty()) return;
    const bool wall = s.checkpoint_clock == "wall";
    changes.settings.push_back(fmt::format("job.checkpoint.clock={}", wall ? "training" : "wall"));
    std::optional<Scenario> loaded;
    try {
        loaded = load_scenario(text, s.file, changes);
    } catch (const Interrupted&) {
        return;
    }
    Scenario& other = *loaded;
    constexpr std::int64_t replicas_max = 8;
    other.replicas = std::min(r.replicas, replicas_max);
    CampaignOptions options;
    options.threads = threads;
    options.cancelled = &interrupted();
    const CampaignResult result = run_campaign(other, options);
    if (result.cancelled) return;
    double difference = 0;
    const std::vector<double>& goodput = r.values.find("goodput")->values;
    const std::vector<double>& others = result.values.find("goodput")->values;
    for (std::size_t i = 0; i < others.size(); ++i) {
        difference += (others[i] - goodput[i]) / static_cast<double>(others.size());
    }
    constexpr double worth_saying = 5e-5;
    if (std::abs(difference) < worth_saying) return;
    fmt::print(
        "\n  the checkpoint interval counts {};\n  {}, goodput would be {} ({:+.2f} points)\n",
        wall ? "wall-clock time from start to start" : "training time",
        wall ? "counting training time" : "from start to start on the wall clock",
        percent(r.mean("goodput") + difference), 100 * difference);
}

void print_estimates(const std::vector<EstimateEffect>& effects, std::size_t read_count) {
    constexpr std::size_t shown_max = 3;
    fmt::print("\n  {}\n", coloured("the estimates that this answer hangs on", Colour::dim));
    if (effects.empty()) {
        fmt::print("  none of the {} estimates that were read moves goodput\n", read_count);
        return;
    }
    Table table({"", "value", "tried", "goodput, points", "training speed"});
    using Change = EstimateEffect::Change;
    const auto points = [](const std::optional<Change>& c) {
        return c ? fmt::format("{:+.2f}", 100 * c->goodput) : std::string("impossible");
    };
    const auto speed = [](const std::optional<Change>& c) {
        return c ? fmt::format("{:+.1f} %", 100 * c->speed) : std::string("impossible");
    };
    for (std::size_t i = 0; i < std::min(shown_max, effects.size()); ++i) {
        const EstimateEffect& e = effects[i];
        table.add({e.estimate.path, e.estimate.value,
                   fmt::format("x {:.3g} to x {:.3g}{}", e.estimate.low_factor,
                               e.estimate.high_factor, e.estimate.range_given ? "" : " *"),
                   fmt::format("{} to {}", points(e.low), points(e.high)),
                   fmt::format("{} to {}", speed(e.low), speed(e.high))});
    }
    fmt::print(
        "{}  {} estimates were read, {} of them move goodput; * no range is printed for it\n",
        table.text(), read_count, effects.size());
}

// What another cluster's failure rates leave open of a share of the time, through what failures take of it.
ModelError with_borrowed_rates(const ModelError& error, const ModelError& rates,
                               const CampaignResult& r) {
    const double kept = r.mean("ettr");
    if (rates.nine_tenths == 0 || !(kept > 0)) return error;
    const double lost =
        r.mean("interruptions") *
        (r.mean("lost_work_per_interruption") + r.mean("recovery_per_interruption")) /
        r.mean("wall_time");
    if (!(lost > 0)) return error;
    // So many times as often, failures take as much more beside what is kept.
    const auto more = [x = lost / kept](double rate) { return (1 + x * (1 + rate)) / (1 + x) - 1; };
    return {std::hypot(error.half, more(rates.half)),
            std::hypot(error.nine_tenths, more(rates.nine_tenths))};
}

// Which metrics have an interval of prediction. An error of the step is one of what is not productive in it:
// the wide side, goodput then goes as MFU does.
std::vector<Question> run_questions(const Scenario& s, const CampaignResult& r) {
    std::vector<Question> out;
    const auto ask = [&](const char* metric, const ModelError& error, const char* measure,
                         bool share = true) {
        const double mean = r.mean(metric);
        if (!std::isfinite(mean) || mean <= 0) return;
        out.push_back({metric, mean, r.values.find(metric)->values, error, measure, share});
    };
    if (s.world) {
        ask("goodput", {}, "");
        ask("utilisation", {}, "");
        return out;
    }
    const ModelError step = step_is_modelled(s) ? ModelError(s.step_error) : ModelError{};
    const char* measure = s.step_error.named ? "a measured step (job.step.time)"
                                             : "a measured step (job.step.time), or the software's "
                                               "name (job.software)";
    StandaloneCatalogue own = s.open_catalogue();
    const ModelError rates =
        s.of_another_cluster ? read_model_error(own.catalogue, "interruptions") : ModelError{};
    const char* failures = "the cluster's own failures (import xid, slurm_events)";
    // What a training loses to failures and to what nobody plans, and its step beside that.
    const ModelError ettr = read_model_error(own.catalogue, "ettr");
    const ModelError losses = with_borrowed_rates(ettr, rates, r);
    const ModelError both{std::hypot(step.half, losses.half),
                          std::hypot(step.nine_tenths, losses.nine_tenths)};
    const bool by_rates = losses.nine_tenths > std::numbers::sqrt2 * ettr.nine_tenths;
    const char* of_losses = by_rates ? failures : "a run of its kind";
    const char* of_both = losses.nine_tenths > step.nine_tenths ? of_losses : measure;
    ask("goodput", both, of_both);
    ask("ettr", losses, of_losses);
    // A count that may be none has no such interval.
    const auto* counted = r.values.find("interruptions");
    if (s.of_another_cluster && counted != nullptr &&
        std::ranges::none_of(counted->values, [](double count) { return count == 0; })) {
        ask("interruptions", rates, failures, false);
    }
    if (!s.model.name.empty()) {
        ask("mfu", both, of_both);
        ask("mfu_step", step, measure);
    }
    if (!s.stages.empty()) {
        ask("step_time", step, measure, false);
        if (has_an_end(s)) ask("wall_time", both, of_both, false);
    }
    return out;
}

Prediction run_prediction(const Scenario& s, const CampaignResult& r, const TrialOptions& like,
                          ScenarioChanges changes) {
    const std::vector<Question> questions = run_questions(s, r);
    changes.one_draw = true;
    const Answers answers = [&](const std::vector<Perturbations>& variants) {
        TrialOptions options = like;
        for (const Question& question : questions) options.metrics.push_back(question.name);
        std::vector<ScenarioChanges> changed;
        for (const Perturbations& variant : variants) {
            changed.push_back(changes);
            changed.back().perturbations = variant;
        }
        std::vector<std::vector<double>> out;
        for (const std::optional<Trial>& trial : run_trials(options, changed)) {
            if (!trial) break;  // Ctrl-C
            std::vector<double>& row = out.emplace_back();
            for (std::size_t i = 0; trial->possible() && i < questions.size(); ++i) {
                row.push_back(trial->summary(i).mean);
            }
        }
        return out;
    };
    constexpr std::size_t of_many_jobs = 8;
    return predict(questions, s.estimates, s.world ? of_many_jobs : draws_of(s), s.seed, answers);
}

struct RunArguments {
    std::string path;
    ScenarioChanges changes;
    std::string db;
    std::string jobs_out;
    unsigned threads = 1;
    bool json = false;
    bool quiet_estimates = false;
    std::int64_t logged_replicas = 0;
};

void add_run_options(CommandLine& line) {
    line.positional("scenario", 1);
    add_study_options(line);
    line.add()("db", po::value<std::string>(),
               "Write runs, metrics, ledger and events to this SQLite file");
    line.add()("db-events", po::value<std::int64_t>()->default_value(1),
               "Write the events of this many replicas to the database");
    line.add()(
        "jobs-out", po::value<std::string>(),
        "Write what became of each job of the first replica, of many jobs, to this CSV file");
    line.add()("no-estimates", "Leave out what the answer hangs on (which takes more replicas)");
}

std::optional<RunArguments> parse_run(const std::vector<std::string>& arguments) {
    CommandLine line(
        "railyard run SCENARIO.toml [options]",
        "Simulates the scenario and prints goodput, the ledger of where the rest of the GPU\n"
        "time went, interruptions, recovery, and the estimates that the answer hangs on.");
    add_run_options(line);
    const auto values = line.parse(arguments);
    if (!values) return std::nullopt;
    RunArguments out;
    out.path = only_scenario(*values, "run");
    out.changes.settings = all_settings_of(*values);
    // One for all that is tried beside the scenario itself: most of it has the same windows.
    out.changes.windows = watched_windows();
    out.changes.phases = true;
    out.threads = threads_of(*values);
    out.json = values->count("json") > 0;
    out.quiet_estimates = values->count("no-estimates") > 0;
    const std::int64_t logged = count_option(*values, "db-events", 0);
    out.db = file_option(*values, "db");
    if (!out.db.empty()) out.logged_replicas = logged;
    out.jobs_out = file_option(*values, "jobs-out");
    return out;
}

// All replicas, each into the database as it is done.
CampaignResult simulate(const RunArguments& args, const Scenario& scenario, SavedRun& saved) {
    Progress progress("replicas");
    CampaignOptions options;
    options.threads = args.threads;
    options.logged_replicas = args.logged_replicas;
    std::optional<JobsFile> jobs;
    if (!args.jobs_out.empty()) {
        jobs.emplace(args.jobs_out, std::vector{args.path});
        options.jobs = [&](const JobRecord& job) { jobs->add(job); };
    }
    options.cancelled = &interrupted();
    options.progress = progress.updates();
    options.finished = [&](const ReplicaResult& replica) { saved.add(0, replica); };
    CampaignResult result = run_campaign(scenario, options);
    if (jobs && result.replicas > 0) jobs->keep();
    return result;
}

void print_phases(const Scenario& scenario, const CampaignResult& result) {
    const bool many = scenario.world != nullptr;
    Table table({"from", "nodes", ">goodput", many ? ">utilisation" : ">tokens a day",
                 many ? ">jobs completed" : ">interruptions", many ? "" : ">step"});
    for (std::size_t k = 0; k < scenario.phases.size(); ++k) {
        const ScenarioPhase& phase = scenario.phases[k];
        const auto mean = [&](const char* name) {
            return result.mean(fmt::format("phase_{}_{}", k + 1, name));
        };
        table.add(
            {phase.name, fmt::format("{} {}", phase.as->nodes.nodes, phase.as->node.name),
             percent(mean("goodput")),
             many ? percent(mean("utilisation")) : fmt::format("{:.4g}", mean("tokens_per_day")),
             fmt::format("{:.4g}", mean(many ? "jobs_completed" : "interruptions")),
             many ? "" : time_text(mean("step_time"))});
    }
    fmt::print("{}\n{}", coloured(scenario.title, Colour::bold), table.text());
    if (many) {
        fmt::print("  goodput {} of the GPUs that are there, {:.4g} of {:.4g} jobs completed\n\n",
                   percent(result.mean("goodput")), result.mean("jobs_completed"),
                   result.mean("jobs"));
    }
}

void print_result(const Scenario& scenario, const CampaignResult& result) {
    const bool phased = !scenario.phases.empty();
    if (phased) print_phases(scenario, result);
    if (scenario.world) {
        if (!phased) print_world_design(scenario);
        print_world(scenario, result);
        print_ledger(result);
        print_power(scenario, result);
    } else {
        if (!phased) print_design(scenario);
        print_stage_plans(scenario);
        print_headline(scenario, result);
        print_stages(scenario, result);
        print_ledger(result);
        print_power(scenario, result);
        print_storage(scenario, result);
        print_interruptions(scenario, result);
    }
    print_cost(scenario, result);
    std::fflush(stdout);  // the answer is out before anything else is tried
}

// The result, and what is tried beside it: how far it may be off, and on which estimates it hangs.
void print_answer(const RunArguments& args, const Scenario& scenario, const CampaignResult& result,
                  const std::string& text) {
    TrialOptions like;
    like.text = text;
    like.file = args.path;
    like.replicas = scenario.world ? 1 : 4;
    like.threads = args.threads;
    like.cancelled = &interrupted();
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
        print_other_clock(scenario, result, text, args.changes, args.threads);
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
        print_estimates(rank_estimates(like, {"", text, args.path, args.changes}),
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
    const std::optional<RunArguments> args = parse_run(arguments);
    if (!args) return exit_ok;
    const std::string text = read_file(args->path);
    const Scenario scenario = load_scenario(text, args->path, args->changes);
    if (!can_start(scenario)) return exit_stuck;
    if (!args->jobs_out.empty() && !scenario.world) {
        throw ScenarioError("--jobs-out: the scenario has one job",
                            "it is for scenarios with many, under a scheduler of many");
    }
    SavedRun saved(args->db, {.kind = "run",
                              .key = {},
                              .file = scenario.file,
                              .title = scenario.title,
                              .version = result_version(),
                              .seed = scenario.seed,
                              .replicas_wanted = scenario.replicas,
                              .study = {}});
    saved.add_point(scenario, text, args->changes.settings, "");
    const CampaignResult result = simulate(*args, scenario, saved);
    saved.finish_point(0, result);
    saved.finish(result.cancelled ? "interrupted" : ending_name(result.ending()), &result);
    if (result.replicas == 0) {
        fmt::print(stderr, "railyard: interrupted before the first replica was finished\n");
        return exit_interrupted;
    }
    print_answer(*args, scenario, result, text);
    return exit_code_of(scenario, result, saved);
}

}  // namespace railyard
