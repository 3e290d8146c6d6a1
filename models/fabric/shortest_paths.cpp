#include "models/fabric/shortest_paths.h"

#include <algorithm>

#include "sim/check.h"

namespace railyard {

namespace {

// As built by rule, and nothing in it is slow.
bool all_links_alike(const Topology& topology) {
    if (topology.spec().kind == "custom") return false;
    std::array<double, 8> rates{};  // of the cables above each level
    return std::ranges::all_of(topology.links(), [&](const Link& link) {
        double& rate = rates[std::min(topology.level(link.from), topology.level(link.to))];
        if (rate == 0) rate = link.bytes_per_s;
        return link.bytes_per_s == rate && rate > 0;
    });
}

}  // namespace

ShortestPaths::ShortestPaths(const Topology& topology)
    : topology_(topology),
      leaves_(topology.vertex_count() - topology.nic_count()),
      shapes_(leaves_.size()),
      leaf_number_(topology.vertex_count()) {
    RY_CHECK(topology.levels() <= heights);
    find_leaves();
    find_shapes();
}

bool ShortestPaths::all_alike() const {
    return all_links_alike(topology_) && std::ranges::all_of(shapes_, [&](const Shape& s) {
               const auto v = static_cast<VertexId>(topology_.nic_count() +
                                                    static_cast<std::size_t>(&s - shapes_.data()));
               return std::ranges::all_of(s.even_up, [](bool even) { return even; }) &&
                      (topology_.level(v) == 1 || s.down_leaves > 0);
           });
}

// The union over working links of what their far ends reach.
ShortestPaths::Leaves ShortestPaths::join(std::span<const LinkId> links, int height) {
    Ranges all;
    const auto take = [&](const Range& r) {
        // Neighbours in a tree cover neighbouring leaves, or the same: most unions are one range.
        if (!all.empty() && r.first >= all.back().first && r.first <= all.back().end) {
            all.back().end = std::max(all.back().end, r.end);
        } else if (r.first < r.end) {
            all.push_back(r);
        }
    };
    for (const LinkId l : links) {
        const Link& link = topology_.links()[l];
        if (link.bytes_per_s <= 0) continue;
        const Leaves& far = leaves_[link.to - topology_.nic_count()][height];
        if (far.pieces == whole) {
            take(far.hull);
        } else {
            for (const Range& r : pieces_[far.pieces]) take(r);
        }
    }
    if (all.empty()) return {};
    Ranges unsorted = std::move(all);
    all.clear();
    std::ranges::sort(unsorted, [](const Range& a, const Range& b) { return a.first < b.first; });
    for (const Range& r : unsorted) take(r);
    Leaves out{{all.front().first, all.back().end}, whole};
    if (all.size() > 1) {
        out.pieces = static_cast<std::uint32_t>(pieces_.size());
        pieces_.push_back(std::move(all));
    }
    return out;
}

void ShortestPaths::find_leaves() {
    const auto first = static_cast<VertexId>(topology_.nic_count());
    std::uint32_t number = 0;
    for (VertexId v = first; v < topology_.vertex_count(); ++v) {
        if (topology_.level(v) != 1) continue;
        leaf_number_[v] = number;
        leaves_[v - first][0].hull = {number, number + 1};
        ++number;
    }
    for (int level = 2; level <= topology_.levels(); ++level) {
        for (VertexId v = first; v < topology_.vertex_count(); ++v) {
            if (topology_.level(v) == level)
                leaves_[v - first][0] = join(topology_.down_links(v), 0);
        }
    }
    for (int height = 1; height < topology_.levels(); ++height) {
        for (VertexId v = first; v < topology_.vertex_count(); ++v) {
            leaves_[v - first][height] = join(topology_.up_links(v), height - 1);
        }
    }
}

void ShortestPaths::find_shapes() {
    const auto first = static_cast<VertexId>(topology_.nic_count());
    const auto far = [&](LinkId l, std::size_t height) -> const Leaves& {
        return leaves_[topology_.links()[l].to - first][height];
    };
    for (VertexId v = first; v < topology_.vertex_count(); ++v) {
        Shape& shape = shapes_[v - first];
        const auto up = topology_.up_links(v);
        for (std::size_t height = 0; height < heights; ++height) {
            shape.even_up[height] = std::ranges::all_of(up, [&](LinkId l) {
                const Leaves& leaves = far(l, height);
                const Range& same = far(up[0], height).hull;
                return topology_.links()[l].bytes_per_s > 0 && leaves.pieces == whole &&
                       leaves.hull.first == same.first && leaves.hull.end == same.end;
            });
        }
        const auto down = topology_.down_links(v);
        shape.ordered_down = topology_.level(v) > 1 &&
                             std::is_sorted(down.begin(), down.end(), [&](LinkId a, LinkId b) {
                                 const Range& left = far(a, 0).hull;
                                 const Range& right = far(b, 0).hull;
                                 return left.first < right.first || left.end < right.end;
                             });
        if (shape.ordered_down) find_even_down(v);
    }
}

void ShortestPaths::find_even_down(VertexId v) {
    const auto first = static_cast<VertexId>(topology_.nic_count());
    const auto far = [&](LinkId l) -> const Leaves& {
        return leaves_[topology_.links()[l].to - first][0];
    };
    const auto down = topology_.down_links(v);
    const Range all = leaves_[v - first][0].hull;
    const Range one = far(down[0]).hull;
    const auto leaves = one.end - one.first;
    const auto cables = static_cast<std::uint32_t>(
        std::ranges::count_if(down, [&](LinkId l) { return far(l).hull.first == one.first; }));
    if (down.size() % cables != 0) return;  // fewer to the last of them
    for (std::uint32_t i = 0; i < down.size(); ++i) {
        const Leaves& there = far(down[i]);
        const std::uint32_t begin = all.first + i / cables * leaves;
        const bool even = topology_.links()[down[i]].bytes_per_s > 0 && there.pieces == whole &&
                          there.hull.first == begin &&
                          there.hull.end == std::min(begin + leaves, all.end);
        if (!even) return;
    }
    shapes_[v - first].down_cables = cables;
    shapes_[v - first].down_leaves = leaves;
}

void ShortestPaths::aim_at(VertexId to) {
    target_ = to;
    target_leaves_.clear();
    for (const LinkId l : topology_.up_links(to)) {
        if (topology_.links()[reverse_link(l)].bytes_per_s > 0) {
            target_leaves_.push_back(leaf_number_[topology_.links()[l].to]);
        }
    }
}

// Is one of the target's leaves reached from switch `v` by going up so many levels and then down?
bool ShortestPaths::covers(VertexId v, int height) const {
    const Leaves& leaves = leaves_[v - topology_.nic_count()][height];
    for (const std::uint32_t leaf : target_leaves_) {
        if (leaf < leaves.hull.first || leaf >= leaves.hull.end) continue;
        if (leaves.pieces == whole) return true;
        const Ranges& pieces = pieces_[leaves.pieces];
        const auto after =
            std::upper_bound(pieces.begin(), pieces.end(), leaf,
                             [](std::uint32_t value, const Range& r) { return value < r.first; });
        if (after != pieces.begin() && leaf < std::prev(after)->end) return true;
    }
    return false;
}

int ShortestPaths::height_from(VertexId nic) const {
    for (int height = 0; height < topology_.levels(); ++height) {
        for (const LinkId l : topology_.up_links(nic)) {
            const Link& link = topology_.links()[l];
            if (link.bytes_per_s > 0 && covers(link.to, height)) return height;
        }
    }
    return -1;
}

// The only one of the target's leaves that a switch may have below it: its own plane's.
std::optional<std::uint32_t> ShortestPaths::target_leaf_below(VertexId v) const {
    const Range hull = leaves_[v - topology_.nic_count()][0].hull;
    std::optional<std::uint32_t> only;
    for (const std::uint32_t leaf : target_leaves_) {
        if (leaf < hull.first || leaf >= hull.end) continue;
        if (only) return std::nullopt;
        only = leaf;
    }
    return only;
}

// Those that can lead to the target's leaves, by bisection where they are in order.
std::span<const LinkId> ShortestPaths::down_links_near_target(VertexId v) const {
    const auto all = topology_.down_links(v);
    if (!shapes_[v - topology_.nic_count()].ordered_down) return all;
    const auto ends = std::minmax_element(target_leaves_.begin(), target_leaves_.end());
    const auto only = target_leaf_below(v);
    const std::uint32_t low = only.value_or(*ends.first);
    const std::uint32_t high = only.value_or(*ends.second);
    const auto hull = [&](LinkId l) {
        return leaves_[topology_.links()[l].to - topology_.nic_count()][0].hull;
    };
    const auto first =
        std::partition_point(all.begin(), all.end(), [&](LinkId l) { return hull(l).end <= low; });
    const auto end =
        std::partition_point(first, all.end(), [&](LinkId l) { return hull(l).first <= high; });
    return {first, end};
}

std::span<const LinkId> ShortestPaths::next_links(VertexId v, int height) {
    found_.clear();
    if (height < 0 && topology_.level(v) == 1) {  // the last hop: the target knows its leaves
        for (const LinkId l : topology_.up_links(target_)) {
            const LinkId down = reverse_link(l);
            if (topology_.links()[l].to == v && topology_.links()[down].bytes_per_s > 0) {
                found_.push_back(down);
            }
        }
        return found_;
    }
    if (height >= 0 && v >= topology_.nic_count() &&
        shapes_[v - topology_.nic_count()].even_up[height]) {
        return topology_.up_links(v);
    }
    const auto leaf = height < 0 ? target_leaf_below(v) : std::nullopt;
    if (leaf && shapes_[v - topology_.nic_count()].down_leaves > 0) {
        const Shape& shape = shapes_[v - topology_.nic_count()];
        const std::uint32_t first = leaves_[v - topology_.nic_count()][0].hull.first;
        const std::uint32_t place = (*leaf - first) / shape.down_leaves;
        return topology_.down_links(v).subspan(place * shape.down_cables, shape.down_cables);
    }
    for (const LinkId l : height < 0 ? down_links_near_target(v) : topology_.up_links(v)) {
        const Link& link = topology_.links()[l];
        if (link.bytes_per_s <= 0) continue;
        if (covers(link.to, std::max(0, height))) found_.push_back(l);
    }
    return found_;
}

}  // namespace railyard
