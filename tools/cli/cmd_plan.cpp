// railyard plan: the step of a scenario's parallel plan, its memory, and the best plans there are.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "models/campaign/campaign.h"
#include "sim/text.h"
#include "tools/cli/cmd.h"
#include "tools/cli/network_luck.h"
#include "tools/cli/options.h"
#include "tools/cli/prediction_text.h"
#include "tools/cli/run_text.h"
#include "tools/cli/terminal.h"
#include "tools/cli/terminal_observer.h"
#include "tools/program/json_text.h"
#include "tools/study/trials.h"

namespace railyard {

namespace {

double mfu(const Scenario& s, const StepTime& step) {
    return step.model_flops / (seconds(step.duration()) * s.peak_flops());
}

std::string share(Duration part, const StepTime& step) {
    return fmt::format("{:.1f} %", 100 * seconds(part) / seconds(step.duration()));
}

void print_critical_path(const CriticalPath& path, Duration degraded) {
    double whole = seconds(degraded);
    for (const PathPart& part : path) whole += part.seconds;
    Table table({"critical path of a step", ">time", ">share", ">count"});
    for (const PathPart& part : path) {
        if (part.seconds <= 0) continue;
        table.add({std::string(part.name), to_text(from_seconds(part.seconds)),
                   fmt::format("{:.1f} %", 100 * part.seconds / whole),
                   fmt::format("{:.0f}", part.count)});
    }
    if (degraded > Duration{}) {
        table.add({"waiting for silent faults", to_text(degraded),
                   fmt::format("{:.1f} %", 100 * seconds(degraded) / whole), "1"});
    }
    fmt::print("{}\n", table.text());
}

// `measured`: what job.step.time says that the step takes.
void print_given(const Scenario& s, const CriticalPath& path, std::optional<Duration> measured) {
    const StepTime& step = s.job.step;
    const ParallelPlan& p = s.plan;
    fmt::print("{}\n", coloured(s.title, Colour::bold));
    fmt::print("  {} on {} GPUs of {}: {}, {} sequences of {} tokens a step\n", s.model.name,
               p.gpus(), s.node.gpu.name, split_text(p), p.global_batch, p.sequence_length);
    fmt::print("  network: {}\n\n", network_text(s));
    Table table({"the plan as given", ">"});
    if (measured) table.add({"step, measured (job.step.time)", to_text(*measured)});
    table.add({measured ? "step, modelled" : "step", to_text(step.duration())});
    table.add({"  compute", share(step.compute, step)});
    table.add({"  exposed communication", share(step.exposed_communication, step)});
    table.add({"  pipeline bubble", share(step.bubble, step)});
    table.add({"  waiting for stragglers", share(step.straggler_wait, step)});
    if (step.degraded > Duration{}) {
        table.add({"  waiting for silent faults", share(step.degraded, step)});
    }
    if (step.data_wait > Duration{}) table.add({"  waiting for data", share(step.data_wait, step)});
    if (s.fidelity != Fidelity::analytic) {
        table.add({"step on an ideal network", to_text(s.analytic_step.duration())});
    }
    if (!s.draws.empty()) {
        const DrawRange range = range_of_steps(s);
        table.add({fmt::format("step over {} draws of the network's luck", range.draws),
                   fmt::format("{} to {}", to_text(from_seconds(range.low)),
                               to_text(from_seconds(range.high)))});
    }
    table.add({"MFU, of the bf16 peak", fmt::format("{:.1f} %", 100 * mfu(s, step))});
    table.add({"tokens per second", fmt::format("{:.4g}", static_cast<double>(s.tokens_per_step) /
                                                              seconds(step.duration()))});
    fmt::print("{}\n", table.text());
    if (s.draws.empty() && !draws_text(s).empty()) fmt::print("  {}\n\n", draws_text(s));
    print_critical_path(path, step.degraded);
    Table memory({"memory per GPU", ">GB", "="});
    for (const MemoryUse& use : s.memory) {
        memory.add({use.component, fmt::format("{:.2f}", use.bytes * 1e-9), use.formula});
    }
    const double total = total_bytes(s.memory);
    const double capacity = static_cast<double>(s.node.gpu.usable_memory.count());
    memory.add({"total", fmt::format("{:.2f}", total * 1e-9),
                total <= capacity ? fmt::format("of {:.1f}", capacity * 1e-9)
                                  : fmt::format("of {:.1f}: does not fit", capacity * 1e-9)});
    fmt::print("{}\n", memory.text());
}

// A plan and its step as 'run' has them.
struct BestPlan {
    ParallelPlan plan;
    StepTime step;
    std::optional<DrawRange> draws{};  // of the network's luck, of which `step` has the middle one
    Duration ideal_step{};             // on an ideal network
    double memory_bytes = 0;
};

struct BestPlans {
    std::vector<BestPlan> plans;
    PlanSearch ideal;
    std::optional<NetworkSearch> network;  // none: the scenario's is the ideal one
    double cpu_s = 0;
    std::vector<LimitReached> limits;
};

std::string variant_text(const ParallelPlan& p) {
    return p.shard_ranks > 0 ? fmt::format("{} in {}", p.zero, p.shard_ranks)
                             : fmt::format("{}", p.zero);
}

void print_best(const Scenario& s, const BestPlans& best) {
    const PlanSearch& ideal = best.ideal;
    if (ideal.best.empty()) {
        fmt::print("  none of {} plans fits into the memory of {} GPUs\n", ideal.tried,
                   s.plan.gpus());
        return;
    }
    std::vector<Table::Column> columns = {
        ">best plans: TP", ">CP",   ">PP",       ">DP",   ">EP",         ">interleave",
        ">microbatch",     ">ZeRO", "recompute", ">step", ">MFU (bf16)", ">GB per GPU"};
    const bool luck =
        std::ranges::any_of(best.plans, [](const BestPlan& b) { return b.draws.has_value(); });
    if (luck) columns.push_back(">over draws of luck");
    if (best.network) columns.push_back(">step on an ideal network");
    Table table(columns);
    for (const BestPlan& b : best.plans) {
        const ParallelPlan& p = b.plan;
        std::vector<std::string> cells = {
            fmt::format("{}", p.tensor),
            fmt::format("{}", p.context),
            fmt::format("{}{}", p.stage_layers.empty() ? "" : "uneven ", p.pipeline),
            fmt::format("{}", p.data),
            fmt::format("{}", p.expert),
            fmt::format("{}", p.interleave),
            fmt::format("{}", p.microbatch),
            variant_text(p),
            word_of(recompute_names, p.recompute),
            to_text(b.step.duration()),
            fmt::format("{:.1f} %", 100 * mfu(s, b.step)),
            fmt::format("{:.1f}", b.memory_bytes * 1e-9)};
        if (luck) {
            cells.push_back(b.draws ? fmt::format("{} to {}", to_text(from_seconds(b.draws->low)),
                                                  to_text(from_seconds(b.draws->high)))
                                    : "the same");
        }
        if (best.network) cells.push_back(to_text(b.ideal_step));
        table.add(cells);
    }
    fmt::print(
        "{}  {} plans tried, {} fit, {:.2g} s of CPU; of each split over the GPUs the fastest\n",
        table.text(), ideal.tried, ideal.fitting, best.cpu_s);
    if (!best.network) return;
    const NetworkSearch& network = *best.network;
    fmt::print("  {} of {} splits tried on {}; {}\n", network.splits, ideal.best.size(),
               network_text(s),
               network.complete ? "the others are slower even on an ideal network"
                                : "the others are slower than these on an ideal one (--splits)");
    if (network.too_large > 0) {
        fmt::print("  {} of them have more flows than can be computed, and are left out\n",
                   network.too_large);
    }
}

// What the stacks of the catalogue make of a step whose software nobody has named, on an ideal network: the
// scenario's own is the same for all of them, and dear.
struct StackRange {
    std::size_t stacks = 0;
    Duration low = Duration::max();
    Duration high{};
    std::string fastest;
    std::string slowest;
};
StackRange over_stacks(const std::string& path, const ScenarioChanges& changes) {
    StackRange out;
    for (const std::string& name : software_names()) {
        ScenarioChanges changed = changes;
        changed.one_draw = true;
        changed.settings.push_back(fmt::format("job.software={}", name));
        changed.settings.push_back("run.fidelity=analytic");
        try {
            const Duration step = load_scenario_file(path, changed).job.step.duration();
            ++out.stacks;
            if (step < out.low) std::tie(out.low, out.fastest) = std::tie(step, name);
            if (step > out.high) std::tie(out.high, out.slowest) = std::tie(step, name);
        } catch (const ScenarioError&) {
            continue;  // a stack that does not run this plan
        }
    }
    return out;
}

Json stacks_json(const StackRange& range) {
    return {{"stacks", range.stacks},        {"fidelity", "analytic"},
            {"low_s", seconds(range.low)},   {"fastest", range.fastest},
            {"high_s", seconds(range.high)}, {"slowest", range.slowest}};
}

// The last level of a ramp.
Json stages_json(const Scenario& s) {
    Json out = Json::array();
    for (std::size_t i = 0; i < s.stages.size(); ++i) {
        const StageLevel& last = s.job.stages[i].levels.back();
        const ParallelPlan& p = s.stages[i].plan;
        out.push_back({{"name", s.stages[i].name},
                       {"nodes", s.stages[i].nodes},
                       {"tensor", p.tensor},
                       {"context", p.context},
                       {"pipeline", p.pipeline},
                       {"data", p.data},
                       {"expert", p.expert},
                       {"levels", s.job.stages[i].levels.size()},
                       {"global_batch", last.batch},
                       {"sequence_length", last.sequence_length},
                       {"step_s", seconds(last.step.duration())},
                       {"memory_bytes", total_bytes(s.stages[i].memory)}});
    }
    return out;
}

Json plan_json(const Scenario& s, const BestPlan& best) {
    const ParallelPlan& p = best.plan;
    const StepTime& step = best.step;
    Json out = {{"tensor", p.tensor},
                {"context", p.context},
                {"pipeline", p.pipeline},
                {"data", p.data},
                {"expert", p.expert},
                {"shard_ranks", p.shards()},
                {"interleave", p.interleave},
                {"microbatch", p.microbatch},
                {"zero", p.zero},
                {"recompute", word_of(recompute_names, p.recompute)},
                {"step_s", seconds(step.duration())},
                {"compute_s", seconds(step.compute)},
                {"exposed_communication_s", seconds(step.exposed_communication)},
                {"bubble_s", seconds(step.bubble)},
                {"straggler_wait_s", seconds(step.straggler_wait)},
                {"degraded_s", seconds(step.degraded)},
                {"data_wait_s", seconds(step.data_wait)},
                {"ideal_network_step_s", seconds(best.ideal_step)},
                {"mfu", mfu(s, step)},
                {"memory_bytes", best.memory_bytes}};
    if (!p.stage_layers.empty()) out["stage_layers"] = p.stage_layers;
    if (best.draws) out["network_draws"] = range_json(*best.draws);
    return out;
}

// The scenario with this plan, its step modelled.
Scenario with_plan(const std::string& path, ScenarioChanges changes, const ParallelPlan& plan) {
    changes.plan = plan;
    return load_scenario_file(path, changes);
}

// The modelled step of the plan as given.
Prediction plan_prediction(const Scenario& s, const std::string& path, ScenarioChanges changes) {
    Question step{"step", seconds(s.job.step.duration()), {}, s.step_error, "", false};
    step.measure = s.step_error.named ? "a measured step (job.step.time)"
                                      : "the software's name (job.software), or a measured step";
    for (const NetworkDraw& draw : s.draws) step.luck.push_back(seconds(draw.step.duration()));
    changes.plan = s.plan;
    return predict({step}, s.estimates, draws_of(s), s.seed,
                   read_again(path, changes, [](const Scenario& drawn) {
                       return std::vector<double>{seconds(drawn.job.step.duration())};
                   }));
}

BestPlan as_run(const Scenario& s) {
    BestPlan out{s.plan, s.job.step, {}, s.analytic_step.duration(), total_bytes(s.memory)};
    if (!s.draws.empty()) out.draws = range_of_steps(s);
    return out;
}

// Found on an ideal network, then on the scenario's with the luck that the plan as given is printed with,
// and at last put into the scenario as 'run' would, over all draws of that luck: which one is in the middle
// is the plan's.
BestPlans find_best(const Scenario& s, const std::string& path, const ScenarioChanges& changes,
                    std::size_t top, std::int64_t splits_max) {
    BestPlans out;
    const double before = process_cpu_seconds();
    const PlanTask task = plan_task(s);
    Communicators ideal = communicators(s, Fidelity::analytic);
    out.ideal = search_plans(task, ideal);
    std::vector<RankedPlan> best(
        out.ideal.best.begin(),
        out.ideal.best.begin() + static_cast<std::ptrdiff_t>(std::min(top, out.ideal.best.size())));
    if (s.fidelity != Fidelity::analytic) {
        Communicators network = communicators(s, s.fidelity, {}, false, usual_draw(s));
        out.network = search_on_network(task, out.ideal, network, top, splits_max);
        best = out.network->best;
    }
    for (const RankedPlan& each : best) {
        const Scenario planned = with_plan(path, changes, each.plan);
        out.plans.push_back(as_run(planned));
        for (const LimitReached& limit : planned.limits->all()) out.limits.push_back(limit);
    }
    std::ranges::stable_sort(out.plans, [](const BestPlan& a, const BestPlan& b) {
        return a.step.duration() < b.step.duration();
    });
    out.cpu_s = process_cpu_seconds() - before;
    return out;
}

struct PlanArguments {
    std::string path;
    std::int64_t top = 0;
    std::optional<std::int64_t> splits;
    std::vector<std::string> settings;
    bool json = false;
};

PlanArguments parse_plan(const std::vector<std::string>& arguments) {
    PlanArguments out;
    CommandLine line(
        "railyard plan SCENARIO.toml [options]",
        "Prints the step of the scenario's parallel plan, the critical path that it is made of, "
        "its\n"
        "memory, and the fastest plans that fit into the same GPUs with the same global batch: all "
        "are\ntried on an ideal network, and the best of them on the scenario's.");
    line.positional("scenario", 1);
    line.add_settings();
    line.add()("top", po::value(&out.top)->default_value(5), "How many of the best plans to print");
    line.add()("splits", a_count(),
               "How many splits over the GPUs to try on the scenario's network at most (default "
               "64, packet by packet as many as --top)");
    line.add_json();
    const auto values = line.parse(arguments);
    out.path = only_scenario(values, "plan");
    out.settings = settings_of(values);
    out.json = values.count("json") > 0;
    if (out.top < 1) {
        throw ScenarioError(fmt::format("--top: expected 1 or more, found {}", out.top));
    }
    if (values.count("splits")) out.splits = values["splits"].as<std::int64_t>();
    if (out.splits.value_or(out.top) < out.top) {
        throw ScenarioError(
            fmt::format("--splits: expected --top = {} or more, found {}", out.top, *out.splits));
    }
    return out;
}

// What is known of a scenario's plan, of others for its model, and how far each may be off.
struct PlanAnswer {
    const Scenario& given;
    const Scenario& modelled;  // as given, or with its step modelled
    CriticalPath path{};
    std::optional<Duration> measured;
    BestPlans best{};
    bool cut_short = false;
    Prediction prediction{};
    std::optional<StackRange> stacks{};
};

Json answer_json(const PlanAnswer& answer) {
    const Scenario& s = answer.modelled;
    const BestPlans& best = answer.best;
    Json plans = Json::array();
    for (const BestPlan& each : best.plans) plans.push_back(plan_json(s, each));
    const Json parts = json_array(answer.path, [](const PathPart& part) -> Json {
        return {{"name", part.name}, {"seconds", part.seconds}, {"count", part.count}};
    });
    Json out = {
        {"scenario", s.file},
        {"version", version()},
        {"fidelity", word_of(fidelity_names, s.fidelity)},
        {"network", network_text(s)},
        {"mfu_peak", {{"precision", "bf16"}, {"flops_per_gpu", s.node.gpu.bf16_dense.per_second}}},
        {"given", plan_json(s, as_run(s))},
        {"critical_path", parts},
        {"best", plans},
        {"tried", best.ideal.tried},
        {"fitting", best.ideal.fitting},
        {"complete", best.limits.empty() && !answer.cut_short},
        {"cpu_s", best.cpu_s}};
    out["prediction"] = prediction_json(answer.prediction);
    if (answer.stacks && answer.stacks->stacks > 0) out["software"] = stacks_json(*answer.stacks);
    if (!answer.given.stages.empty()) out["stages"] = stages_json(answer.given);
    if (answer.measured) out["given"]["measured_step_s"] = seconds(*answer.measured);
    if (best.network) {
        out["splits"] = {{"fitting", best.ideal.best.size()},
                         {"tried_on_network", best.network->splits},
                         {"others_are_slower", best.network->complete}};
    }
    return out;
}

void print_answer(const PlanAnswer& answer) {
    const std::optional<StackRange>& stacks = answer.stacks;
    print_given(answer.modelled, answer.path, answer.measured);
    print_stage_plans(answer.given);
    if (!answer.given.stages.empty()) fmt::print("\n");
    print_prediction(answer.prediction, {[](double v) { return to_text(from_seconds(v)); }});
    if (stacks && stacks->stacks > 0) {
        fmt::print(
            "  no software is named: on the {} stacks of the catalogue the step takes {} ({}) to "
            "{} ({}), on an ideal network\n",
            stacks->stacks, to_text(stacks->low), stacks->fastest, to_text(stacks->high),
            stacks->slowest);
    }
    fmt::print("\n");
    if (!answer.cut_short) print_best(answer.modelled, answer.best);
}

}  // namespace

int cmd_plan(const std::vector<std::string>& arguments) {
    const PlanArguments args = parse_plan(arguments);
    ScenarioChanges changes;
    changes.must_run = false;  // a plan that does not fit is a reason to look for others
    changes.settings = args.settings;
    changes.windows = watched_windows();
    changes.overrides_read = std::make_shared<OverridesRead>();
    const Scenario given = load_scenario_file(args.path, changes);
    need_one_job(given, "plan");
    print_warnings(given.warnings);
    if (given.model.name.empty()) {
        throw ScenarioError(
            fmt::format("{} has no job.model: there is nothing to plan", given.file));
    }
    std::optional<Duration> measured;
    if (given.given_step || given.trace) measured = given.job.step.duration();
    const Scenario s = measured ? with_plan(args.path, changes, given.plan) : given;
    if (!takes_first_step(s)) return exit_stuck;
    PlanAnswer answer{.given = given, .modelled = s, .measured = measured};
    Communicators groups = communicators(s, s.fidelity, {}, false, usual_draw(s));
    answer.path = critical_path(s.model, s.plan, groups, s.parameter_bytes, s.optimizer_traffic);
    constexpr std::int64_t splits_on_flows = 64;
    const std::int64_t splits_max =
        args.splits.value_or(s.fidelity == Fidelity::packet ? args.top : splits_on_flows);
    try {
        answer.best =
            find_best(s, args.path, changes, static_cast<std::size_t>(args.top), splits_max);
    } catch (const Interrupted&) {
        answer.cut_short = true;
    }
    for (const LimitReached& limit : s.limits->all()) answer.best.limits.push_back(limit);
    answer.prediction = plan_prediction(s, args.path, changes);
    if (!s.step_error.named && !measured && !answer.cut_short) {
        answer.stacks = over_stacks(args.path, changes);
    }
    if (args.json) {
        fmt::print("{}\n", one_line(answer_json(answer)));
    } else {
        print_answer(answer);
    }
    print_warnings(unread_overrides(s));
    if (answer.cut_short) {
        fmt::print(stderr,
                   "railyard: interrupted: this is the plan as given; others were not all tried\n");
        return exit_interrupted;
    }
    return complain_of_limits(answer.best.limits);
}

}  // namespace railyard
