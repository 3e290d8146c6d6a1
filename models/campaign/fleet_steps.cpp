#include "models/campaign/fleet_steps.h"

#include <map>
#include <mutex>

namespace railyard {

namespace {

class PlacedSteps {
  public:
    explicit PlacedSteps(std::shared_ptr<const Scenario> job) : job_(std::move(job)) {}

    StepTime on(const std::vector<NodeIndex>& nodes) {
        const bool ideal = job_->fidelity == Fidelity::analytic;  // there all places are alike
        const std::vector<NodeIndex> key = ideal ? std::vector<NodeIndex>() : nodes;
        const std::lock_guard lock(mutex_);
        const auto known = known_.find(key);
        if (known != known_.end()) return known->second;
        return known_.emplace(key, compute(nodes)).first->second;
    }

  private:
    StepTime compute(const std::vector<NodeIndex>& nodes) const {
        const Scenario& s = *job_;
        Communicators groups(s.collective_constants, s.node, s.networks[0].sharp);
        if (s.fidelity != Fidelity::analytic) {
            std::vector<std::int64_t> gpu_of_rank;
            for (const NodeIndex node : nodes) {
                for (std::int64_t g = 0; g < s.node.gpus; ++g) {
                    gpu_of_rank.push_back(std::int64_t{node} * s.node.gpus + g);
                }
            }
            groups.run_on(gpu_network(s, Fidelity::flow, {}), std::move(gpu_of_rank));
        }
        return model_step(s.model, s.plan, groups, s.parameter_bytes, s.optimizer_traffic);
    }

    std::shared_ptr<const Scenario> job_;
    std::mutex mutex_;
    std::map<std::vector<NodeIndex>, StepTime> known_;
};

}  // namespace

std::function<StepTime(const std::vector<NodeIndex>&)> steps_by_placement(
    std::shared_ptr<const Scenario> job) {
    const auto steps = std::make_shared<PlacedSteps>(std::move(job));
    return [steps](const std::vector<NodeIndex>& nodes) { return steps->on(nodes); };
}

}  // namespace railyard
