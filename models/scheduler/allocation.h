#pragma once
// The GPUs that a job has. Those of a node are alike: an allocation counts them.

#include <algorithm>
#include <cstdint>
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
    std::int64_t gpus_on(std::uint32_t node) const {  // 0: none
        const auto run =
            std::ranges::find_if(runs_, [node](const NodeRun& r) { return r.has(node); });
        return run == runs_.end() ? 0 : run->gpus;
    }

    void clear() { runs_.clear(); }
    void push_back(const NodeShare& share) { push_back(NodeRun{share.node, 1, share.gpus}); }
    void push_back(const NodeRun& run);
    // Adds GPUs, also on nodes that it has. It must be sorted by node, and stays so.
    void insert(const Allocation& more);
    void insert(const NodeShare& share);
    // Takes a node out that it has, and returns what it had of it.
    Allocation erase(std::uint32_t node);

  private:
    std::vector<NodeRun> runs_;
};

}  // namespace railyard
