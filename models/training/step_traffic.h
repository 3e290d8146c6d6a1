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
#include "models/training/step_model.h"

namespace railyard {

struct TrafficPart {
    LinkLoads loads;
    double busy_s = 0;  // of each step, alone
    // Seconds that a step takes longer at each of traffic_slowdowns().
    std::vector<double> longer_s;

    // On the line between neighbours; beyond the last, on the line of the last two. Needs slowdown >= 1.
    double longer_at(double slowdown) const;
};

struct StepTraffic {
    double step_s = 0;  // alone
    std::vector<TrafficPart> parts;
    bool endless = false;  // no steps: its one part is sent all the time
};

// What is sent all the time, as a checkpoint is for as long as it lasts. Its step is one second of it, which
// is longer by as much as others slow it down.
StepTraffic endless_traffic(LinkLoads loads);
// What is left of `alone` when a second of it takes so much longer. Rounded up: a store that shares
// itself alike is not in its own way.
Bandwidth beside_others(Bandwidth alone, double longer_s);

// From 1 on, ascending.
const std::vector<double>& traffic_slowdowns();

// The traffic of step_of(), on a network that keeps loads. The communicators are as before afterwards.
StepTraffic step_traffic(const StepWork& work, const ParallelPlan& plan, Communicators& groups);

}  // namespace railyard
