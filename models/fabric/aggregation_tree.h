#pragma once
// Reduction in the network (SHARP): the tree of switches that adds up what the NICs of a group send and
// hands the sum back to all of them.
//
// Graham et al., "Scalable Hierarchical Aggregation Protocol (SHARP)", COMHPC 2016: each switch of a tree has
// an aggregation node, an endpoint inside it; each branch is a reliable connection from the child's end to
// the parent's. A NIC sends its data once and receives the sum once, whatever the number of NICs.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/fabric/routing.h"

namespace railyard {

struct AggregationTree {
    struct Branch {
        VertexId child = 0;  // a NIC, or a switch whose own branches come earlier
        VertexId parent = 0;
        LinkId up = 0;  // from child to parent
    };
    std::uint64_t number = 0;  // aggregation_tree() makes it again by this
    VertexId root = 0;
    std::vector<Branch> branches;  // level by level, NICs first

    // What the reduction uses of the links, per byte of its own progress: each branch both ways.
    std::vector<Usage> usages() const;
};

// The lowest tree over these NICs, at least two; `number` tells trees apart. Digit by digit it chooses the
// NICs' port (in all of them the same), the root, and the cables level by level, so that trees of consecutive
// numbers take each cable once before any takes one again. Nothing when that port of a NIC is dead, or no
// switch is above all of them by cables that work.
std::optional<AggregationTree> aggregation_tree(const Topology& topology,
                                                std::span<const VertexId> nics,
                                                std::uint64_t number);

// Those of the `rail`th group of NICs: one for each port that works on all of them. None: nothing reduces.
std::vector<AggregationTree> aggregation_trees(const Topology& topology,
                                               std::span<const VertexId> nics, std::uint64_t rail);

// The links between a switch and its aggregation node, the number `index` of those in the window: behind
// all of the topology's.
LinkId from_aggregation_node(const Topology& topology, std::size_t index);
LinkId to_aggregation_node(const Topology& topology, std::size_t index);
// The index, of such a link; nothing for one of the topology's.
std::optional<std::size_t> aggregation_node_of(const Topology& topology, LinkId link);

}  // namespace railyard
