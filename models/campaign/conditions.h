#pragma once
// Steps under other conditions than the usual: with slow parts, on fewer nodes.

#include "models/campaign/scenario.h"

namespace railyard {

constexpr std::size_t slow_conditions_max = 6;  // kinds of slow parts in one scenario

// The steps of the scenario's job at this fidelity, on a draw of the network's luck; both must outlive it.
// `sound` is as communicators() has it.
StepModel steps_of(const Scenario& scenario, Fidelity fidelity, const NetworkDraw* draw,
                   GpuNetwork* sound = nullptr);

// What a step takes longer with these faults: on one stage, and everywhere.
Duration held_up(StepModel& steps, const ParallelPlan& plan, const std::vector<PartFault>& faults,
                 const std::vector<PartFault>& everywhere = {});

// What a step takes longer than usual by the conditions of the scenario's slow parts, bits.
std::vector<Duration> slowed_steps(const Scenario& scenario, StepModel& steps,
                                   const ParallelPlan& plan);

// The plan with so many data-parallel replicas, each with the batch that it had.
ParallelPlan with_replicas(const ParallelPlan& plan, std::int64_t data);

// Fills the job's tables of steps: by the conditions of scenario.slow_parts, and by size.
void model_conditions(Scenario& scenario);

// Takes out all that fails: run.failures = false.
void leave_out_failures(Scenario& scenario);

}  // namespace railyard
