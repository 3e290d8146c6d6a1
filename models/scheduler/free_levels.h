#pragma once
// How many GPUs, or slices of a profile, of each node will be free, as bits: for every number the nodes with
// at least so many.

#include <bit>
#include <utility>
#include <vector>

#include "models/scheduler/fleet_cluster.h"
#include "sim/check.h"

namespace railyard {

// Some nodes of one word of a NodeSet, and how many GPUs, or of another device, of each.
struct NodesOfWord {
    std::size_t word = 0;
    std::uint64_t nodes = 0;
    std::int64_t gpus = 0;
    std::size_t device = 0;
};

class FreeLevels {
  public:
    // As it is now; nodes that are not up have none free. The cluster must outlive it.
    explicit FreeLevels(const FleetCluster& cluster)
        : cluster_(&cluster), words_((cluster.nodes().size() + 63) / 64) {
        std::size_t levels = 0;
        for (std::size_t device = 0; device < cluster.devices(); ++device) {
            first_.push_back(levels * words_);
            levels += static_cast<std::size_t>(cluster.device_max(device)) + 1;
        }
        bits_.resize(levels * words_);
        for (std::size_t device = 0; device < cluster.devices(); ++device) {
            const std::int64_t most = cluster.device_max(device);
            for (std::int64_t g = most; g >= 0; --g) {
                for (std::size_t w = 0; w < words_; ++w) {
                    word(device, g, w) = cluster.with_free(g, device).word(w) |
                                         (g < most ? word(device, g + 1, w) : std::uint64_t{0});
                }
            }
        }
    }

    // Nodes with at least so many free.
    const std::uint64_t* at_least(std::int64_t gpus, std::size_t device) const {
        return &bits_[first_[device] + static_cast<std::size_t>(gpus) * words_];
    }
    std::size_t words() const { return words_; }

    // So many GPUs of each of these nodes come free. Calls changed(gpus, nodes) for the nodes that have at
    // least so many free from now on, and had not.
    template <class Changed>
    void give_back(const NodesOfWord& n, const Changed& changed) {
        for (std::int64_t g = cluster_->device_max(n.device); g > 0; --g) {
            const std::uint64_t had =
                g > n.gpus ? word(n.device, g - n.gpus, n.word) : ~std::uint64_t{0};
            const std::uint64_t gain = had & n.nodes & ~word(n.device, g, n.word);
            word(n.device, g, n.word) |= gain;
            if (gain != 0) changed(g, gain);
        }
    }
    // Needs these to be free. Calls changed(gpus, nodes) for those that no longer have at least so many.
    template <class Changed>
    void take(const NodesOfWord& n, const Changed& changed) {
        RY_CHECK((n.nodes & ~word(n.device, n.gpus, n.word)) == 0);
        const std::int64_t most = cluster_->device_max(n.device);
        for (std::int64_t g = 1; g <= most; ++g) {
            const std::uint64_t left =
                g + n.gpus <= most ? word(n.device, g + n.gpus, n.word) : std::uint64_t{0};
            const std::uint64_t loss = word(n.device, g, n.word) & n.nodes & ~left;
            word(n.device, g, n.word) &= ~loss;
            if (loss != 0) changed(g, loss);
        }
    }

  private:
    std::uint64_t& word(std::size_t device, std::int64_t gpus, std::size_t w) {
        return bits_[first_[device] + static_cast<std::size_t>(gpus) * words_ + w];
    }

    const FleetCluster* cluster_;
    std::size_t words_;
    std::vector<std::size_t> first_;   // of each device: where its levels begin
    std::vector<std::uint64_t> bits_;  // by device, then by GPUs, then by word
};

}  // namespace railyard
