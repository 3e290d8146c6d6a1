#include "tools/cli/plan_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/text.h"
#include "tools/cli/prediction_text.h"
#include "tools/cli/run_text.h"
#include "tools/cli/terminal.h"
#include "tools/program/program.h"

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
                   ends_text(range)});
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
            cells.push_back(b.draws ? ends_text(*b.draws) : "the same");
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

Json stacks_json(const StackRange& range) {
    return {{"stacks", range.stacks},        {"fidelity", "analytic"},
            {"low_s", seconds(range.low)},   {"fastest", range.fastest},
            {"high_s", seconds(range.high)}, {"slowest", range.slowest}};
}

Json split_json(const ParallelPlan& p) {
    return {{"tensor", p.tensor},
            {"context", p.context},
            {"pipeline", p.pipeline},
            {"data", p.data},
            {"expert", p.expert}};
}

// The last level of a ramp.
Json stages_json(const Scenario& s) {
    Json out = Json::array();
    for (std::size_t i = 0; i < s.stages.size(); ++i) {
        const StageLevel& last = s.job.stages[i].levels.back();
        Json& stage =
            out.emplace_back(Json{{"name", s.stages[i].name}, {"nodes", s.stages[i].nodes}});
        stage.update(split_json(s.stages[i].plan));
        stage.update({{"levels", s.job.stages[i].levels.size()},
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
    Json out = split_json(p);
    out.update({{"shard_ranks", p.shards()},
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
                {"memory_bytes", best.memory_bytes}});
    if (!p.stage_layers.empty()) out["stage_layers"] = p.stage_layers;
    if (best.draws) out["network_draws"] = range_json(*best.draws);
    return out;
}

}  // namespace

void print_plans(const PlanAnswer& answer) {
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

Json plans_json(const PlanAnswer& answer) {
    const Scenario& s = answer.modelled;
    const BestPlans& best = answer.best;
    const Json plans =
        json_array(best.plans, [&](const BestPlan& each) { return plan_json(s, each); });
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

}  // namespace railyard
