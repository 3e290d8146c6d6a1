#pragma once
// Which nodes a job gets under Slurm.

#include <optional>

#include "models/scheduler/world_cluster.h"

namespace railyard {

class SlurmPlacement {
  public:
    SlurmPlacement(const WorldCluster& cluster, SlurmTopology topology);

    // Nodes that may take a full pod, and nodes that may take what is left over; of which device.
    struct Allowed {
        const NodeSet& pods;
        const NodeSet& rest;
        std::size_t device = 0;
    };
    // Free GPUs for all pods of a job, each pod on a node of its own; nothing when there are not enough, or
    // not where the topology wants them. Of nodes that are alike in all else, those with the fewest free
    // GPUs that fit, then the first.
    //
    // tree: under the lowest switch that has enough nodes, the one of these with the fewest; over its leaves,
    // time and again the leaf with the fewest that is enough, else the one with the most. The last pod, where
    // it is smaller, likewise: a switch that has room for it, too, comes first.
    // block: on no more blocks than its pods would fill, likewise chosen.
    std::optional<Allocation> place(const WorldJob& job, const Allowed& allowed);
    // The same when all of the allowed nodes will have enough free, whatever is free now.
    std::optional<Allocation> place_later(const WorldJob& job, const Allowed& allowed);
    // On how many leaves an allocation is.
    std::int64_t leaves_of(const Allocation& allocation) const;
    // Whether pods could be placed if all nodes were free.
    bool possible(const WorldJob& job) const;

  private:
    using LeafCounts = std::vector<std::int64_t>;
    using Levels = std::vector<const NodeSet*>;  // sets to choose from, one after another
    Levels with_at_least(std::int64_t gpus, std::size_t device) const;
    std::optional<Allocation> place(const WorldJob& job, const Allowed& allowed, const Levels& pods,
                                    const Levels& rest);
    void count_by_leaf(const Levels& levels, const NodeSet& allowed, LeafCounts& count) const;
    // Nodes that can take a pod, and those that can take what is left over: 2 if they hold both, 1 the pods
    // alone, 0 not even these.
    int holds(std::int64_t candidates, std::int64_t for_rest, std::int64_t pods) const;
    std::int64_t blocks_filled(std::int64_t pods) const;
    std::int64_t leaves_used() const;
    bool pick_rest(std::int64_t gpus, const Levels& levels, const NodeSet& allowed,
                   Allocation& out) const;
    bool choose_leaves(std::int64_t pods);
    bool take_leaves(std::int64_t pods, std::int64_t block);
    // Adds nodes for so many pods of so many GPUs; by leaf: as quota_ says.
    bool pick(std::int64_t pods, std::int64_t gpus, const Levels& levels, const NodeSet& allowed,
              bool by_leaf, Allocation& out) const;

    const WorldCluster& cluster_;
    SlurmTopology topology_;
    std::size_t leaves_ = 0;
    std::vector<std::uint32_t> block_of_leaf_;
    std::vector<std::int64_t> leaf_nodes_;  // of each, in all
    // Scratch.
    LeafCounts candidates_;
    LeafCounts for_rest_;  // nodes that can take what is left over
    bool any_rest_ = false;
    LeafCounts quota_;  // pods that each leaf is to take
};

}  // namespace railyard
