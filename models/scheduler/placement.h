#pragma once
// Which GPUs of a virtual cluster a job gets, all of them at once or none. A kind is one file and one
// row of placement_kinds(). GPUs of a node are alike: an allocation counts them.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace railyard {

struct NodeShare {
    std::uint32_t node = 0;
    std::int64_t gpus = 0;
};
// Nodes one after another, and so many GPUs of each.
struct NodeRun {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::int64_t gpus = 0;

    std::uint32_t end() const { return first + count; }
    bool has(std::uint32_t node) const { return node >= first && node < end(); }
    bool operator==(const NodeRun&) const = default;
};

// GPUs of nodes, in some order. A job on thousands of nodes is a few runs of them.
class Allocation {
  public:
    class Iterator {
      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = NodeShare;
        using difference_type = std::ptrdiff_t;
        using pointer = const NodeShare*;
        using reference = NodeShare;

        Iterator() = default;
        explicit Iterator(const NodeRun* run) : run_(run) {}
        NodeShare operator*() const { return {run_->first + place_, run_->gpus}; }
        Iterator& operator++() {
            if (++place_ == run_->count) *this = Iterator(run_ + 1);
            return *this;
        }
        Iterator operator++(int) {
            const Iterator before = *this;
            ++*this;
            return before;
        }
        bool operator==(const Iterator& other) const = default;

      private:
        const NodeRun* run_ = nullptr;
        std::uint32_t place_ = 0;
    };

    Allocation() = default;
    explicit Allocation(const NodeShare& share) { push_back(share); }

    Iterator begin() const { return Iterator(runs_.data()); }
    Iterator end() const { return Iterator(runs_.data() + runs_.size()); }
    const std::vector<NodeRun>& runs() const { return runs_; }
    bool empty() const { return runs_.empty(); }
    std::size_t size() const;  // nodes
    NodeShare front() const { return *begin(); }
    NodeShare operator[](std::size_t index) const;
    bool has(std::uint32_t node) const {
        return std::ranges::any_of(runs_, [node](const NodeRun& run) { return run.has(node); });
    }

    void clear() { runs_.clear(); }
    void push_back(const NodeShare& share) { push_back(NodeRun{share.node, 1, share.gpus}); }
    void push_back(const NodeRun& run);
    // Adds GPUs, also on nodes that it has. It must be sorted by node, and stays so.
    void insert(const Allocation& more);
    // Takes a node out that it has, and returns what it had of it.
    Allocation erase(std::uint32_t node);

  private:
    void insert(const NodeShare& share);
    std::vector<NodeRun> runs_;
};

class Placement {
  public:
    virtual ~Placement() = default;

    // The largest job that fits now. Every smaller one fits as well.
    virtual std::int64_t largest() const = 0;
    // Takes GPUs by the kind's rule. Needs 0 < gpus <= largest().
    virtual Allocation place(std::int64_t gpus) = 0;
    // Whether exactly these GPUs are free.
    virtual bool holds(const Allocation& allocation) const = 0;
    virtual void take(const Allocation& allocation) = 0;
    virtual void release(const Allocation& allocation) = 0;
    // Leaves free what is free in `other` as well, of the same kind and size.
    virtual void limit_to(const Placement& other) = 0;

    virtual std::int64_t free_gpus() const = 0;
    virtual std::int64_t busy_nodes() const = 0;  // 0 where the kind knows no nodes
    // Why a job would not even fit into the empty virtual cluster; nothing when it would.
    virtual std::optional<std::string> never(std::int64_t gpus) const = 0;

    virtual std::unique_ptr<Placement> clone() const = 0;
};

struct PlacementKind {
    const char* name;
    const char* doc;
    std::unique_ptr<Placement> (*make)(std::int64_t nodes, std::int64_t gpus_per_node);
};

// In the order in which they are listed.
const std::vector<PlacementKind>& placement_kinds();

std::unique_ptr<Placement> make_pool(std::int64_t nodes, std::int64_t gpus_per_node);
std::unique_ptr<Placement> make_consolidate(std::int64_t nodes, std::int64_t gpus_per_node);

}  // namespace railyard
