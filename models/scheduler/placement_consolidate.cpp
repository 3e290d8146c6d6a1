// As few nodes as can be: what HeliosArtifact's simulator calls consolidate.
//
// With G GPUs in a node: up to G GPUs go to the node with the fewest free that fits; k G GPUs to k
// empty nodes; k G + r to k empty nodes and the node that then has the most free, if r fits there. Of
// equal nodes the lowest index is taken.

#include <fmt/format.h>

#include <bit>

#include "models/scheduler/free_nodes.h"
#include "models/scheduler/placement.h"
#include "sim/check.h"

namespace railyard {

namespace {

class Consolidate : public Placement {
  public:
    Consolidate(std::int64_t nodes, std::int64_t gpus_per_node)
        : per_node_(gpus_per_node),
          free_gpus_(nodes * gpus_per_node),
          nodes_(static_cast<std::size_t>(nodes), static_cast<std::size_t>(gpus_per_node)) {}

    std::int64_t largest() const override {
        return nodes_.count(per_node_) * per_node_ + most_free_of_used();
    }

    Allocation place(std::int64_t gpus) override {
        Allocation out;
        if (gpus <= per_node_) {
            std::int64_t free = gpus;
            while (nodes_.count(free) == 0) ++free;
            take_one(nodes_.lowest(free), gpus, out);
            return out;
        }
        while (gpus >= per_node_) gpus -= take_empty(gpus / per_node_, out);
        if (gpus > 0) {
            const bool empty = nodes_.count(per_node_) > 0;
            take_one(nodes_.lowest(empty ? per_node_ : most_free_of_used()), gpus, out);
        }
        return out;
    }

    bool holds(const Allocation& allocation) const override {
        for (const NodeShare& share : allocation) {
            if (nodes_.free(share.node) < share.gpus) return false;
        }
        return true;
    }
    void take(const Allocation& allocation) override {
        for (const NodeShare& share : allocation) change(share.node, -share.gpus);
    }
    void release(const Allocation& allocation) override {
        for (const NodeRun& run : allocation.runs()) {
            if (run.gpus == per_node_ && run.count > 1) {
                give_back_whole(run);
            } else {
                for (std::uint32_t n = run.first; n < run.end(); ++n) change(n, run.gpus);
            }
        }
    }
    void limit_to(const Placement& other) override {
        const FreeNodes& same = dynamic_cast<const Consolidate&>(other).nodes_;
        for (std::uint32_t node = 0; node < nodes_.nodes(); ++node) {
            const std::int64_t more = nodes_.free(node) - same.free(node);
            if (more > 0) change(node, -more);
        }
    }

    std::int64_t free_gpus() const override { return free_gpus_; }
    std::int64_t busy_nodes() const override {
        return static_cast<std::int64_t>(nodes_.nodes()) - nodes_.count(per_node_);
    }
    std::optional<std::string> never(std::int64_t gpus) const override {
        const auto nodes = static_cast<std::int64_t>(nodes_.nodes());
        if (gpus <= nodes * per_node_) return std::nullopt;
        return fmt::format("wants {} GPUs of {} nodes with {}", gpus, nodes, per_node_);
    }
    std::unique_ptr<Placement> clone() const override {
        return std::make_unique<Consolidate>(*this);
    }

  private:
    // The most free GPUs of a node that has a job.
    std::int64_t most_free_of_used() const {
        std::int64_t free = per_node_ - 1;
        while (free > 0 && nodes_.count(free) == 0) --free;
        return free;
    }
    void take_one(std::uint32_t node, std::int64_t gpus, Allocation& out) {
        change(node, -gpus);
        out.push_back(NodeShare{node, gpus});
    }
    // At most so many empty nodes, from the first word that has any. Returns how many GPUs that is.
    std::int64_t take_empty(std::int64_t most, Allocation& out) {
        const std::size_t word = nodes_.lowest_word(per_node_);
        std::uint64_t taken = 0;
        std::uint64_t left = nodes_.word(per_node_, word);
        for (; most > 0 && left != 0; --most, left &= left - 1) taken |= left & -left;
        nodes_.move(word, taken, per_node_, 0);
        const std::int64_t gpus = std::popcount(taken) * per_node_;
        free_gpus_ -= gpus;
        while (taken != 0) {
            const int first = std::countr_zero(taken);
            const int count = std::countr_one(taken >> first);
            out.push_back(
                NodeRun{static_cast<std::uint32_t>(word * 64) + static_cast<std::uint32_t>(first),
                        static_cast<std::uint32_t>(count), per_node_});
            taken &= count == 64 ? 0 : ~(((std::uint64_t{1} << count) - 1) << first);
        }
        return gpus;
    }
    void give_back_whole(const NodeRun& run) {
        each_word(run, [&](std::size_t word, std::uint64_t nodes) {
            RY_CHECK((nodes & ~nodes_.word(0, word)) == 0);
            nodes_.move(word, nodes, 0, per_node_);
        });
        free_gpus_ += run.count * per_node_;
    }
    void change(std::uint32_t node, std::int64_t gpus) {
        const std::int64_t free = nodes_.free(node) + gpus;
        RY_CHECK(free >= 0 && free <= per_node_);
        nodes_.set_free(node, free);
        free_gpus_ += gpus;
    }

    std::int64_t per_node_;
    std::int64_t free_gpus_;
    FreeNodes nodes_;
};

}  // namespace

std::unique_ptr<Placement> make_consolidate(std::int64_t nodes, std::int64_t gpus_per_node) {
    return std::make_unique<Consolidate>(nodes, gpus_per_node);
}

}  // namespace railyard
