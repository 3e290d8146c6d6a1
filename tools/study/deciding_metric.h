#pragma once
// By what designs are to be judged, where nobody says: what they get done, not what they are busy with.

#include <string>
#include <vector>

#include "models/campaign/campaign.h"
#include "sim/comparison.h"

namespace railyard {

struct DecidingMetric {
    std::string metric;
    Better better = Better::higher;
    std::string why;  // a sentence without its full stop; empty when somebody has named the metric
};

// One job on the same GPUs at the same clocks: goodput, of which a point is the same work in all designs.
// Where GPUs, clocks or kernels differ: tokens (steps, where tokens are not known) per time, or their cost
// where all have prices. Many jobs: the mean bounded slowdown, since the load that is offered sets goodput;
// where their steps take another time in another design, the time from submission to end.
DecidingMetric deciding_metric(const std::vector<const Scenario*>& designs);

}  // namespace railyard
