#pragma once
// Steps, remembered: between two changes of a job's condition every step is the same step.

#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "models/training/step_trace.h"

namespace railyard {

// What a job's step is made of: a model that a plan splits, or a trace.
struct StepWork {
    TransformerModel model;
    ParameterBytes bytes;
    double optimizer_traffic = 0;
    std::shared_ptr<const StepTrace> trace{};  // null: modelled
};
StepTime step_of(const StepWork& work, const ParallelPlan& plan, Communicators& groups);

class StepModel {
  public:
    // `groups` gives what the ranks talk over when these of the cluster's parts are faulty.
    using Groups = std::function<Communicators(const std::vector<PartFault>& faults)>;
    StepModel(StepWork work, Groups groups) : work_(std::move(work)), groups_(std::move(groups)) {}

    // With `faults` on one stage, `everywhere` on all. Computed when it is first asked for. Throws NoPath.
    const StepTime& step(const ParallelPlan& plan, const std::vector<PartFault>& faults = {},
                         const std::vector<PartFault>& everywhere = {});

  private:
    StepWork work_;
    Groups groups_;
    std::map<std::tuple<ParallelPlan, std::vector<PartFault>, std::vector<PartFault>>, StepTime>
        known_;
};

}  // namespace railyard
