#pragma once
// The best ways to split a model over so many GPUs, found by trying all that make sense.

#include <vector>

#include "models/training/step.h"

namespace railyard {

struct RankedPlan {
    ParallelPlan plan;
    StepTime step;
    double memory_bytes = 0;  // per GPU
};

struct PlanSearch {
    std::vector<RankedPlan> best;  // fastest step first; of equals the one that needs less memory
    std::int64_t tried = 0;
    std::int64_t fitting = 0;
};

// Tries every combination of tensor (powers of two inside the NVLink domain), context (powers of two
// that leave a rank 2048 tokens), pipeline, expert (powers of two), interleave, microbatch,
// recomputation, ZeRO stage (3 without a pipeline only) and, with ZeRO-3, shards over all ranks or
// inside the NVLink domain, for `gpus` GPUs. Global batch, sequence length and everything else stay as
// in `base`. Keeps the best `keep`.
PlanSearch search_plans(const TransformerModel& model, const ParallelPlan& base, std::int64_t gpus,
                        Communicators& groups, const ParameterBytes& bytes,
                        double optimizer_traffic, std::size_t keep);

}  // namespace railyard
