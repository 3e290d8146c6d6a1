#include "models/training/plan_search.h"

#include <algorithm>

namespace railyard {

namespace {

bool faster(const RankedPlan& a, const RankedPlan& b) {
    const Duration step_a = a.step.duration();
    const Duration step_b = b.step.duration();
    return step_a != step_b ? step_a < step_b : a.memory_bytes < b.memory_bytes;
}

}  // namespace

PlanSearch search_plans(const TransformerModel& m, const ParallelPlan& base, std::int64_t gpus,
                        const Node& node, const ParameterBytes& bytes, double optimizer_traffic,
                        std::size_t keep) {
    PlanSearch out;
    const double capacity = static_cast<double>(node.gpu.hbm_capacity.count());
    const auto try_plan = [&](const ParallelPlan& plan) {
        ++out.tried;
        const double memory = total_bytes(memory_per_gpu(m, plan, bytes, node.gpu));
        if (memory > capacity) return;
        ++out.fitting;
        const RankedPlan ranked{plan, model_step(m, plan, node, bytes, optimizer_traffic), memory};
        if (out.best.size() == keep && !faster(ranked, out.best.back())) return;
        out.best.insert(std::upper_bound(out.best.begin(), out.best.end(), ranked, faster), ranked);
        if (out.best.size() > keep) out.best.pop_back();
    };
    // What remains once GPUs and microbatches are split: all of it.
    const auto try_options = [&](ParallelPlan plan) {
        const std::int64_t stage_layers = layers_per_stage(m, plan.pipeline);
        for (std::int64_t v = 1; v <= (plan.pipeline > 1 ? stage_layers : 1); ++v) {
            if (stage_layers % v != 0 || (v > 1 && plan.microbatches() % plan.pipeline != 0))
                continue;
            plan.interleave = v;
            for (plan.zero = 0; plan.zero <= 2; ++plan.zero) {
                for (const auto recompute :
                     {Recompute::selective, Recompute::elementwise, Recompute::full}) {
                    plan.recompute = recompute;
                    try_plan(plan);
                }
            }
        }
    };
    for (std::int64_t tensor = 1; tensor <= std::min(node.nvlink_domain, gpus); tensor *= 2) {
        if (m.heads % tensor != 0) continue;
        for (std::int64_t pipeline = 1; pipeline <= std::min(m.layers, gpus / tensor); ++pipeline) {
            if (!layers_split(m, pipeline) || gpus % (tensor * pipeline) != 0) continue;
            ParallelPlan plan = base;
            plan.tensor = tensor;
            plan.pipeline = pipeline;
            plan.data = gpus / (tensor * pipeline);
            for (plan.microbatch = 1; plan.microbatch <= 16; plan.microbatch *= 2) {
                if (plan.global_batch % (plan.data * plan.microbatch) == 0) try_options(plan);
            }
        }
    }
    return out;
}

}  // namespace railyard
