#include "tools/study/best_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace railyard {

BestPlan as_run(const Scenario& s) {
    BestPlan out{s.plan, s.job.step, {}, s.analytic_step.duration(), total_bytes(s.memory)};
    if (!s.draws.empty()) out.draws = range_of_steps(s);
    return out;
}

Scenario with_plan(const std::string& path, ScenarioChanges changes, const ParallelPlan& plan) {
    changes.plan = plan;
    return load_scenario_file(path, changes);
}

BestPlans find_best_plans(const Scenario& s, const std::string& path,
                          const ScenarioChanges& changes, std::size_t top,
                          std::int64_t splits_max) {
    BestPlans out;
    const double before = process_cpu_seconds();
    const PlanTask task = plan_task(s);
    Communicators ideal = communicators(s, Fidelity::analytic);
    out.ideal = search_plans(task, ideal);
    std::vector<RankedPlan> best = out.ideal.best;
    if (best.size() > top) best.resize(top);
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

}  // namespace railyard
