#pragma once
// What the nodes of many jobs draw, and what that comes to.

#include <vector>

#include "models/campaign/power.h"
#include "models/scheduler/scheduler.h"

namespace railyard {

// Each GPU carries its share of its node, as if all of the node did what it does.
struct WorldPower {
    std::vector<std::vector<NodeDraw>> draws;  // by group of nodes, then kind of jobs
    double work_factor = 1;  // what work without a model takes longer under the power cap
};

// All nodes idle.
Watts idle_nodes(const WorldPower& power, const WorldSpec& spec);
// What a job of this kind adds to an idle node of a group, for each part of a GPU, while it computes.
Watts part_over_idle(const WorldPower& power, const WorldSpec& spec, std::size_t group,
                     std::size_t kind);
// Energy of the nodes alone, by category: the ledgers' time at what the GPUs then draw.
NodeEnergy node_energy(const WorldPower& power, const WorldSpec& spec, const WorldLedger& ledgers);

// Listens to many jobs: what all its nodes draw at the highest instant, all jobs that run then computing.
class WorldPeak : public WorldListener {
  public:
    // References must outlive it.
    WorldPeak(const WorldPower& power, const WorldSpec& spec, const WorldJobs& jobs);
    void started(JobIndex job, Instant now, const Allocation& gpus) override;
    void stopped(JobIndex job, Instant now) override;
    // The swing is that of the job with the largest.
    NodesDraw draw() const;

  private:
    // What one part of a GPU adds to its idle node, and what it swings by.
    struct Share {
        double over_idle = 0;
        double swing = 0;
    };

    const WorldSpec& spec_;
    const WorldJobs& jobs_;
    std::vector<std::size_t> group_of_node_;
    std::vector<std::vector<Share>> shares_;  // by group, then kind
    double idle_ = 0;                         // all nodes
    double design_ = 0;
    std::vector<std::int64_t> running_;  // mW over idle, by job
    std::int64_t now_ = 0;
    std::int64_t highest_ = 0;
    double swing_ = 0;
};

}  // namespace railyard
