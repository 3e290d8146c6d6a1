#pragma once
// How many GPUs of each node will be free, as bits: for every number the nodes with at least so many.

#include <bit>
#include <utility>
#include <vector>

#include "models/scheduler/fleet_cluster.h"
#include "sim/check.h"

namespace railyard {

// Some nodes of one word of a NodeSet, and how many GPUs of each.
struct NodesOfWord {
    std::size_t word = 0;
    std::uint64_t nodes = 0;
    std::int64_t gpus = 0;
};

class FreeLevels {
  public:
    // As it is now; nodes that are not up have none free.
    explicit FreeLevels(const FleetCluster& cluster)
        : words_((cluster.nodes().size() + 63) / 64),
          most_(cluster.gpus_per_node_max()),
          bits_(static_cast<std::size_t>(most_ + 1) * words_) {
        for (std::int64_t g = most_; g >= 0; --g) {
            for (std::size_t w = 0; w < words_; ++w) {
                word(g, w) =
                    cluster.with_free(g).word(w) | (g < most_ ? word(g + 1, w) : std::uint64_t{0});
            }
        }
    }

    // Nodes with at least so many free.
    const std::uint64_t* at_least(std::int64_t gpus) const {
        return &bits_[static_cast<std::size_t>(gpus) * words_];
    }
    std::size_t words() const { return words_; }

    // So many GPUs of each of these nodes come free. Calls changed(gpus, nodes) for the nodes that have at
    // least so many free from now on, and had not.
    template <class Changed>
    void give_back(const NodesOfWord& n, const Changed& changed) {
        for (std::int64_t g = most_; g > 0; --g) {
            const std::uint64_t had = g > n.gpus ? word(g - n.gpus, n.word) : ~std::uint64_t{0};
            const std::uint64_t gain = had & n.nodes & ~word(g, n.word);
            word(g, n.word) |= gain;
            if (gain != 0) changed(g, gain);
        }
    }
    // Needs these to be free. Calls changed(gpus, nodes) for those that no longer have at least so many.
    template <class Changed>
    void take(const NodesOfWord& n, const Changed& changed) {
        RY_CHECK((n.nodes & ~word(n.gpus, n.word)) == 0);
        for (std::int64_t g = 1; g <= most_; ++g) {
            const std::uint64_t left = g + n.gpus <= most_ ? word(g + n.gpus, n.word) : 0;
            const std::uint64_t loss = word(g, n.word) & n.nodes & ~left;
            word(g, n.word) &= ~loss;
            if (loss != 0) changed(g, loss);
        }
    }

  private:
    std::uint64_t& word(std::int64_t gpus, std::size_t w) {
        return bits_[static_cast<std::size_t>(gpus) * words_ + w];
    }

    std::size_t words_;
    std::int64_t most_;
    std::vector<std::uint64_t> bits_;  // by GPUs, then by word
};

}  // namespace railyard
