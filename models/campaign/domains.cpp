#include <algorithm>
#include <numeric>

#include "models/campaign/sections.h"

namespace railyard {

void read_layout(Section& cluster, ClusterLayout& layout) {
    cluster.read("nodes_per_rack", layout.nodes_per_rack,
                 "Nodes that a rack holds; rack-scale nodes are their own",
                 {Bound::count, "4; with [facility] as many as a rack's power allows"});
    layout.nodes_per_rack_given = cluster.has("nodes_per_rack");
    cluster.read("racks_per_pdu", layout.racks_per_pdu, "Racks that one power feed serves",
                 {Bound::count});
    cluster.read("racks_per_cdu", layout.racks_per_cdu, "Racks that one cooling loop serves",
                 {Bound::count});
    cluster.read("nodes_per_wave", layout.nodes_per_wave, "Nodes that get new firmware at once",
                 {Bound::count});
}

namespace {

// Nodes with a NIC on the same leaf.
FailureDomains by_leaf(const Topology& topology) {
    std::vector<std::vector<std::int64_t>> members;
    for (VertexId v = 0; v < topology.vertex_count(); ++v) {
        if (topology.level(v) != 1) continue;
        std::vector<std::int64_t> nodes;
        for (const LinkId link : topology.down_links(v)) {
            const auto nic = static_cast<std::int64_t>(topology.links()[link].to);
            const std::int64_t node = nic / topology.nics_per_node();
            if (node < topology.nodes()) nodes.push_back(node);
        }
        std::ranges::sort(nodes);
        nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
        if (!nodes.empty()) members.push_back(std::move(nodes));
    }
    return FailureDomains(std::move(members));
}

// A rail reaches every node.
FailureDomains every_node_by_rail(const Topology& topology) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(topology.nodes()));
    std::iota(all.begin(), all.end(), 0);
    return FailureDomains(std::vector(static_cast<std::size_t>(topology.nics_per_node()), all));
}

}  // namespace

FailureDomains domains_of(DomainKind kind, const Scenario& s, Section& section) {
    const std::int64_t nodes = s.nodes.nodes;
    const ClusterLayout& layout = s.layout;
    const Topology& topology = s.networks[0].topology;
    switch (kind) {
        case DomainKind::node:
            break;
        case DomainKind::nvlink:
            return FailureDomains::runs(
                nodes, std::max<std::int64_t>(1, s.node.nvlink_domain / s.node.gpus));
        case DomainKind::leaf:
        case DomainKind::rail:
            if (topology.vertex_count() == 0) {
                section.error("domain", "which nodes share a leaf or a rail is not known",
                              "add a section [fabric.compute]");
                return {};
            }
            if (kind == DomainKind::leaf) return by_leaf(topology);
            return every_node_by_rail(topology);
        case DomainKind::rack:
            return FailureDomains::runs(nodes, layout.nodes_per_rack);
        case DomainKind::pdu:
            return FailureDomains::runs(nodes, layout.nodes_per_rack * layout.racks_per_pdu);
        case DomainKind::cdu:
            return FailureDomains::runs(nodes, layout.nodes_per_rack * layout.racks_per_cdu);
        case DomainKind::breaker:
            if (!s.power.breaker) {
                section.error("domain", "which nodes share a breaker is not known",
                              "add a section [facility.breaker]");
                return {};
            }
            return FailureDomains::runs(nodes, s.power.breaker->nodes);
        case DomainKind::wave:
            return FailureDomains::runs(nodes, layout.nodes_per_wave);
    }
    return {};
}

}  // namespace railyard
