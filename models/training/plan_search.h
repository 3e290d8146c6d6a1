#pragma once
// The best ways to split a model over so many GPUs, found by trying all that make sense.

#include <limits>
#include <vector>

#include "models/training/step.h"

namespace railyard {

// What is planned: `base` gives the global batch, the sequence length and all else that a search leaves as
// it is.
struct PlanTask {
    TransformerModel model;
    ParallelPlan base;
    std::int64_t gpus = 0;
    ParameterBytes bytes;
    double optimizer_traffic = 0;
    double host_bytes_per_gpu = std::numeric_limits<double>::infinity();  // for what leaves a GPU
};

struct RankedPlan {
    ParallelPlan plan;
    StepTime step;
    double memory_bytes = 0;  // per GPU
};

struct PlanSearch {
    // The fastest plan that fits for each split (tensor, context, pipeline, data, expert). The fastest comes
    // first; among equals, the one that needs less memory.
    std::vector<RankedPlan> best;
    std::int64_t tried = 0;
    std::int64_t fitting = 0;
};

// Tries every combination of tensor (powers of two inside the NVLink domain), context (powers of two that
// leave a rank 2048 tokens), pipeline (with stages as even as layers allow), expert (powers of two),
// interleave, microbatch of up to 16 sequences, recomputation, ZeRO stage (3 without a pipeline only) and,
// with ZeRO-3, shards over all ranks or inside the NVLink domain. And the base: its split is no slower.
PlanSearch search_plans(const PlanTask& task, Communicators& groups);

struct NetworkSearch {
    std::vector<RankedPlan> best;  // as above, of the splits that were tried
    std::int64_t splits = 0;       // that were tried
    std::int64_t too_large = 0;    // of them, those whose exchanges are too many flows to compute
    // No other split is faster than the last of the best, even on an ideal network.
    bool complete = false;
};

// The `keep` best on a network that is slower than the ideal one that they were searched on. Splits are tried
// in the order of their steps there, each with all its plans, until the next has no chance, or `splits_max`
// have been tried: to measure the groups of one takes long.
NetworkSearch search_on_network(const PlanTask& task, const PlanSearch& ideal,
                                Communicators& groups, std::size_t keep, std::int64_t splits_max);

}  // namespace railyard
