#include "models/training/step_model.h"

namespace railyard {

StepTime step_of(const StepWork& work, const ParallelPlan& plan, Communicators& groups) {
    if (!work.trace) {
        return model_step(work.model, plan, groups, work.bytes, work.optimizer_traffic);
    }
    StepTime step = trace_step(*work.trace, groups);
    if (step.duration() <= Duration{}) {
        throw ScenarioError(
            "job.trace: the step of these traces takes no time: no kernel, message or host node of "
            "them has a duration, operations or bytes above 0");
    }
    if (!work.model.name.empty()) step.model_flops = model_flops(work.model, plan);
    return step;
}

const StepTime& StepModel::step(const ParallelPlan& plan, const std::vector<PartFault>& faults,
                                const std::vector<PartFault>& everywhere) {
    std::tuple condition(plan, faults, everywhere);
    const auto found = known_.find(condition);
    if (found != known_.end()) return found->second;
    std::vector<PartFault> all = everywhere;
    all.insert(all.end(), faults.begin(), faults.end());
    Communicators groups = groups_(all);
    StepTime step = step_of(work_, plan, groups);
    if (!faults.empty()) step = with_one_slow_stage(step, this->step(plan, {}, everywhere));
    return known_.emplace(std::move(condition), step).first->second;
}

}  // namespace railyard
