#pragma once
// Which nodes a job gets where only their number counts: as few as can be, what HeliosArtifact's simulator
// calls consolidate.
//
// Full pods go to the nodes with the fewest free GPUs that have room for one, each as many as there is room
// for; what is left over goes to the node that then has the most free. Of equal nodes the first.

#include <optional>

#include "models/scheduler/free_levels.h"
#include "models/scheduler/world_scheduler.h"

namespace railyard {

// The nodes of a pool, by how many of its devices each has free.
class PoolNodes {
  public:
    // As the cluster is now. References must outlive it.
    PoolNodes(const WorldCluster& cluster, std::uint32_t pool)
        : cluster_(cluster),
          members_(cluster.members(pool)),
          device_(cluster.device_of(pool)),
          most_(cluster.device_max(device_)) {}
    // As it will be.
    PoolNodes(const WorldCluster& cluster, std::uint32_t pool, const FreeLevels& later)
        : PoolNodes(cluster, pool) {
        later_ = &later;
    }

    // No job with more GPUs fits: all that are free. If `whole`, all jobs are of pods that fill a node or of
    // one pod, and then every smaller one fits.
    std::int64_t room(bool whole) const;
    // Nothing when it does not fit. On nodes of `last`, a word for each 64, only where others do not do.
    std::optional<Allocation> place(const WorldJob& job, const std::uint64_t* last = nullptr) const;

  private:
    // The nodes that have exactly so many free, as bits.
    class With {
      public:
        With(const PoolNodes& nodes, std::int64_t free)
            : members_(nodes.members_.data()),
              free_(nodes.later_ == nullptr ? nodes.cluster_.with_free(free, nodes.device_).data()
                                            : nodes.later_->at_least(free, nodes.device_)),
              more_(nodes.later_ == nullptr || free == nodes.most_
                        ? nullptr
                        : nodes.later_->at_least(free + 1, nodes.device_)) {}
        std::uint64_t operator[](std::size_t word) const {
            const std::uint64_t free = free_[word] & members_[word];
            return more_ == nullptr ? free : free & ~more_[word];
        }

      private:
        const std::uint64_t* members_;
        const std::uint64_t* free_;
        const std::uint64_t* more_;  // with at least one more; none: those above have no more
    };
    // Calls visit(node) for those with exactly so many free, in order, until it returns false; those of
    // `last` come after all others.
    template <class Visit>
    void each_with(std::int64_t free, const std::uint64_t* last, const Visit& visit) const;

    const WorldCluster& cluster_;
    const NodeSet& members_;
    std::size_t device_;
    std::int64_t most_;
    const FreeLevels* later_ = nullptr;
};

}  // namespace railyard
