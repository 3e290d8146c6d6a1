#pragma once
// Steps, remembered: between two changes of a job's condition every step is the same step.

#include <functional>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "models/training/step.h"

namespace railyard {

class StepModel {
  public:
    // `groups` gives what the ranks talk over when these of the cluster's parts are faulty.
    using Groups = std::function<Communicators(const std::vector<PartFault>& faults)>;
    StepModel(TransformerModel model, ParameterBytes bytes, double optimizer_traffic, Groups groups)
        : model_(std::move(model)),
          bytes_(bytes),
          optimizer_traffic_(optimizer_traffic),
          groups_(std::move(groups)) {}

    // With `faults` on one stage, `everywhere` on all. Computed when it is first asked for. Throws NoPath.
    const StepTime& step(const ParallelPlan& plan, const std::vector<PartFault>& faults = {},
                         const std::vector<PartFault>& everywhere = {});

  private:
    TransformerModel model_;
    ParameterBytes bytes_;
    double optimizer_traffic_;
    Groups groups_;
    std::map<std::tuple<ParallelPlan, std::vector<PartFault>, std::vector<PartFault>>, StepTime>
        known_;
};

}  // namespace railyard
