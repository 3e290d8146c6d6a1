#include "models/fabric/aggregation_tree.h"

#include <algorithm>
#include <iterator>

namespace railyard {

namespace {

// The switches to which a cable that works goes up.
std::vector<LinkId> ways_up(const Topology& topology, VertexId v) {
    std::vector<LinkId> up;
    for (const LinkId l : topology.up_links(v)) {
        if (topology.links()[l].bytes_per_s > 0) up.push_back(l);
    }
    return up;
}

using Vertices = std::vector<VertexId>;  // sorted, each once

Vertices above(const Topology& topology, const Vertices& from) {
    Vertices up;
    for (const VertexId v : from) {
        for (const LinkId l : ways_up(topology, v)) up.push_back(topology.links()[l].to);
    }
    std::ranges::sort(up);
    up.erase(std::unique(up.begin(), up.end()), up.end());
    return up;
}

// The switches of the lowest level that has any above all of `leaves`.
Vertices common_roots(const Topology& topology, const Vertices& leaves) {
    std::vector<Vertices> reached;  // from each leaf
    for (const VertexId leaf : leaves) reached.push_back({leaf});
    for (int level = 1; level <= topology.levels(); ++level) {
        Vertices common = reached.front();
        for (const Vertices& each : reached) {
            Vertices both;
            std::set_intersection(common.begin(), common.end(), each.begin(), each.end(),
                                  std::back_inserter(both));
            common = std::move(both);
        }
        if (!common.empty()) return common;
        for (Vertices& each : reached) each = above(topology, each);
    }
    return {};
}

// By vertex: whether the root can be reached from it by going up, or is it.
std::vector<bool> below(const Topology& topology, VertexId root) {
    std::vector<bool> is_below(topology.vertex_count());
    is_below[root] = true;
    Vertices open = {root};
    while (!open.empty()) {
        const VertexId v = open.back();
        open.pop_back();
        for (const LinkId l : topology.down_links(v)) {
            const Link& link = topology.links()[l];
            if (topology.links()[reverse_link(l)].bytes_per_s <= 0 || is_below[link.to]) continue;
            is_below[link.to] = true;
            open.push_back(link.to);
        }
    }
    return is_below;
}

}  // namespace

std::vector<Usage> AggregationTree::usages() const {
    std::vector<Usage> out;
    for (const Branch& b : branches) {
        out.push_back({b.up, 1});
        out.push_back({reverse_link(b.up), 1});
    }
    merge_usages(out);
    return out;
}

std::optional<AggregationTree> aggregation_tree(const Topology& topology,
                                                std::span<const VertexId> nics,
                                                std::uint64_t number) {
    AggregationTree tree;
    tree.number = number;
    Vertices here;
    const std::size_t ports = topology.up_links(nics.front()).size();
    for (const VertexId nic : nics) {
        const std::span<const LinkId> up = topology.up_links(nic);
        const LinkId port = up[number % ports % up.size()];
        if (topology.links()[port].bytes_per_s <= 0) return std::nullopt;
        tree.branches.push_back({nic, topology.links()[port].to, port});
        here.push_back(topology.links()[port].to);
    }
    std::ranges::sort(here);
    here.erase(std::unique(here.begin(), here.end()), here.end());
    const Vertices roots = common_roots(topology, here);
    if (roots.empty()) return std::nullopt;
    number /= ports;
    tree.root = roots[number % roots.size()];
    number /= roots.size();
    const std::vector<bool> leads_up = below(topology, tree.root);
    while (here.size() > 1 || here.front() != tree.root) {
        Vertices next;
        std::size_t ways = 1;
        for (const VertexId v : here) {
            std::vector<LinkId> up = ways_up(topology, v);
            std::erase_if(up, [&](LinkId l) { return !leads_up[topology.links()[l].to]; });
            const LinkId chosen = up[number % up.size()];
            tree.branches.push_back({v, topology.links()[chosen].to, chosen});
            next.push_back(topology.links()[chosen].to);
            ways = std::max(ways, up.size());
        }
        number /= ways;
        std::ranges::sort(next);
        next.erase(std::unique(next.begin(), next.end()), next.end());
        here = std::move(next);
    }
    return tree;
}

std::vector<AggregationTree> aggregation_trees(const Topology& topology,
                                               std::span<const VertexId> nics, std::uint64_t rail) {
    const std::size_t ports = topology.up_links(nics.front()).size();
    std::vector<AggregationTree> trees;
    for (std::size_t port = 0; port < ports; ++port) {
        if (auto tree = aggregation_tree(topology, nics, rail * ports + port)) {
            trees.push_back(std::move(*tree));
        }
    }
    return trees;
}

LinkId from_aggregation_node(const Topology& topology, std::size_t index) {
    return static_cast<LinkId>(topology.links().size() + 2 * index);
}

LinkId to_aggregation_node(const Topology& topology, std::size_t index) {
    return reverse_link(from_aggregation_node(topology, index));
}

std::optional<std::size_t> aggregation_node_of(const Topology& topology, LinkId link) {
    const std::size_t links = topology.links().size();
    if (link < links) return std::nullopt;
    return (link - links) / 2;
}

}  // namespace railyard
