#pragma once
// Parts of a cluster's nodes that work below their speed: jobs on them go on, slower, until somebody sees it.

#include <vector>

#include "models/scheduler/world_spec.h"

namespace railyard {

struct SlowPartCounts {
    std::int64_t slow = 0;
    std::int64_t found = 0;
};

class WorldSlowParts : public CampaignEngine::Component {
  public:
    class Owner {
      public:
        virtual ~Owner() = default;
        // What runs on the node is slower, or faster, from now on.
        virtual void pace_changed(NodeIndex node) = 0;
        // A part has been found. It is slow still, until the node is forgotten or the part mended.
        virtual void slow_part_found(NodeIndex node, const Strike& strike) = 0;
    };

    // References must outlive it.
    WorldSlowParts(CampaignEngine& engine, const WorldSpec& spec,
                   const std::vector<FailureCause>& causes, Owner& owner, std::size_t nodes);

    void strike(NodeIndex node, const Strike& strike, bool in_use);
    // A job has begun to run there: a comparison of its ranks may show what is slow.
    void compare(NodeIndex node);
    // All parts of the node are sound again.
    void mend(NodeIndex node);
    // The conditions of its slow parts, as bits.
    std::uint32_t conditions(NodeIndex node) const { return conditions_[node]; }
    const SlowPartCounts& counts() const { return counts_; }

    void handle(std::uint32_t event) override;

  private:
    enum Kind : std::uint32_t { found, over, compared, kinds };
    struct Part {
        NodeIndex node = 0;
        Strike strike;
        bool there = true;
        bool known = false;
        bool comparing = false;
    };
    void schedule(Duration after, Kind kind, std::size_t part);
    void find(Part& part);
    void recount(NodeIndex node);

    CampaignEngine& engine_;
    const WorldSpec& spec_;
    const std::vector<FailureCause>& causes_;
    Owner& owner_;
    CampaignEngine::ComponentId id_;
    std::vector<Part> parts_;                     // all that ever were
    std::vector<std::vector<std::size_t>> here_;  // by node: those that are there
    std::vector<std::uint32_t> conditions_;       // by node
    SlowPartCounts counts_;
};

}  // namespace railyard
