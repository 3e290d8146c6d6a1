#pragma once
// Steps, remembered: between two changes of a job's condition every step is the same step.

#include <functional>
#include <map>
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

    // Computed when it is first asked for. Throws NoPath.
    const StepTime& step(const ParallelPlan& plan, const std::vector<PartFault>& faults = {});

  private:
    TransformerModel model_;
    ParameterBytes bytes_;
    double optimizer_traffic_;
    Groups groups_;
    std::map<std::pair<ParallelPlan, std::vector<PartFault>>, StepTime> known_;
};

}  // namespace railyard
