// railyard plan: the step of a scenario's parallel plan, its memory, and the best plans there are.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/campaign/campaign.h"
#include "tools/cmd.h"
#include "tools/limits.h"
#include "tools/options.h"
#include "tools/terminal.h"
#include "tools/terminal_observer.h"

namespace railyard {

namespace {

using Json = nlohmann::ordered_json;

double mfu(const Scenario& s, const StepTime& step) {
    return step.model_flops / (seconds(step.duration()) * s.peak_flops());
}

std::string share(Duration part, const StepTime& step) {
    return fmt::format("{:.1f} %", 100 * seconds(part) / seconds(step.duration()));
}

void print_critical_path(const CriticalPath& path, Duration degraded) {
    double whole = seconds(degraded);
    for (const PathPart& part : path) whole += part.seconds;
    Table table({{"critical path of a step", Table::Align::left},
                 {"time", Table::Align::right},
                 {"share", Table::Align::right},
                 {"count", Table::Align::right}});
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

void print_given(const Scenario& s, const CriticalPath& path) {
    const StepTime& step = s.job.step;
    const ParallelPlan& p = s.plan;
    fmt::print("{}\n", coloured(s.title, Colour::bold));
    fmt::print("  {} on {} GPUs of {}: {}, {} sequences of {} tokens a step\n\n", s.model.name,
               p.gpus(), s.node.gpu.name, split_text(p), p.global_batch, p.sequence_length);
    Table table({{"the plan as given", Table::Align::left}, {"", Table::Align::right}});
    table.add({"step", to_text(step.duration())});
    table.add({"  compute", share(step.compute, step)});
    table.add({"  exposed communication", share(step.exposed_communication, step)});
    table.add({"  pipeline bubble", share(step.bubble, step)});
    table.add({"  waiting for stragglers", share(step.straggler_wait, step)});
    if (step.degraded > Duration{}) {
        table.add({"  waiting for silent faults", share(step.degraded, step)});
    }
    if (step.data_wait > Duration{}) {
        table.add({"  waiting for data", share(step.data_wait, step)});
    }
    if (s.fidelity != Fidelity::analytic) {
        table.add({"step on an ideal network", to_text(s.analytic_step.duration())});
    }
    table.add({"MFU", fmt::format("{:.1f} %", 100 * mfu(s, step))});
    table.add({"tokens per second", fmt::format("{:.4g}", static_cast<double>(s.tokens_per_step) /
                                                              seconds(step.duration()))});
    fmt::print("{}\n", table.text());
    print_critical_path(path, step.degraded);
    Table memory({{"memory per GPU", Table::Align::left},
                  {"GB", Table::Align::right},
                  {"=", Table::Align::left}});
    for (const MemoryUse& use : s.memory) {
        memory.add({use.component, fmt::format("{:.2f}", use.bytes * 1e-9), use.formula});
    }
    const double total = total_bytes(s.memory);
    const double capacity = static_cast<double>(s.node.gpu.hbm_capacity.count());
    memory.add({"total", fmt::format("{:.2f}", total * 1e-9),
                total <= capacity ? fmt::format("of {:.1f}", capacity * 1e-9)
                                  : fmt::format("of {:.1f}: does not fit", capacity * 1e-9)});
    fmt::print("{}\n", memory.text());
}

void print_best(const Scenario& s, const PlanSearch& search, double cpu_s) {
    if (search.best.empty()) {
        fmt::print("  none of {} plans fits into the memory of {} GPUs\n", search.tried,
                   s.plan.gpus());
        return;
    }
    Table table({{"best plans: TP", Table::Align::right},
                 {"CP", Table::Align::right},
                 {"PP", Table::Align::right},
                 {"DP", Table::Align::right},
                 {"EP", Table::Align::right},
                 {"interleave", Table::Align::right},
                 {"microbatch", Table::Align::right},
                 {"ZeRO", Table::Align::right},
                 {"recompute", Table::Align::left},
                 {"step", Table::Align::right},
                 {"MFU", Table::Align::right},
                 {"GB per GPU", Table::Align::right}});
    for (const RankedPlan& r : search.best) {
        const ParallelPlan& p = r.plan;
        const std::string zero = p.shard_ranks > 0 ? fmt::format("{} in {}", p.zero, p.shard_ranks)
                                                   : fmt::format("{}", p.zero);
        table.add({fmt::format("{}", p.tensor), fmt::format("{}", p.context),
                   fmt::format("{}", p.pipeline), fmt::format("{}", p.data),
                   fmt::format("{}", p.expert), fmt::format("{}", p.interleave),
                   fmt::format("{}", p.microbatch), zero,
                   recompute_names()[static_cast<std::size_t>(p.recompute)],
                   to_text(r.step.duration()), fmt::format("{:.1f} %", 100 * mfu(s, r.step)),
                   fmt::format("{:.1f}", r.memory_bytes * 1e-9)});
    }
    fmt::print("{}  {} plans tried, {} fit, {:.2g} s of CPU\n", table.text(), search.tried,
               search.fitting, cpu_s);
}

Json plan_json(const Scenario& s, const ParallelPlan& p, const StepTime& step, double memory) {
    return {{"tensor", p.tensor},
            {"context", p.context},
            {"pipeline", p.pipeline},
            {"data", p.data},
            {"expert", p.expert},
            {"shard_ranks", p.shards()},
            {"interleave", p.interleave},
            {"microbatch", p.microbatch},
            {"zero", p.zero},
            {"recompute", recompute_names()[static_cast<std::size_t>(p.recompute)]},
            {"step_s", seconds(step.duration())},
            {"compute_s", seconds(step.compute)},
            {"exposed_communication_s", seconds(step.exposed_communication)},
            {"bubble_s", seconds(step.bubble)},
            {"straggler_wait_s", seconds(step.straggler_wait)},
            {"degraded_s", seconds(step.degraded)},
            {"data_wait_s", seconds(step.data_wait)},
            {"mfu", mfu(s, step)},
            {"memory_bytes", memory}};
}

}  // namespace

int cmd_plan(const std::vector<std::string>& arguments) {
    CommandLine line("railyard plan SCENARIO.toml [options]",
                     "Prints the step of the scenario's parallel plan, the critical path that it "
                     "is made of, its\n"
                     "memory, and the fastest plans that fit into the same GPUs with the same "
                     "global batch, by trying all of them.");
    line.positional("scenario", 1);
    line.add_settings();
    line.add()("top", po::value<std::int64_t>()->default_value(5),
               "How many of the best plans to print");
    line.add()("json", "Print one JSON object on standard output and nothing else");
    const auto values = line.parse(arguments);
    if (!values) return exit_ok;
    if (!values->count("scenario")) {
        throw ScenarioError("plan needs a scenario file", "railyard plan SCENARIO.toml");
    }
    const std::int64_t top = (*values)["top"].as<std::int64_t>();
    if (top < 1) throw ScenarioError(fmt::format("--top: expected 1 or more, found {}", top));
    ScenarioChanges changes;
    changes.must_fit = false;  // a plan that does not fit is a reason to look for others
    changes.settings = settings_of(*values);
    changes.windows = std::make_shared<WindowCache>(terminal_observer());
    const Scenario s =
        load_scenario_file((*values)["scenario"].as<std::vector<std::string>>()[0], changes);
    need_one_job(s, "plan");
    if (s.model.name.empty()) {
        throw ScenarioError(fmt::format("{} has no job.model: there is nothing to plan", s.file));
    }
    Communicators groups = communicators(s, s.fidelity);
    const CriticalPath path =
        critical_path(s.model, s.plan, groups, s.parameter_bytes, s.optimizer_traffic);
    // Plans are compared on an ideal network: each has other groups, and each group would be measured.
    Communicators ideal = communicators(s, Fidelity::analytic);
    const double before = process_cpu_seconds();
    const PlanSearch search = search_plans(s.model, s.plan, s.plan.gpus(), ideal, s.parameter_bytes,
                                           s.optimizer_traffic, static_cast<std::size_t>(top));
    const double cpu_s = process_cpu_seconds() - before;
    if (values->count("json")) {
        Json best = Json::array();
        for (const RankedPlan& r : search.best)
            best.push_back(plan_json(s, r.plan, r.step, r.memory_bytes));
        Json parts = Json::array();
        for (const PathPart& part : path) {
            parts.push_back(
                {{"name", part.name}, {"seconds", part.seconds}, {"count", part.count}});
        }
        const Json out = {{"scenario", s.file},
                          {"version", version()},
                          {"given", plan_json(s, s.plan, s.job.step, total_bytes(s.memory))},
                          {"critical_path", parts},
                          {"best", best},
                          {"tried", search.tried},
                          {"fitting", search.fitting},
                          {"complete", s.limits->all().empty()},
                          {"cpu_s", cpu_s}};
        fmt::print("{}\n", out.dump());
        return complain_of_limits(s.limits->all());
    }
    print_given(s, path);
    print_best(s, search, cpu_s);
    return complain_of_limits(s.limits->all());
}

}  // namespace railyard
