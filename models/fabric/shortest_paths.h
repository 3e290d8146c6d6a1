#pragma once
// The shortest paths of a network: up the tree and down again, by what each switch has below it.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/fabric/topology.h"

namespace railyard {

class ShortestPaths {
  public:
    static constexpr int heights = 4;  // one more than the levels above the leaves

    // `topology` must outlive it and not change.
    explicit ShortestPaths(const Topology& topology);

    // Packets that spread evenly over all shortest paths load equal cables equally, between any two NICs.
    bool all_alike() const;

    // What follows is about paths to this NIC.
    void aim_at(VertexId to);
    VertexId target() const { return target_; }
    // How many levels above its leaf a path from this NIC turns round; -1: there is none.
    int height_from(VertexId nic) const;
    // Links out of v on shortest paths that still go up `height` levels: below 0 on the way down. Valid until
    // the next call.
    std::span<const LinkId> next_links(VertexId v, int height);

  private:
    // Leaves by number: a range, and where a tree is broken the pieces of it.
    struct Range {
        std::uint32_t first;
        std::uint32_t end;
    };
    using Ranges = std::vector<Range>;
    struct Leaves {
        Range hull{0, 0};
        std::uint32_t pieces = whole;  // index into pieces_
    };
    static constexpr std::uint32_t whole = UINT32_MAX;

    // What spares looking at every link of a switch, where nothing is broken.
    struct Shape {
        std::array<bool, heights> even_up{};  // so many levels above its up links is the same
        bool ordered_down = false;            // its down links lead to leaves in ascending order
        // And so many links in a row to the same so many leaves, on from its first; 0 leaves: not so.
        std::uint32_t down_cables = 0;
        std::uint32_t down_leaves = 0;
    };

    void find_leaves();
    void find_shapes();
    void find_even_down(VertexId v);
    std::optional<std::uint32_t> target_leaf_below(VertexId v) const;
    std::span<const LinkId> down_links_near_target(VertexId v) const;
    Leaves join(std::span<const LinkId> links, int height);
    bool covers(VertexId v, int height) const;

    const Topology& topology_;
    // For each switch the leaves that are reached by going up so many levels, and then down. Working links
    // only, so that a route never runs into a dead one further on.
    std::vector<std::array<Leaves, heights>> leaves_;
    std::vector<Ranges> pieces_;
    std::vector<Shape> shapes_;               // of each switch
    std::vector<std::uint32_t> leaf_number_;  // of each vertex that is one
    VertexId target_ = 0;
    std::vector<std::uint32_t> target_leaves_;  // by number: one, or one in each plane
    std::vector<LinkId> found_;                 // candidates that are not all links of a switch
};

}  // namespace railyard
