#include "models/campaign/world_steps.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <tuple>
#include <utility>

#include "models/campaign/sections.h"
#include "models/campaign/store_traffic.h"

namespace railyard {

namespace {

// Then steps and uploads of one job meet on the way into its own nodes' NICs.
bool uploads_beside_steps(const Scenario& s) {
    const CheckpointSpec& c = s.job.checkpoint;
    return shares_network_with_store(s) && (c.mode == CheckpointMode::async || c.tiers.size() > 1);
}

class StepMemo {
  public:
    StepMemo(std::shared_ptr<const Scenario> job, std::vector<PartFault> slow_parts,
             std::vector<PartFault> throttled)
        : job_(std::move(job)),
          slow_parts_(std::move(slow_parts)),
          throttled_(std::move(throttled)) {}

    StepTime on(const std::vector<NodeIndex>& nodes, std::uint32_t conditions,
                const NetworkNow& network) {
        // On an ideal network all places are alike, but for what is wrong with their nodes.
        const bool ideal = job_->fidelity == Fidelity::analytic;
        const Key key(ideal ? std::vector<NodeIndex>() : nodes, faults_on(nodes), conditions,
                      network.hashes, network.broken);
        const std::lock_guard lock(mutex_);
        auto known = known_.find(key);
        if (known == known_.end()) {
            known = known_.emplace(key, compute(nodes, conditions, network)).first;
        }
        StepTime out = known->second;
        out.data_wait = wait_for_batch(job_->job.step.late(out.duration()));
        return out;
    }

    std::shared_ptr<const StepTraffic> traffic_on(const std::vector<NodeIndex>& nodes,
                                                  const NetworkNow& network) {
        const Scenario& s = *job_;
        if (s.fidelity == Fidelity::analytic) return {};
        const std::lock_guard lock(mutex_);
        std::shared_ptr<const StepTraffic>& known =
            traffic_[{nodes, network.hashes, network.broken}];
        if (!known) {
            const NetworkNotes notes{.loads = true, .cables = {}};
            Communicators groups = groups_on(nodes, faults_on(nodes), network, notes);
            known = std::make_shared<StepTraffic>(step_traffic(step_work(s), s.plan, groups));
        }
        return known;
    }

    // A ring through all GPUs of the job that takes this share of its time, alone; nothing hides it.
    std::shared_ptr<const StepTraffic> share_on(const std::vector<NodeIndex>& nodes,
                                                const NetworkNow& network, double share,
                                                double step_s) {
        if (job_->fidelity == Fidelity::analytic) return {};
        const std::lock_guard lock(mutex_);
        std::shared_ptr<const StepTraffic>& known =
            traffic_[{nodes, network.hashes, network.broken}];
        if (known) return known;
        StepTraffic out;
        out.step_s = step_s;
        Communicators groups =
            groups_on(nodes, faults_on(nodes), network, {.loads = true, .cables = {}});
        groups.of(Collective::all_gather, 1, std::ssize(nodes) * job_->node.gpus);
        for (const Communicator* ring : groups.between_switches()) {
            TrafficPart part{.loads = ring->loads, .busy_s = share * step_s, .longer_s = {}};
            for (const double slowdown : traffic_slowdowns()) {
                part.longer_s.push_back(part.busy_s * (slowdown - 1));
            }
            out.parts.push_back(std::move(part));
        }
        known = std::make_shared<StepTraffic>(std::move(out));
        return known;
    }

    // Nothing where it goes over a network of its own, or has no way.
    std::shared_ptr<const StepTraffic> transfer_on(const std::vector<NodeIndex>& nodes,
                                                   const NetworkNow& network,
                                                   const TransferSpec& transfer) {
        if (!shares_network_with_store(*job_)) return {};
        const std::lock_guard lock(mutex_);
        const auto [known, is_new] =
            transfers_.try_emplace({{nodes, network.hashes, network.broken},
                                    transfer.direction,
                                    transfer.cap.bits_per_second()});
        if (!is_new) return known->second;
        try {
            known->second = std::make_shared<StepTraffic>(endless_traffic(
                transfer_loads(*job_, transfer, nodes, topology(network.broken), network.hashes)));
        } catch (const NoPath&) {
        }
        return known->second;
    }

    // Routes are taken round what they meet, until they meet no more.
    NetworkState met_on(const std::vector<NodeIndex>& nodes, const NetworkNow& network) {
        if (network.broken.empty() || job_->fidelity == Fidelity::analytic) return {};
        const std::lock_guard lock(mutex_);
        return met_by_routes(network.broken,
                             [&](const NetworkState& met) -> const std::vector<bool>& {
                                 return cables_on(nodes, {network.hashes, met});
                             });
    }

  private:
    using Key = std::tuple<std::vector<NodeIndex>, std::vector<PartFault>, std::uint32_t, HashSeed,
                           NetworkState>;
    using Place = std::tuple<std::vector<NodeIndex>, HashSeed, NetworkState>;
    // What is written down of a network while a step is computed on it.
    struct NetworkNotes {
        bool loads = false;
        std::shared_ptr<CablesUsed> cables;
    };

    // Those faults of the scenario that are on these nodes from the start.
    std::vector<PartFault> faults_on(const std::vector<NodeIndex>& nodes) const {
        std::vector<PartFault> out;
        for (const PartFault& fault : job_->faults) {
            if (std::ranges::find(nodes, fault.node) != nodes.end()) out.push_back(fault);
        }
        return out;
    }

    // Those that the step's routes pass; none when no way is left.
    const std::vector<bool>& cables_on(const std::vector<NodeIndex>& nodes,
                                       const NetworkNow& network) {
        const auto [known, is_new] = cables_.try_emplace({nodes, network.hashes, network.broken});
        if (!is_new) return known->second;
        const Scenario& s = *job_;
        NetworkNotes notes;
        notes.cables = std::make_shared<CablesUsed>(topology(network.broken),
                                                    s.networks[0].flow_routing().policy);
        try {
            Communicators groups = groups_on(nodes, {}, network, notes);
            step_of(step_work(s), s.plan, groups);
            known->second = notes.cables->take();
        } catch (const NoPath&) {
            known->second.clear();
        }
        return known->second;
    }

    const Topology& topology(const NetworkState& broken) {
        const Topology& sound = job_->networks[0].topology;
        if (broken.empty()) return sound;
        const auto [known, is_new] = topologies_.try_emplace(broken, sound);
        if (is_new) {
            for (const BrokenCable& cable : broken) {
                known->second.degrade(cable.cable * 2, cable.speed);
            }
        }
        return known->second;
    }

    StepTime compute(const std::vector<NodeIndex>& nodes, std::uint32_t conditions,
                     const NetworkNow& network) {
        const NetworkNow all_sound{network.hashes, {}};
        StepTime out = step(nodes, {}, all_sound);
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
            out.degraded = longer(with_one_slow_stage(step(nodes, slow, all_sound), sound));
        }
        if (!network.broken.empty()) out.degraded += longer(step(nodes, {}, network));
        if (throttled_.empty()) return out;
        std::vector<PartFault> hot = throttled_;  // on all nodes
        for (PartFault& fault : hot) fault.node = nodes[0];
        out.throttled = longer(step(nodes, hot, all_sound));
        return out;
    }

    StepTime step(const std::vector<NodeIndex>& nodes, const std::vector<PartFault>& faults,
                  const NetworkNow& network) {
        const Scenario& s = *job_;
        Communicators groups = groups_on(nodes, faults, network, {});
        return step_of(step_work(s), s.plan, groups);
    }

    Communicators groups_on(const std::vector<NodeIndex>& nodes,
                            const std::vector<PartFault>& faults, const NetworkNow& now,
                            const NetworkNotes& notes) {
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
        GpuNetwork network =
            gpu_network(s, s.fidelity, faults, false, now.hashes, &topology(now.broken));
        if (notes.loads) network.keep_loads(uploads_beside_steps(s));
        if (notes.cables) network.note_cables(notes.cables);
        groups.run_on(std::move(network), {nodes.begin(), nodes.end()});
        return groups;
    }

    std::shared_ptr<const Scenario> job_;
    std::vector<PartFault> slow_parts_;
    std::vector<PartFault> throttled_;
    std::mutex mutex_;
    std::map<Key, StepTime> known_;
    std::map<Place, std::shared_ptr<const StepTraffic>> traffic_;
    std::map<std::tuple<Place, Direction, std::int64_t>, std::shared_ptr<const StepTraffic>>
        transfers_;
    std::map<Place, std::vector<bool>> cables_;
    std::map<NetworkState, Topology> topologies_;  // of those that are not sound
};

}  // namespace

PlacedSteps steps_by_placement(std::shared_ptr<const Scenario> job,
                               std::vector<PartFault> slow_parts,
                               std::vector<PartFault> throttled) {
    const auto memo =
        std::make_shared<StepMemo>(std::move(job), std::move(slow_parts), std::move(throttled));
    return {std::bind_front(&StepMemo::on, memo), std::bind_front(&StepMemo::traffic_on, memo),
            std::bind_front(&StepMemo::met_on, memo),
            std::bind_front(&StepMemo::transfer_on, memo)};
}

void place_steps(const std::shared_ptr<const Scenario>& job,
                 const std::vector<PartFault>& slow_parts, const std::vector<PartFault>& throttled,
                 WorldJobKind& kind) {
    PlacedSteps whole = steps_by_placement(job, slow_parts, throttled);
    kind.step = std::move(whole.step);
    kind.traffic = std::move(whole.traffic);
    kind.routes = std::move(whole.routes);
    for (SmallerWorldJob& size : kind.smaller) {
        auto fewer = std::make_shared<Scenario>(*job);
        fewer->plan = with_replicas(job->plan, size.replicas);
        fewer->job.nodes = size.nodes;
        PlacedSteps steps = steps_by_placement(std::move(fewer), slow_parts, throttled);
        size.step = std::move(steps.step);
        size.traffic = std::move(steps.traffic);
        size.routes = std::move(steps.routes);
    }
}

PlacedTraffic share_by_placement(std::shared_ptr<const Scenario> job, double share, double step_s) {
    const auto memo = std::make_shared<StepMemo>(std::move(job), std::vector<PartFault>(),
                                                 std::vector<PartFault>());
    return [=](const std::vector<NodeIndex>& nodes, const NetworkNow& network) {
        return memo->share_on(nodes, network, share, step_s);
    };
}

StepTime usual_step(const WorldJobKind& kind, std::int64_t nodes, std::uint32_t conditions) {
    StepTime computing;
    computing.compute = from_seconds(kind.duty);
    computing.data_wait = std::chrono::seconds(1) - computing.compute;
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
