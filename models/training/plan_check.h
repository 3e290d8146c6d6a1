#pragma once
// What a plan asks of a model: that heads, layers, tokens, experts and batches divide.

#include "models/training/plan.h"

namespace railyard {

struct PlanProblem {
    std::string key;  // of [job.parallel]
    std::string message;
    std::string help;
};

// All that is wrong with splitting the model so, memory and the number of GPUs apart. Nothing: a step and
// its memory can be computed.
std::vector<PlanProblem> plan_problems(const TransformerModel& model, const ParallelPlan& plan);

// The number of virtual stages nearest to the plan's own, as a ratio, that its layers allow; the plan's
// own where they allow none.
std::int64_t nearest_interleave(const TransformerModel& model, const ParallelPlan& plan);

}  // namespace railyard
