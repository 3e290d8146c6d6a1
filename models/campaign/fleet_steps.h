#pragma once
// What a step of a model takes on the nodes that a job has got.

#include <functional>
#include <memory>

#include "models/campaign/scenario.h"

namespace railyard {

// For the plan, model and node of `job`, one of the scenario's kinds of jobs, on its compute network. Each
// distinct set of nodes is computed once; may be called from several threads. Throws NoPath.
std::function<StepTime(const std::vector<NodeIndex>&)> steps_by_placement(
    std::shared_ptr<const Scenario> job);

}  // namespace railyard
