#include "models/training/plan_search.h"

#include <algorithm>
#include <optional>

#include "models/training/plan_check.h"
#include "sim/cancel.h"

namespace railyard {

namespace {

constexpr std::int64_t context_tokens_min = 2048;  // of a rank: shorter pieces only wait
constexpr std::int64_t microbatch_max = 16;

bool faster(const RankedPlan& a, const RankedPlan& b) {
    const Duration step_a = a.step.duration();
    const Duration step_b = b.step.duration();
    return step_a != step_b ? step_a < step_b : a.memory_bytes < b.memory_bytes;
}

bool same_split(const ParallelPlan& a, const ParallelPlan& b) {
    return a.tensor == b.tensor && a.context == b.context && a.pipeline == b.pipeline &&
           a.data == b.data && a.expert == b.expert;
}

class Search {
  public:
    Search(const PlanTask& task, Communicators& groups)
        : task_(task), groups_(groups), capacity_(real(groups.node().gpu.usable_memory.count())) {}

    // Calls visit(plan) for each split, the base's at last if it is none of them, all else as in the base.
    template <class Visit>
    void each_split(Visit&& visit) const;
    // The fastest plan of a split that fits, if any does.
    std::optional<RankedPlan> fastest_of(ParallelPlan split);

    std::int64_t tried() const { return tried_; }
    std::int64_t fitting() const { return fitting_; }

  private:
    void split_evenly(ParallelPlan& plan) const;
    void try_options(ParallelPlan plan);
    void try_plan(const ParallelPlan& plan);

    const PlanTask& task_;
    Communicators& groups_;
    double capacity_;
    std::optional<RankedPlan> fastest_;
    std::int64_t tried_ = 0;
    std::int64_t fitting_ = 0;
};

template <class Visit>
void Search::each_split(Visit&& visit) const {
    const TransformerModel& m = task_.model;
    const std::int64_t tokens = task_.base.sequence_length;
    bool base_visited = task_.base.gpus() != task_.gpus;
    for (std::int64_t tensor = 1; tensor <= std::min(groups_.node().nvlink_domain, task_.gpus);
         tensor *= 2) {
        for (std::int64_t context = 1; context == 1 || tokens / context >= context_tokens_min;
             context *= 2) {
            const std::int64_t replica = tensor * context;
            for (std::int64_t pipeline = 1; pipeline <= std::min(m.layers, task_.gpus / replica);
                 ++pipeline) {
                if (task_.gpus % (replica * pipeline) != 0) continue;
                ParallelPlan plan = task_.base;
                plan.tensor = tensor;
                plan.context = context;
                plan.pipeline = pipeline;
                plan.schedule = pipeline == 1 ? PipelineSchedule::one_forward_one_backward
                                              : task_.base.schedule;
                plan.data = task_.gpus / (replica * pipeline);
                split_evenly(plan);
                for (plan.expert = 1; plan.expert <= std::max<std::int64_t>(1, m.experts);
                     plan.expert *= 2) {
                    if (!plan_problems(m, plan).empty()) continue;
                    base_visited = base_visited || same_split(plan, task_.base);
                    visit(plan);
                }
            }
        }
    }
    if (!base_visited) visit(task_.base);
}

// Its smallest pieces, and as many layers on each stage as they allow.
void Search::split_evenly(ParallelPlan& plan) const {
    plan.microbatch = plan.interleave = 1;
    plan.shard_ranks = 0;
    plan.first_stage_layers = plan.last_stage_layers = 0;
    plan.stage_layers.clear();
    if (!layers_split(task_.model, plan)) {
        plan.stage_layers = even_stages(task_.model.layers, plan.pipeline);
    }
}

std::optional<RankedPlan> Search::fastest_of(ParallelPlan split) {
    heed_cancel();
    fastest_.reset();
    const ParallelPlan& base = task_.base;
    if (same_split(split, base) && plan_problems(task_.model, base).empty()) try_plan(base);
    split_evenly(split);
    for (split.microbatch = 1; split.microbatch <= microbatch_max; ++split.microbatch) {
        if (split.global_batch % (split.data * split.microbatch) == 0) try_options(split);
    }
    return fastest_;
}

void Search::try_options(ParallelPlan plan) {
    const std::int64_t stage_layers = layers_per_stage(task_.model, plan);
    const std::int64_t in_domain =
        std::max<std::int64_t>(1, groups_.node().nvlink_domain / plan.tensor);
    // Unequal stages have parts as unequal.
    const bool equal = plan.stage_layers.empty();
    const std::int64_t parts_most = plan.pipeline == 1 ? 1
                                    : equal            ? stage_layers
                                            : *std::ranges::min_element(plan.stage_layers);
    for (std::int64_t v = 1; v <= parts_most; ++v) {
        if (equal && stage_layers % v != 0) continue;
        if (v > 1 && plan.microbatches() % plan.pipeline != 0) continue;
        plan.interleave = v;
        // Weights that are gathered for every microbatch and a pipeline don't go together, and stage 2 is 1
        // there.
        for (plan.zero = 0; plan.zero <= (plan.pipeline == 1 ? 3 : 1); ++plan.zero) {
            for (const auto recompute :
                 {Recompute::none, Recompute::selective, Recompute::elementwise, Recompute::full}) {
                // Fused kernels never keep scores: none is selective.
                if (recompute == Recompute::none && plan.fused_attention) continue;
                plan.recompute = recompute;
                plan.shard_ranks = 0;
                try_plan(plan);
                const bool whole_experts = plan.fold_experts || in_domain % plan.expert == 0;
                if (plan.zero < 3 || in_domain >= plan.replica_ranks() ||
                    plan.replica_ranks() % in_domain != 0 || !whole_experts) {
                    continue;
                }
                plan.shard_ranks = in_domain;
                try_plan(plan);
            }
        }
    }
}

void Search::try_plan(const ParallelPlan& plan) {
    ++tried_;
    const double memory = memory_bytes_per_gpu(task_.model, plan, task_.bytes, groups_.node().gpu);
    if (memory > capacity_) return;
    if (plan.offload_layers > 0 &&
        host_bytes_per_gpu(task_.model, plan) > task_.host_bytes_per_gpu) {
        return;
    }
    ++fitting_;
    const RankedPlan ranked{
        plan, model_step(task_.model, plan, groups_, task_.bytes, task_.optimizer_traffic), memory};
    if (!fastest_ || faster(ranked, *fastest_)) fastest_ = ranked;
}

}  // namespace

PlanSearch search_plans(const PlanTask& task, Communicators& groups) {
    Search search(task, groups);
    PlanSearch out;
    search.each_split([&](const ParallelPlan& split) {
        if (const auto fastest = search.fastest_of(split)) out.best.push_back(*fastest);
    });
    std::ranges::stable_sort(out.best, faster);
    out.tried = search.tried();
    out.fitting = search.fitting();
    return out;
}

NetworkSearch search_on_network(const PlanTask& task, const PlanSearch& ideal,
                                Communicators& groups, std::size_t keep, std::int64_t splits_max) {
    Search search(task, groups);
    NetworkSearch out;
    for (const RankedPlan& split : ideal.best) {
        if (out.best.size() == keep && split.step.duration() >= out.best.back().step.duration()) {
            out.complete = true;
            return out;
        }
        if (out.splits == splits_max) return out;
        ++out.splits;
        try {
            const auto fastest = search.fastest_of(split.plan);
            out.best.insert(std::upper_bound(out.best.begin(), out.best.end(), *fastest, faster),
                            *fastest);
        } catch (const NoPath&) {
            continue;  // it can't run here
        } catch (const ScenarioError&) {
            ++out.too_large;
            continue;
        }
        if (out.best.size() > keep) out.best.pop_back();
    }
    out.complete = true;
    return out;
}

}  // namespace railyard
