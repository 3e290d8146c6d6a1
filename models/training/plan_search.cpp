#include "models/training/plan_search.h"

#include <algorithm>

namespace railyard {

namespace {

constexpr std::int64_t context_tokens_min = 2048;  // of a rank: shorter pieces only wait

bool faster(const RankedPlan& a, const RankedPlan& b) {
    const Duration step_a = a.step.duration();
    const Duration step_b = b.step.duration();
    return step_a != step_b ? step_a < step_b : a.memory_bytes < b.memory_bytes;
}

}  // namespace

PlanSearch search_plans(const TransformerModel& m, const ParallelPlan& base, std::int64_t gpus,
                        Communicators& groups, const ParameterBytes& bytes,
                        double optimizer_traffic, std::size_t keep) {
    PlanSearch out;
    const Node& node = groups.node();
    const double capacity = static_cast<double>(node.gpu.hbm_capacity.count());
    const auto try_plan = [&](const ParallelPlan& plan) {
        ++out.tried;
        const double memory = memory_bytes_per_gpu(m, plan, bytes, node.gpu);
        if (memory > capacity) return;
        ++out.fitting;
        const RankedPlan ranked{plan, model_step(m, plan, groups, bytes, optimizer_traffic),
                                memory};
        if (out.best.size() == keep && !faster(ranked, out.best.back())) return;
        out.best.insert(std::upper_bound(out.best.begin(), out.best.end(), ranked, faster), ranked);
        if (out.best.size() > keep) out.best.pop_back();
    };
    // What remains once GPUs and microbatches are split: all of it.
    const auto try_options = [&](ParallelPlan plan) {
        const std::int64_t stage_layers = layers_per_stage(m, plan);
        const std::int64_t in_domain = std::max<std::int64_t>(1, node.nvlink_domain / plan.tensor);
        for (std::int64_t v = 1; v <= (plan.pipeline > 1 ? stage_layers : 1); ++v) {
            if (stage_layers % v != 0 || (v > 1 && plan.microbatches() % plan.pipeline != 0))
                continue;
            plan.interleave = v;
            // Weights that are gathered for every microbatch and a pipeline don't go together.
            for (plan.zero = 0; plan.zero <= (plan.pipeline == 1 ? 3 : 2); ++plan.zero) {
                for (const auto recompute :
                     {Recompute::selective, Recompute::elementwise, Recompute::full}) {
                    plan.recompute = recompute;
                    plan.shard_ranks = 0;
                    try_plan(plan);
                    if (plan.zero < 3 || in_domain >= plan.replica_ranks() ||
                        plan.replica_ranks() % in_domain != 0 || in_domain % plan.expert != 0) {
                        continue;
                    }
                    plan.shard_ranks = in_domain;
                    try_plan(plan);
                }
            }
        }
    };
    const auto try_batches = [&](ParallelPlan plan) {
        for (plan.microbatch = 1; plan.microbatch <= 16; plan.microbatch *= 2) {
            if (plan.global_batch % (plan.data * plan.microbatch) == 0) try_options(plan);
        }
    };
    for (std::int64_t tensor = 1; tensor <= std::min(node.nvlink_domain, gpus); tensor *= 2) {
        if (m.heads % tensor != 0) continue;
        for (std::int64_t context = 1;
             context == 1 || base.sequence_length / context >= context_tokens_min; context *= 2) {
            const std::int64_t replica = tensor * context;
            if (context > 1 && base.sequence_length % (2 * context) != 0) break;
            if (base.sequence_length / context % tensor != 0) break;
            for (std::int64_t pipeline = 1; pipeline <= std::min(m.layers, gpus / replica);
                 ++pipeline) {
                if (gpus % (replica * pipeline) != 0) continue;
                ParallelPlan plan = base;
                plan.tensor = tensor;
                plan.context = context;
                plan.pipeline = pipeline;
                plan.first_stage_layers = plan.last_stage_layers = 0;
                if (!layers_split(m, plan)) continue;
                plan.data = gpus / (replica * pipeline);
                for (plan.expert = 1; plan.expert <= std::max<std::int64_t>(1, m.experts);
                     plan.expert *= 2) {
                    if (plan.replica_ranks() % plan.expert == 0 && m.experts % plan.expert == 0)
                        try_batches(plan);
                }
            }
        }
    }
    return out;
}

}  // namespace railyard
