#pragma once
// How many GPUs, or slices of a profile, of each node will be free, as bits: for every number the nodes with
// at least so many.

#include <vector>

#include "models/scheduler/world_cluster.h"
#include "sim/check.h"

namespace railyard {

// Some nodes of one word of a NodeSet, and how many GPUs, or of another device, of each.
struct NodesOfWord {
    std::size_t word = 0;
    std::uint64_t nodes = 0;
    std::int64_t gpus = 0;
    std::size_t device = 0;
};

// How the levels of a cluster's devices lie one after another.
struct LevelTable {
    explicit LevelTable(const WorldCluster& cluster) : words((cluster.nodes().size() + 63) / 64) {
        for (std::size_t device = 0; device < cluster.devices(); ++device) {
            devices.push_back({size, cluster.device_max(device)});
            size += (static_cast<std::size_t>(cluster.device_max(device)) + 1) * words;
        }
    }

    struct Device {
        std::size_t first = 0;  // of its bits
        std::int64_t most = 0;  // that a node has
    };
    std::size_t words;     // of a set of nodes
    std::size_t size = 0;  // of all, in words
    std::vector<Device> devices{};
};

class FreeLevels {
  public:
    explicit FreeLevels(const LevelTable& table) : table_(&table) {}  // to be assigned to
    // As it is now; nodes that are not up have none free. The table must outlive it.
    FreeLevels(const WorldCluster& cluster, const LevelTable& table)
        : table_(&table), bits_(table.size) {
        for (std::size_t device = 0; device < table.devices.size(); ++device) {
            const std::int64_t most = table.devices[device].most;
            for (std::int64_t g = most; g >= 0; --g) {
                std::uint64_t* level = &bits_[at(device, g)];
                for (std::size_t w = 0; w < table.words; ++w) {
                    level[w] = cluster.with_free(g, device).word(w) |
                               (g < most ? level[w + table.words] : std::uint64_t{0});
                }
            }
        }
    }

    // Nodes with at least so many free.
    const std::uint64_t* at_least(std::int64_t gpus, std::size_t device) const {
        return &bits_[at(device, gpus)];
    }

    // What an allocation has of nodes that are up, of a device, into `out`.
    void up_nodes(const Allocation& allocation, std::size_t device,
                  std::vector<NodesOfWord>& out) const {
        const std::uint64_t* up = at_least(0, 0);
        out.clear();
        for (const NodeRun& run : allocation.runs()) {
            each_word(run, [&](std::size_t word, std::uint64_t nodes) {
                if ((nodes &= up[word]) == 0) return;
                if (out.empty() || out.back().word != word || out.back().gpus != run.gpus) {
                    out.push_back({word, 0, run.gpus, device});
                }
                out.back().nodes |= nodes;
            });
        }
    }
    // Leaves free what is free in another one, too.
    void limit_to(const FreeLevels& other) {
        for (std::size_t i = 0; i < bits_.size(); ++i) bits_[i] &= other.bits_[i];
    }

    // So many GPUs of each of these nodes come free. Calls changed(first, last, nodes) for the nodes that
    // have at least `first` to `last` free from now on, and had not.
    template <class Changed>
    void give_back(const NodesOfWord& n, const Changed& changed) {
        std::uint64_t* of_none = &bits_[at(n.device, 0) + n.word];
        const auto words = static_cast<std::ptrdiff_t>(table_->words);
        const std::int64_t most = table_->devices[n.device].most;
        if (n.gpus == most) {  // they had none
            for (std::int64_t g = 1; g <= most; ++g) of_none[g * words] |= n.nodes;
            changed(1, most, n.nodes);
            return;
        }
        for (std::int64_t g = most; g > 0; --g) {
            std::uint64_t& level = of_none[g * words];
            const std::uint64_t had =
                g > n.gpus ? of_none[(g - n.gpus) * words] : ~std::uint64_t{0};
            const std::uint64_t gain = had & n.nodes & ~level;
            level |= gain;
            if (gain != 0) changed(g, g, gain);
        }
    }
    // Needs these to be free. Calls changed(first, last, nodes) for those that no longer have at least so
    // many.
    template <class Changed>
    void take(const NodesOfWord& n, const Changed& changed) {
        std::uint64_t* of_none = &bits_[at(n.device, 0) + n.word];
        const auto words = static_cast<std::ptrdiff_t>(table_->words);
        RY_CHECK((n.nodes & ~of_none[n.gpus * words]) == 0);
        const std::int64_t most = table_->devices[n.device].most;
        if (n.gpus == most) {  // and have none left
            for (std::int64_t g = 1; g <= most; ++g) of_none[g * words] &= ~n.nodes;
            changed(1, most, n.nodes);
            return;
        }
        for (std::int64_t g = 1; g <= most; ++g) {
            std::uint64_t& level = of_none[g * words];
            const std::uint64_t left =
                g + n.gpus <= most ? of_none[(g + n.gpus) * words] : std::uint64_t{0};
            const std::uint64_t loss = level & n.nodes & ~left;
            level &= ~loss;
            if (loss != 0) changed(g, g, loss);
        }
    }

  private:
    std::size_t at(std::size_t device, std::int64_t gpus) const {
        return table_->devices[device].first + static_cast<std::size_t>(gpus) * table_->words;
    }

    const LevelTable* table_;
    std::vector<std::uint64_t> bits_;  // by device, then by GPUs, then by word
};

}  // namespace railyard
