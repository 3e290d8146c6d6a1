#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tools/cli/cost_report.h"
#include "tools/cli/metric_text.h"
#include "tools/cli/prediction_text.h"
#include "tools/cli/run_text.h"
#include "tools/cli/terminal.h"

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
    if (step_is_modelled(s)) {
        fmt::print(
            "  published runs {}: half within {:g} % of their step, nine in ten within {:g} %\n",
            s.step_error.runs(), 100 * s.step_error.half, 100 * s.step_error.nine_tenths);
        if (s.step_error.named && !s.step_error.shown) {
            fmt::print("  of this software on such GPUs none shows more than one training\n");
        }
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

}  // namespace

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

}  // namespace railyard
