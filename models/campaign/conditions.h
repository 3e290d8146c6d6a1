#pragma once
// Steps under other conditions than the usual: with slow parts, on fewer nodes.

#include "models/campaign/scenario.h"

namespace railyard {

constexpr std::size_t slow_conditions_max = 6;  // kinds of slow parts in one scenario

// job.step.time is there: nothing models a step.
bool step_is_given(const Scenario& scenario);

// The plan with so many data-parallel replicas, each with the batch that it had.
ParallelPlan with_replicas(const ParallelPlan& plan, std::int64_t data);

// Fills the job's tables of steps: by the conditions of scenario.slow_parts, and by size.
void model_conditions(Scenario& scenario);

// Takes out all that fails: run.failures = false.
void leave_out_failures(Scenario& scenario);

}  // namespace railyard
