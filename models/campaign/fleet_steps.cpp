#include "models/campaign/fleet_steps.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

namespace railyard {

namespace {

class PlacedSteps {
  public:
    PlacedSteps(std::shared_ptr<const Scenario> job, std::vector<PartFault> slow_parts,
                std::vector<PartFault> throttled)
        : job_(std::move(job)),
          slow_parts_(std::move(slow_parts)),
          throttled_(std::move(throttled)) {}

    StepTime on(const std::vector<NodeIndex>& nodes, std::uint32_t conditions) {
        const bool ideal = job_->fidelity == Fidelity::analytic;  // there all places are alike
        const Key key(ideal ? std::vector<NodeIndex>() : nodes, conditions);
        const std::lock_guard lock(mutex_);
        const auto known = known_.find(key);
        if (known != known_.end()) return known->second;
        return known_.emplace(key, compute(nodes, conditions)).first->second;
    }

  private:
    using Key = std::pair<std::vector<NodeIndex>, std::uint32_t>;

    StepTime compute(const std::vector<NodeIndex>& nodes, std::uint32_t conditions) const {
        StepTime out = step(nodes, {});
        std::vector<PartFault> slow;
        for (std::size_t i = 0; i < slow_parts_.size(); ++i) {
            if (conditions >> i & 1) slow.push_back(slow_parts_[i]);
        }
        const StepTime sound = out;
        const auto longer = [&](const StepTime& step) {
            return std::max(Duration{}, step.duration() - sound.duration());
        };
        const auto with = [&](std::vector<PartFault> faults) {
            for (PartFault& fault : faults) fault.node = nodes[0];
            return step(nodes, faults);
        };
        if (!slow.empty()) out.degraded = longer(with_one_slow_stage(with(slow), sound));
        if (!throttled_.empty()) out.throttled = longer(with(throttled_));  // on all nodes
        return out;
    }

    StepTime step(const std::vector<NodeIndex>& nodes, const std::vector<PartFault>& faults) const {
        const Scenario& s = *job_;
        const bool flow = s.fidelity != Fidelity::analytic;
        // A link's fault is where it is on the flow scale; a GPU's slows all that wait for it on either.
        std::vector<PartFault> everywhere;
        for (const PartFault& f : faults) {
            if (!flow || f.part == Part::gpu || f.part == Part::hbm) everywhere.push_back(f);
        }
        Communicators groups(s.collective_constants, with_faults(s.node, everywhere),
                             s.networks[0].sharp);
        if (flow) {
            std::vector<std::int64_t> gpu_of_rank;
            for (const NodeIndex node : nodes) {
                for (std::int64_t g = 0; g < s.node.gpus; ++g) {
                    gpu_of_rank.push_back(std::int64_t{node} * s.node.gpus + g);
                }
            }
            groups.run_on(gpu_network(s, Fidelity::flow, faults), std::move(gpu_of_rank));
        }
        return model_step(s.model, s.plan, groups, s.parameter_bytes, s.optimizer_traffic);
    }

    std::shared_ptr<const Scenario> job_;
    std::vector<PartFault> slow_parts_;
    std::vector<PartFault> throttled_;
    std::mutex mutex_;
    std::map<Key, StepTime> known_;
};

}  // namespace

std::function<StepTime(const std::vector<NodeIndex>&, std::uint32_t)> steps_by_placement(
    std::shared_ptr<const Scenario> job, std::vector<PartFault> slow_parts,
    std::vector<PartFault> throttled) {
    const auto steps =
        std::make_shared<PlacedSteps>(std::move(job), std::move(slow_parts), std::move(throttled));
    return [steps](const std::vector<NodeIndex>& nodes, std::uint32_t conditions) {
        return steps->on(nodes, conditions);
    };
}

StepTime usual_step(const FleetJobKind& kind, std::int64_t nodes, std::uint32_t conditions) {
    StepTime computing;
    computing.compute = std::chrono::seconds(1);
    if (!kind.step) return computing;
    std::vector<NodeIndex> first(static_cast<std::size_t>(nodes));
    std::iota(first.begin(), first.end(), NodeIndex{0});
    try {
        return kind.step(first, conditions);
    } catch (const NoPath&) {
        return computing;  // those that land there say so
    }
}

}  // namespace railyard
