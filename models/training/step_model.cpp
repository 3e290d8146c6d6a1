#include "models/training/step_model.h"

namespace railyard {

const StepTime& StepModel::step(const ParallelPlan& plan, const std::vector<PartFault>& faults,
                                const std::vector<PartFault>& everywhere) {
    std::tuple condition(plan, faults, everywhere);
    const auto found = known_.find(condition);
    if (found != known_.end()) return found->second;
    std::vector<PartFault> all = everywhere;
    all.insert(all.end(), faults.begin(), faults.end());
    Communicators groups = groups_(all);
    StepTime step = model_step(model_, plan, groups, bytes_, optimizer_traffic_);
    if (!faults.empty()) step = with_one_slow_stage(step, this->step(plan, {}, everywhere));
    return known_.emplace(std::move(condition), step).first->second;
}

}  // namespace railyard
