#pragma once
// What a training step sends between switches, and how much longer it takes when that is slow.
//
// Each kind of collective whose traffic passes between switches (a communicator of the plan, all of its
// groups at once) is one part. Its busy time is what its bytes take at the rate that it has alone,
// whether anything hides it or not. The step with one part slowed down is the step model's, with that
// communicator's network slower; slowdowns of several parts add up. NCCL chooses algorithms as if it were
// alone.

#include <vector>

#include "models/training/communicators.h"
#include "models/training/step.h"

namespace railyard {

struct TrafficPart {
    LinkLoads loads;
    double busy_s = 0;  // of each step, alone
    // Seconds that a step takes longer at each of traffic_slowdowns().
    std::vector<double> longer_s;

    // Interpolated; beyond the last in proportion. Needs slowdown >= 1.
    double longer_at(double slowdown) const;
};

struct StepTraffic {
    double step_s = 0;  // alone
    std::vector<TrafficPart> parts;
};

// From 1 on, ascending.
const std::vector<double>& traffic_slowdowns();

// The traffic of model_step(), on a network that keeps loads. The communicators are as before afterwards.
StepTraffic step_traffic(const TransformerModel& model, const ParallelPlan& plan,
                         Communicators& groups, const ParameterBytes& bytes,
                         double optimizer_traffic);

}  // namespace railyard
