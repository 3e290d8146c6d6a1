#include "models/training/step_model.h"

namespace railyard {

const StepTime& StepModel::step(const ParallelPlan& plan, const std::vector<PartFault>& faults) {
    std::pair condition(plan, faults);
    const auto found = known_.find(condition);
    if (found != known_.end()) return found->second;
    Communicators groups = groups_(faults);
    const StepTime step = model_step(model_, plan, groups, bytes_, optimizer_traffic_);
    return known_.emplace(std::move(condition), step).first->second;
}

}  // namespace railyard
