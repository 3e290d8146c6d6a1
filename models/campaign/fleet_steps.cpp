#include "models/campaign/fleet_steps.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <tuple>
#include <utility>

namespace railyard {

namespace {

class StepMemo {
  public:
    StepMemo(std::shared_ptr<const Scenario> job, std::vector<PartFault> slow_parts,
             std::vector<PartFault> throttled)
        : job_(std::move(job)),
          slow_parts_(std::move(slow_parts)),
          throttled_(std::move(throttled)) {}

    StepTime on(const std::vector<NodeIndex>& nodes, std::uint32_t conditions, HashSeed hashes) {
        // On an ideal network all places are alike, but for what is wrong with their nodes.
        const bool ideal = job_->fidelity == Fidelity::analytic;
        const Key key(ideal ? std::vector<NodeIndex>() : nodes, faults_on(nodes), conditions,
                      hashes);
        const std::lock_guard lock(mutex_);
        const auto known = known_.find(key);
        if (known != known_.end()) return known->second;
        return known_.emplace(key, compute(nodes, conditions, hashes)).first->second;
    }

    std::shared_ptr<const StepTraffic> traffic_on(const std::vector<NodeIndex>& nodes,
                                                  HashSeed hashes) {
        const Scenario& s = *job_;
        if (s.fidelity == Fidelity::analytic) return {};
        const std::lock_guard lock(mutex_);
        std::shared_ptr<const StepTraffic>& known = traffic_[{nodes, hashes}];
        if (!known) {
            Communicators groups = groups_on(nodes, faults_on(nodes), hashes, true);
            known = std::make_shared<StepTraffic>(
                step_traffic(s.model, s.plan, groups, s.parameter_bytes, s.optimizer_traffic));
        }
        return known;
    }

  private:
    using Key = std::tuple<std::vector<NodeIndex>, std::vector<PartFault>, std::uint32_t, HashSeed>;

    // Those faults of the scenario that are on these nodes from the start.
    std::vector<PartFault> faults_on(const std::vector<NodeIndex>& nodes) const {
        std::vector<PartFault> out;
        for (const PartFault& fault : job_->faults) {
            if (std::ranges::find(nodes, fault.node) != nodes.end()) out.push_back(fault);
        }
        return out;
    }

    StepTime compute(const std::vector<NodeIndex>& nodes, std::uint32_t conditions,
                     HashSeed hashes) const {
        StepTime out = step(nodes, {}, hashes);
        std::vector<PartFault> slow = faults_on(nodes);
        for (std::size_t i = 0; i < slow_parts_.size(); ++i) {
            if (!(conditions >> i & 1)) continue;
            slow.push_back(slow_parts_[i]);
            slow.back().node = nodes[0];
        }
        const StepTime sound = out;
        const auto longer = [&](const StepTime& step) {
            return std::max(Duration{}, step.duration() - sound.duration());
        };
        if (!slow.empty()) {
            out.degraded = longer(with_one_slow_stage(step(nodes, slow, hashes), sound));
        }
        if (throttled_.empty()) return out;
        std::vector<PartFault> hot = throttled_;  // on all nodes
        for (PartFault& fault : hot) fault.node = nodes[0];
        out.throttled = longer(step(nodes, hot, hashes));
        return out;
    }

    StepTime step(const std::vector<NodeIndex>& nodes, const std::vector<PartFault>& faults,
                  HashSeed hashes) const {
        const Scenario& s = *job_;
        Communicators groups = groups_on(nodes, faults, hashes, false);
        return model_step(s.model, s.plan, groups, s.parameter_bytes, s.optimizer_traffic);
    }

    Communicators groups_on(const std::vector<NodeIndex>& nodes,
                            const std::vector<PartFault>& faults, HashSeed hashes,
                            bool with_loads) const {
        const Scenario& s = *job_;
        const bool flow = s.fidelity != Fidelity::analytic;
        // A link's fault is where it is on the flow scale; a GPU's slows all that wait for it on either.
        std::vector<PartFault> everywhere;
        for (const PartFault& f : faults) {
            if (!flow || f.part == Part::gpu || f.part == Part::hbm) everywhere.push_back(f);
        }
        Communicators groups(s.collective_constants, with_faults(s.node, everywhere),
                             s.networks[0].sharp);
        if (!flow) return groups;
        std::vector<std::int64_t> gpu_of_rank;
        for (const NodeIndex node : nodes) {
            for (std::int64_t g = 0; g < s.node.gpus; ++g) {
                gpu_of_rank.push_back(std::int64_t{node} * s.node.gpus + g);
            }
        }
        GpuNetwork network = gpu_network(s, s.fidelity, faults, false, hashes);
        if (with_loads) network.keep_loads();
        groups.run_on(std::move(network), std::move(gpu_of_rank));
        return groups;
    }

    std::shared_ptr<const Scenario> job_;
    std::vector<PartFault> slow_parts_;
    std::vector<PartFault> throttled_;
    std::mutex mutex_;
    std::map<Key, StepTime> known_;
    std::map<std::pair<std::vector<NodeIndex>, HashSeed>, std::shared_ptr<const StepTraffic>>
        traffic_;
};

}  // namespace

PlacedSteps steps_by_placement(std::shared_ptr<const Scenario> job,
                               std::vector<PartFault> slow_parts,
                               std::vector<PartFault> throttled) {
    const auto memo =
        std::make_shared<StepMemo>(std::move(job), std::move(slow_parts), std::move(throttled));
    return {[memo](const std::vector<NodeIndex>& nodes, std::uint32_t conditions, HashSeed hashes) {
                return memo->on(nodes, conditions, hashes);
            },
            [memo](const std::vector<NodeIndex>& nodes, HashSeed hashes) {
                return memo->traffic_on(nodes, hashes);
            }};
}

StepTime usual_step(const FleetJobKind& kind, std::int64_t nodes, std::uint32_t conditions) {
    StepTime computing;
    computing.compute = std::chrono::seconds(1);
    if (!kind.step) return computing;
    std::vector<NodeIndex> first(static_cast<std::size_t>(nodes));
    std::iota(first.begin(), first.end(), NodeIndex{0});
    try {
        return kind.step(first, conditions, {});
    } catch (const NoPath&) {
        return computing;  // those that land there say so
    }
}

}  // namespace railyard
