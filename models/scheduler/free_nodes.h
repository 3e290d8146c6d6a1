#pragma once
// Nodes by how many GPUs of each are free, lowest index first.

#include <bit>
#include <cstdint>
#include <vector>

#include "models/scheduler/world_cluster.h"

namespace railyard {

class FreeNodes {
  public:
    // All GPUs of all nodes are free.
    FreeNodes(std::size_t nodes, std::size_t gpus_per_node)
        : free_(nodes, static_cast<std::int32_t>(gpus_per_node)),
          count_(gpus_per_node + 1),
          with_(gpus_per_node + 1, NodeSet(nodes)) {
        count_.back() = static_cast<std::int64_t>(nodes);
        for (std::uint32_t node = 0; node < nodes; ++node) with_.back().add(node);
    }

    std::size_t nodes() const { return free_.size(); }
    std::int64_t free(std::uint32_t node) const { return free_[node]; }
    void set_free(std::uint32_t node, std::int64_t gpus) {
        move(node / 64, std::uint64_t{1} << (node % 64), free_[node], gpus);
    }
    // How many nodes have so many free.
    std::int64_t count(std::int64_t gpus) const { return count_[static_cast<std::size_t>(gpus)]; }
    // The first of them. Needs count(gpus) > 0.
    std::uint32_t lowest(std::int64_t gpus) const {
        const std::size_t first = lowest_word(gpus);
        return static_cast<std::uint32_t>(first * 64 + lowest_bit(word(gpus, first)));
    }
    // The 64 nodes that it is one of, and which of these have so many free, as bits.
    std::size_t lowest_word(std::int64_t gpus) const {
        std::size_t index = 0;
        while (word(gpus, index) == 0) ++index;
        return index;
    }
    std::uint64_t word(std::int64_t gpus, std::size_t index) const {
        return with_[static_cast<std::size_t>(gpus)].word(index);
    }
    // Nodes of a word that have `from` free have `to` free from now on.
    void move(std::size_t word, std::uint64_t nodes, std::int64_t from, std::int64_t to) {
        const auto before = static_cast<std::size_t>(from);
        const auto after = static_cast<std::size_t>(to);
        with_[before].word(word) &= ~nodes;
        with_[after].word(word) |= nodes;
        count_[before] -= std::popcount(nodes);
        count_[after] += std::popcount(nodes);
        for (; nodes != 0; nodes &= nodes - 1) {
            free_[word * 64 + lowest_bit(nodes)] = static_cast<std::int32_t>(to);
        }
    }

  private:
    static std::size_t lowest_bit(std::uint64_t word) {
        return static_cast<std::size_t>(std::countr_zero(word));
    }

    std::vector<std::int32_t> free_;   // by node
    std::vector<std::int64_t> count_;  // by free GPUs
    std::vector<NodeSet> with_;        // likewise
};

}  // namespace railyard
