#pragma once
// What breaks of a cluster's nodes, who finds out, and how long they are gone.

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "models/scheduler/world_cluster.h"

namespace railyard {

// Strikes come at random, from parts that age, from domains whose nodes fail together, or as injected. What
// is struck is broken until it has been out of service, whether anybody knows of it or not.
class WorldRepair : public NodeFaults, public FailureSource::Target, public SlowParts::Owner {
  public:
    class Owner {
      public:
        virtual ~Owner() = default;
        virtual void before_node_changes(NodeIndex node) = 0;
        virtual void after_node_changed(NodeIndex node) = 0;
        // The jobs there have failed.
        virtual void struck(NodeIndex node, const Strike& strike) = 0;
        virtual void silent(NodeIndex node) = 0;
        // One that was not struck goes out of service, and with it what suspended jobs have in its memory.
        virtual void memory_lost(NodeIndex node) = 0;
        // Somebody knows now that jobs compute what is wrong; `node`, or no_node, still corrupted until now.
        virtual void corruption_found(std::size_t corruption, NodeIndex node,
                                      const Strike& strike) = 0;
    };
    // What runs on a node, and goes on there otherwise than before.
    class Runs {
      public:
        virtual ~Runs() = default;
        // A NIC of the node pauses their network.
        virtual void storm(NodeIndex node, const Strike& strike) = 0;
        // They are slower, or faster, from now on.
        virtual void pace_changed(NodeIndex node) = 0;
        // A slow part of the node is known: whoever loses nothing by it leaves.
        virtual void leave_slow_node(NodeIndex node) = 0;
        // What they compute is wrong from now on, and nobody knows. Corruptions are numbered.
        virtual void corrupted(NodeIndex node, std::size_t corruption) = 0;
    };

    // References must outlive it.
    WorldRepair(CampaignEngine& engine, const WorldSpec& spec,
                const std::vector<FailureCause>& causes, WorldCluster& cluster, Owner& owner,
                Runs& runs, std::uint64_t seed, std::uint64_t replica);
    // `heartbeat`: how long a node whose host is gone stays silent unnoticed.
    void start(Duration heartbeat);

    // Somebody has looked at a node: one that is broken is drained. True if it was.
    bool check(NodeIndex node);
    // Somebody looks for what has broken among nodes that work together: if this one has, it is drained, or a
    // sound one that is blamed instead. Which of them was; no_node: this one is sound.
    NodeIndex diagnose(NodeIndex node, const Allocation& together);
    NodeIndex diagnose_first(Allocation together);  // of these that ail, the first that is found
    // The strike breaks it, and who is there is told. False when there is nothing left to break.
    bool break_down(NodeIndex node, const Strike& strike);
    void drain(NodeIndex node);
    // A drained node without jobs goes out of service, or is up again if nothing ails it.
    void settle(NodeIndex node);
    // How long until a job on a broken node notices. Wrong numbers are known at once when found.
    Duration detection(NodeIndex node) const {
        const FailureCause& of = causes_[cause(node)];
        return of.silent ? Duration{} : of.detection;
    }
    std::size_t cause(NodeIndex node) const { return ails_[node].strike.cause; }
    bool answers(NodeIndex node) const {
        return !cluster_.node(node).broken || !causes_[cause(node)].silences;
    }
    // The conditions of slow parts of these nodes, as bits.
    std::uint32_t slow_conditions(const Allocation& held) const {
        std::uint32_t out = 0;
        for (const NodeShare& share : held) out |= slow_ ? slow_->conditions(share.node) : 0;
        return out;
    }
    // A job has begun to run there.
    void compare(NodeIndex node) {
        if (slow_) slow_->compare(node);
    }
    // The corruptions that go on, by node.
    const std::map<NodeIndex, std::size_t>& corrupting() const { return corrupting_; }
    SlowPartCounts slow_part_counts() const { return slow_ ? slow_->counts() : SlowPartCounts{}; }
    std::int64_t nodes_blamed() const { return nodes_blamed_; }

    bool strike(const Strike& strike) override;  // of a node, at random
    void pace_changed(std::size_t node) override {
        runs_.pace_changed(static_cast<NodeIndex>(node));
    }
    void slow_part_found(std::size_t part) override;
    double slowdown(std::uint32_t condition) const override { return spec_.slowdowns[condition]; }

  private:
    enum OwnKind : std::uint32_t { fell_silent = first_of_heir, periodic_check, corruption_shows };
    // What ails a broken node.
    struct Ailment {
        Strike strike;
        bool shared = false;         // it is back when what it shares with others is
        NodeIndex blamed = no_node;  // instead, last
    };
    struct Corruption {
        NodeIndex node = 0;
        Strike strike;
    };
    void strike_node(const Strike& strike) override;
    bool domain_breaks(std::size_t node, const Strike& strike) override;
    void domain_is_felt(const Strike& strike, const std::vector<std::size_t>& broken) override;
    void outages_over(std::size_t node) override;
    void come_back(std::size_t node, bool sound) override;
    void handle_own(std::uint32_t kind, std::size_t index) override;
    void corrupt(NodeIndex node, const Strike& strike);
    void find_corruption(std::size_t number);
    bool breaks(NodeIndex node, const Ailment& ailment);
    void expect_to_be_found(NodeIndex node);
    void go_out(NodeIndex node);

    const WorldSpec& spec_;
    WorldCluster& cluster_;
    Owner& owner_;
    Runs& runs_;
    std::vector<std::unique_ptr<FailureSource>> sources_;
    std::optional<SlowParts> slow_;
    std::map<NodeIndex, Strike> known_slow_;  // nodes that leave for it when they are empty
    std::map<NodeIndex, Duration> blamed_;    // sound ones that do, for a reset
    std::int64_t nodes_blamed_ = 0;
    std::vector<Corruption> corruptions_;          // all that ever were
    std::map<NodeIndex, std::size_t> corrupting_;  // those that go on
    std::vector<Ailment> ails_;                    // of each broken node
    std::vector<EventId> silence_;                 // of each
    Duration heartbeat_{};
};

}  // namespace railyard
