#pragma once
// How long one training step takes, and where the time goes. A pure function of its arguments, so
// its results can be remembered for as long as nothing about the job or its nodes changes.

#include "models/training/plan.h"

namespace railyard {

// One step of a synchronous job, on the campaign clock. The parts sum to duration() exactly.
struct StepTime {
    Duration compute{};
    Duration exposed_communication{};
    Duration bubble{};
    double model_flops = 0;  // of the whole step on all GPUs, recomputation not counted

    Duration duration() const { return compute + exposed_communication + bubble; }
};

constexpr Duration step_part_max = std::chrono::hours(24 * 365);

// The step of `plan` on nodes of this kind:
//
//     step = m (tf + tb) (1 + (p - 1) / (v m)) + exposed data-parallel communication + optimizer
//
// tf and tb are one microbatch's forward and backward on the slowest pipeline stage,
// tensor-parallel collectives included. Ignores: contention between collectives, stragglers, data
// loading; the plan's memory is checked by memory_per_gpu. A part longer than step_part_max, or not
// a number because a rate in the catalogue is zero, is cut to that. `optimizer_traffic` is bytes moved
// per parameter and step.
StepTime model_step(const TransformerModel& model, const ParallelPlan& plan, const Node& node,
                    const ParameterBytes& bytes, double optimizer_traffic);

}  // namespace railyard
