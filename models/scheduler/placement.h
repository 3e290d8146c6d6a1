#pragma once
// Which GPUs of a virtual cluster a job gets, all of them at once or none. A kind is one file and one
// row of placement_kinds(). GPUs of a node are alike: an allocation counts them.

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
using Allocation = std::vector<NodeShare>;

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
