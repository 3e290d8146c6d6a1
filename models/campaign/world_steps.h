#pragma once
// What a step of a model takes on the nodes that a job has got.

#include <memory>

#include "models/campaign/scenario.h"

namespace railyard {

// For the plan, model and node of `job`, one of the scenario's kinds of jobs, on its compute network, with
// what is slow of their parts from the start, these of `slow_parts` (bits) on the first of the nodes, and
// what heat slows of all. Each distinct set of nodes is computed once for each seed of the network's hashes;
// may be called from several threads.
struct PlacedSteps {
    PlacedStep step;
    PlacedTraffic traffic;  // when no part of a node is slow
    PlacedRoutes routes;
    PlacedTransfer transfer;
};
PlacedSteps steps_by_placement(std::shared_ptr<const Scenario> job,
                               std::vector<PartFault> slow_parts, std::vector<PartFault> throttled);

// Sets what the steps of a kind of such jobs take and send, on all of its nodes and on fewer.
void place_steps(const std::shared_ptr<const Scenario>& job,
                 const std::vector<PartFault>& slow_parts, const std::vector<PartFault>& throttled,
                 WorldJobKind& kind);

// What work without a model sends, in steps that take so long: a ring through all of the job's GPUs for a
// share of its time, as fast as its NICs are while nobody else sends.
PlacedTraffic share_by_placement(std::shared_ptr<const Scenario> job, double share, double step_s);

// The step of a kind of jobs on the cluster's first nodes; without a model, or a path, it only computes.
StepTime usual_step(const WorldJobKind& kind, std::int64_t nodes, std::uint32_t conditions);

}  // namespace railyard
