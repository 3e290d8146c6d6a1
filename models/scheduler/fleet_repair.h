#pragma once
// What breaks of a fleet's nodes, who finds out, and how long they are gone.

#include <memory>
#include <vector>

#include "models/scheduler/fleet_cluster.h"

namespace railyard {

// How long a strike takes its node out: a reset, or the repair that it drew, at most ten years.
struct OutOfService {
    Duration time{};
    bool repaired = false;  // else it was reset
};
OutOfService out_of_service(const Strike& strike, const FailureCause& cause, double repair_sigma);

class FleetRepair : public CampaignEngine::Component, public FailureSource::Target {
  public:
    class Owner {
      public:
        virtual ~Owner() = default;
        virtual void before_node_changes(NodeIndex node) = 0;
        virtual void after_node_changed(NodeIndex node) = 0;
        // The jobs there have failed.
        virtual void struck(NodeIndex node, const Strike& strike) = 0;
        virtual void silent(NodeIndex node) = 0;
    };

    // References must outlive it. `heartbeat`: how long a node whose host is gone stays silent unnoticed.
    FleetRepair(CampaignEngine& engine, const FleetSpec& spec,
                const std::vector<FailureCause>& causes, FleetCluster& cluster, Owner& owner,
                std::uint64_t seed, std::uint64_t replica);
    void start(Duration heartbeat);

    // Somebody has looked at a node: one that is broken is drained. True if it was.
    bool check(NodeIndex node);
    void drain(NodeIndex node);
    // A drained node without jobs is repaired, or up again if nothing ails it.
    void settle(NodeIndex node);
    // Of a broken node: until a job on it notices.
    Duration detection(NodeIndex node) const { return causes_[ails_[node].cause].detection; }
    std::size_t cause(NodeIndex node) const { return ails_[node].cause; }
    bool answers(NodeIndex node) const {
        return !cluster_.node(node).broken || !causes_[ails_[node].cause].silences;
    }
    bool lemon(NodeIndex node) const { return !lemon_.empty() && lemon_[node]; }

    void strike(const Strike& strike) override;
    void handle(std::uint32_t kind) override;

  private:
    enum Kind : std::uint32_t { fell_silent, repaired, periodic_check, kinds };
    void schedule(Duration after, Kind kind, NodeIndex node);

    CampaignEngine& engine_;
    const FleetSpec& spec_;
    const std::vector<FailureCause>& causes_;
    FleetCluster& cluster_;
    Owner& owner_;
    CampaignEngine::ComponentId id_;
    std::vector<std::unique_ptr<FailureSource>> sources_;
    std::vector<Strike> ails_;      // of each broken node
    std::vector<EventId> silence_;  // of each
    std::vector<bool> lemon_;
    Duration heartbeat_{};
};

}  // namespace railyard
