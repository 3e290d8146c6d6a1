#pragma once
// The best parallel plans for a scenario's model and GPUs, with the steps that 'run' would have with them.

#include <optional>
#include <string>
#include <vector>

#include "tools/study/trials.h"

namespace railyard {

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

// The scenario's own plan.
BestPlan as_run(const Scenario& scenario);
// The scenario with this plan, its step modelled.
Scenario with_plan(const std::string& path, ScenarioChanges changes, const ParallelPlan& plan);

// Found on an ideal network, then on the scenario's with the luck that the plan as given is printed with,
// and at last put into the scenario as 'run' would, over all draws of that luck: which one is in the middle
// is the plan's.
BestPlans find_best_plans(const Scenario& scenario, const std::string& path,
                          const ScenarioChanges& changes, std::size_t top, std::int64_t splits_max);

// What the stacks of the catalogue make of a step whose software nobody has named, on an ideal network: the
// scenario's own is the same for all of them, and dear.
struct StackRange {
    std::size_t stacks = 0;
    Duration low = Duration::max();
    Duration high{};
    std::string fastest;
    std::string slowest;
};
StackRange over_stacks(const std::string& path, const ScenarioChanges& changes);

}  // namespace railyard
