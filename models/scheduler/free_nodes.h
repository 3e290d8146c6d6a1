#pragma once
// Nodes by how many GPUs of each are free, lowest index first.

#include <bit>
#include <cstdint>
#include <vector>

namespace railyard {

// For each number of free GPUs a set of nodes: bits, and bits that say which words of them are not 0.
class FreeNodes {
  public:
    // All GPUs of all nodes are free.
    FreeNodes(std::size_t nodes, std::size_t gpus_per_node)
        : words_per_set_((nodes + 63) / 64),
          summaries_per_set_((words_per_set_ + 63) / 64),
          free_(nodes, static_cast<std::int32_t>(gpus_per_node)),
          count_(gpus_per_node + 1),
          words_((gpus_per_node + 1) * words_per_set_),
          summaries_((gpus_per_node + 1) * summaries_per_set_) {
        for (std::uint32_t node = 0; node < nodes; ++node) add(node);
    }

    std::size_t nodes() const { return free_.size(); }
    std::int64_t free(std::uint32_t node) const { return free_[node]; }
    void set_free(std::uint32_t node, std::int64_t gpus) {
        remove(node);
        free_[node] = static_cast<std::int32_t>(gpus);
        add(node);
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
        const std::uint64_t* summary =
            &summaries_[static_cast<std::size_t>(gpus) * summaries_per_set_];
        std::size_t s = 0;
        while (summary[s] == 0) ++s;
        return s * 64 + lowest_bit(summary[s]);
    }
    std::uint64_t word(std::int64_t gpus, std::size_t index) const {
        return words_[static_cast<std::size_t>(gpus) * words_per_set_ + index];
    }
    // Nodes of a word that have `from` free have `to` free from now on.
    void move(std::size_t word, std::uint64_t nodes, std::int64_t from, std::int64_t to) {
        const auto in = [this](std::int64_t gpus, std::size_t per_set, std::size_t place) {
            return static_cast<std::size_t>(gpus) * per_set + place;
        };
        std::uint64_t& left = words_[in(from, words_per_set_, word)];
        left &= ~nodes;
        const std::uint64_t here = std::uint64_t{1} << (word % 64);
        if (left == 0) summaries_[in(from, summaries_per_set_, word / 64)] &= ~here;
        words_[in(to, words_per_set_, word)] |= nodes;
        summaries_[in(to, summaries_per_set_, word / 64)] |= here;
        count_[static_cast<std::size_t>(from)] -= std::popcount(nodes);
        count_[static_cast<std::size_t>(to)] += std::popcount(nodes);
        for (; nodes != 0; nodes &= nodes - 1) {
            free_[word * 64 + lowest_bit(nodes)] = static_cast<std::int32_t>(to);
        }
    }

  private:
    static std::uint64_t bit(std::uint32_t place) { return std::uint64_t{1} << (place % 64); }
    static std::size_t lowest_bit(std::uint64_t word) {
        return static_cast<std::size_t>(std::countr_zero(word));
    }
    std::uint64_t& word_of(std::uint32_t node) {
        return words_[static_cast<std::size_t>(free_[node]) * words_per_set_ + node / 64];
    }
    std::uint64_t& summary_of(std::uint32_t node) {
        return summaries_[static_cast<std::size_t>(free_[node]) * summaries_per_set_ + node / 4096];
    }
    void add(std::uint32_t node) {
        word_of(node) |= bit(node);
        summary_of(node) |= bit(node / 64);
        ++count_[static_cast<std::size_t>(free_[node])];
    }
    void remove(std::uint32_t node) {
        word_of(node) &= ~bit(node);
        if (word_of(node) == 0) summary_of(node) &= ~bit(node / 64);
        --count_[static_cast<std::size_t>(free_[node])];
    }

    std::size_t words_per_set_;
    std::size_t summaries_per_set_;
    std::vector<std::int32_t> free_;        // by node
    std::vector<std::int64_t> count_;       // by free GPUs
    std::vector<std::uint64_t> words_;      // the sets, by free GPUs
    std::vector<std::uint64_t> summaries_;  // likewise
};

}  // namespace railyard
