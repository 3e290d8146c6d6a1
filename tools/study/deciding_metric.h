#pragma once
// By what designs are to be judged, where nobody says: what they get done, not what they are busy with.

#include <span>
#include <string>

#include "sim/comparison.h"
#include "tools/results/work_basis.h"

namespace railyard {

struct DecidingMetric {
    std::string metric;
    Better better = Better::higher;
    std::string why;  // a sentence without its full stop; empty when somebody has named the metric
};

// One job on the same GPUs at the same clocks: goodput, of which a point is the same work in all designs.
// Where GPUs, clocks or kernels differ: tokens (steps, where tokens are not known) per time, or their cost
// where all have prices. Many jobs that have more to do than there is time for: the work that is done, or
// goodput where that is the same. Fewer: the mean bounded slowdown, since the load that is offered sets
// goodput; where their steps take another time in another design, the time from submission to end.
DecidingMetric deciding_metric(std::span<const WorkBasis> designs);

// Where only money is asked for: the cost of tokens, or of productive GPU time where tokens are not known.
DecidingMetric deciding_cost(std::span<const WorkBasis> designs);

}  // namespace railyard
