// The built-in networks: Clos trees over an order of the NICs.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <span>

#include "models/fabric/topology.h"
#include "sim/integers.h"

namespace railyard {

namespace {

std::int64_t up_ports_for(std::int64_t down, double oversubscription) {
    const auto up = static_cast<std::int64_t>(static_cast<double>(down) / oversubscription);
    return static_cast<double>(up) * oversubscription < static_cast<double>(down) ? up + 1 : up;
}

// The most ports down that leave enough ports up. By halving: slow links make very many ports of a switch.
std::int64_t down_ports_max(std::int64_t ports, double oversubscription) {
    std::int64_t fits = 0;
    for (std::int64_t beyond = ports + 1; beyond - fits > 1;) {
        const std::int64_t down = fits + (beyond - fits) / 2;
        (down + up_ports_for(down, oversubscription) <= ports ? fits : beyond) = down;
    }
    return fits;
}

// How `groups` switches meet above: `links` up from each, spread evenly over `switches`; 0 of them when
// the ports of those above don't do.
struct FanOut {
    std::int64_t links = 0;
    std::int64_t switches = 0;
};

// At least `least` links from each group, at most `most`; a few more when fewer switches then do.
FanOut fan_out(std::int64_t groups, std::int64_t least, std::int64_t most, std::int64_t ports) {
    FanOut best;
    for (std::int64_t links = least; links <= std::min(most, least + least / 8); ++links) {
        for (std::int64_t switches = 1; switches <= links; ++switches) {
            if (links % switches != 0 || groups * (links / switches) > ports) continue;
            if (best.switches == 0 || switches < best.switches) best = {links, switches};
            break;
        }
    }
    return best;
}

using Leaves = std::vector<std::vector<VertexId>>;

// What is above the leaves. `pods` is 0 where two tiers do, or one.
struct TreePlan {
    std::int64_t up = 0;  // links of a leaf
    FanOut spines;        // of two tiers
    // Three tiers: pods of leaves under one spine per leaf uplink.
    std::int64_t pods = 0;
    std::int64_t pod_leaves = 0;
    FanOut cores;  // of each group
};

std::optional<TreePlan> plan_three_tiers(const TopologySpec& spec, std::int64_t leaf_count,
                                         std::int64_t up, Bandwidth port, std::string& problem) {
    TreePlan plan;
    plan.up = up;
    const std::int64_t spine_ports = spec.spine.ports_at(port);
    const std::int64_t pod_leaves_max = down_ports_max(spine_ports, spec.spine_oversubscription);
    if (pod_leaves_max == 0) {
        problem =
            fmt::format("a spine ({}) has no port at {}", spec.spine.name, line_rate_text(port));
        return std::nullopt;
    }
    plan.pods = ceil_div(leaf_count, pod_leaves_max);
    plan.pod_leaves = ceil_div(leaf_count, plan.pods);
    const std::int64_t core_ports = spec.core.ports_at(port);
    plan.cores = fan_out(plan.pods, up_ports_for(plan.pod_leaves, spec.spine_oversubscription),
                         spine_ports - plan.pod_leaves, core_ports);
    if (plan.cores.switches == 0) {
        problem = fmt::format(
            "{} pods are more than the {} ports at {} of a core switch ({}) can join in three "
            "tiers",
            plan.pods, core_ports, line_rate_text(port), spec.core.name);
        return std::nullopt;
    }
    return plan;
}

std::optional<TreePlan> plan_tree(const TopologySpec& spec, const Leaves& leaves, Bandwidth port,
                                  std::string& problem) {
    TreePlan plan;
    std::size_t fullest = 0;
    for (const auto& nics : leaves) fullest = std::max(fullest, nics.size());
    const auto leaf_count = static_cast<std::int64_t>(leaves.size());
    const auto down = static_cast<std::int64_t>(fullest);
    plan.up = leaf_count == 1 ? 0 : up_ports_for(down, spec.oversubscription);
    const std::int64_t leaf_ports = spec.leaf.ports_at(port);
    if (down + plan.up > leaf_ports) {
        problem = fmt::format("a leaf needs {} ports down and {} up, {} has {} at {}", down,
                              plan.up, spec.leaf.name, leaf_ports, line_rate_text(port));
        return std::nullopt;
    }
    if (leaf_count == 1) return plan;
    const std::int64_t spine_ports = spec.spine.ports_at(port);
    plan.spines = fan_out(leaf_count, plan.up, leaf_ports - down, spine_ports);
    if (spec.tiers != 3 && plan.spines.switches > 0) return plan;
    if (spec.tiers != 2) return plan_three_tiers(spec, leaf_count, plan.up, port, problem);
    problem = fmt::format(
        "{} leaves are more than the {} ports at {} of a spine ({}) can join in two tiers",
        leaf_count, spine_ports, line_rate_text(port), spec.spine.name);
    return std::nullopt;
}

// How many of the nodes' NICs a leaf takes: as few leaves, or units, as the ports allow, and these filled
// evenly. `total` is of all NICs.
std::int64_t fitting_leaf(const TopologySpec& spec, bool by_rail, std::int64_t total,
                          std::int64_t server_nics, std::int64_t leaf_ports) {
    const std::int64_t most =
        std::max<std::int64_t>(1, down_ports_max(leaf_ports, spec.oversubscription));
    if (by_rail) {
        // Servers take a part of every leaf's ports.
        std::int64_t units = 1;
        const auto ports = [&] {
            return ceil_div(spec.nodes, units) * (spec.nics_per_node / spec.rail_count()) +
                   ceil_div(server_nics, units * spec.rail_count());
        };
        while (ports() > most && units < spec.nodes) ++units;
        return spec.nodes_per_leaf > 0 ? spec.nodes_per_leaf : ceil_div(spec.nodes, units);
    }
    const auto even = [](std::int64_t all, std::int64_t most_each) {
        return ceil_div(all, ceil_div(all, most_each));
    };
    if (spec.nodes_per_leaf > 0) return spec.nodes_per_leaf * spec.nics_per_node;
    if (most < spec.nics_per_node) return even(total, most);
    const std::int64_t boxes = ceil_div(total, spec.nics_per_node);
    return even(boxes, most / spec.nics_per_node) * spec.nics_per_node;
}

struct Shape {
    const TopologySpec& spec;
    std::function<VertexId(std::int64_t node, std::int64_t nic)> nic;
    std::vector<VertexId> server_nics;
    std::int64_t nics_per_leaf;  // the most
};

Leaves node_by_node(const Shape& s) {
    Leaves leaves(1);
    const auto attach = [&](VertexId nic) {
        if (static_cast<std::int64_t>(leaves.back().size()) == s.nics_per_leaf) {
            leaves.emplace_back();
        }
        leaves.back().push_back(nic);
    };
    for (std::int64_t node = 0; node < s.spec.nodes; ++node) {
        for (std::int64_t i = 0; i < s.spec.nics_per_node; ++i) attach(s.nic(node, i));
    }
    for (const VertexId nic : s.server_nics) attach(nic);
    return leaves;
}

// The servers' NICs from number `first` on, every so many of them, over all leaves in turn.
void spread_servers(const Shape& s, std::size_t first, std::size_t every, Leaves& leaves) {
    std::size_t leaf = 0;
    for (std::size_t i = first; i < s.server_nics.size(); i += every) {
        leaves[leaf].push_back(s.server_nics[i]);
        leaf = (leaf + 1) % leaves.size();
    }
}

// On a rail are every so many of a node's NICs: those at the same place in each of its trays.
void attach_rail(const Shape& s, std::int64_t node, std::int64_t rail,
                 std::vector<VertexId>& leaf) {
    for (std::int64_t i = rail; i < s.spec.nics_per_node; i += s.spec.rail_count()) {
        leaf.push_back(s.nic(node, i));
    }
}

// A leaf per rail of each unit of `nics_per_leaf` nodes.
Leaves rail_by_rail(const Shape& s) {
    Leaves leaves;
    for (std::int64_t first = 0; first < s.spec.nodes; first += s.nics_per_leaf) {
        const std::int64_t end = std::min(first + s.nics_per_leaf, s.spec.nodes);
        for (std::int64_t rail = 0; rail < s.spec.rail_count(); ++rail) {
            leaves.emplace_back();
            for (std::int64_t node = first; node < end; ++node) {
                attach_rail(s, node, rail, leaves.back());
            }
        }
    }
    spread_servers(s, 0, 1, leaves);
    return leaves;
}

// The leaves of one rail alone.
Leaves one_rail(const Shape& s, std::int64_t rail) {
    Leaves leaves;
    for (std::int64_t node = 0; node < s.spec.nodes; ++node) {
        if (node % s.nics_per_leaf == 0) leaves.emplace_back();
        attach_rail(s, node, rail, leaves.back());
    }
    spread_servers(s, static_cast<std::size_t>(rail), static_cast<std::size_t>(s.spec.rail_count()),
                   leaves);
    return leaves;
}

}  // namespace

const std::vector<TopologyKind>& topology_kinds() {
    static const std::vector<TopologyKind> kinds = {
        {"fat_tree", "all NICs of a node on one leaf, leaves joined by spines"},
        {"rail_optimized",
         "NIC i of every node of a unit on the unit's leaf i, leaves joined by spines"},
        {"rail_only", "a separate network per rail; other rails are reached over NVLink"},
        {"dual_plane", "two separate networks; each NIC has one port of half its rate in either"},
        {"single_switch", "every NIC on one switch"},
    };
    return kinds;
}

bool Topology::add_tree(const TopologySpec& spec, const std::vector<std::vector<VertexId>>& leaves,
                        Bandwidth port, std::string& problem) {
    const std::optional<TreePlan> plan = plan_tree(spec, leaves, port, problem);
    if (!plan) return false;
    std::uint32_t position = 0;
    std::vector<VertexId> leaf_of;
    for (const auto& nics : leaves) {
        for (const VertexId nic : nics) position_[nic] = position++;
        leaf_of.push_back(add_switch(1, spec.leaf));
        for (const VertexId nic : nics) add_cable(nic, leaf_of.back(), port, spec.endpoint_cable);
    }
    const auto add_above = [&](int level, const SwitchModel& model, const FanOut& fan,
                               std::span<const VertexId> below) {
        for (std::int64_t s = 0; s < fan.switches; ++s) {
            const VertexId above = add_switch(level, model);
            for (const VertexId v : below) {
                for (std::int64_t k = 0; k < fan.links / fan.switches; ++k) {
                    add_cable(v, above, port, spec.switch_cable);
                }
            }
        }
    };
    if (plan->pods == 0) {
        add_above(2, spec.spine, plan->spines, leaf_of);
        return true;
    }
    // Spine j of every pod meets the others in core group j.
    const auto leaf_count = static_cast<std::int64_t>(leaf_of.size());
    std::vector<std::vector<VertexId>> group(static_cast<std::size_t>(plan->up));
    for (std::int64_t pod = 0; pod < plan->pods; ++pod) {
        const std::int64_t first = pod * plan->pod_leaves;
        const std::int64_t end = std::min(first + plan->pod_leaves, leaf_count);
        for (auto& spines : group) {
            spines.push_back(add_switch(2, spec.spine));
            for (std::int64_t l = first; l < end; ++l) {
                add_cable(leaf_of[static_cast<std::size_t>(l)], spines.back(), port,
                          spec.switch_cable);
            }
        }
    }
    for (const auto& spines : group) add_above(3, spec.core, plan->cores, spines);
    return true;
}

Topology Topology::build(const TopologySpec& spec, std::string& problem) {
    Topology t;
    t.start(spec);
    const bool planes = spec.kind == "dual_plane";
    const Bandwidth port = planes ? spec.nic_bandwidth * 0.5 : spec.nic_bandwidth;
    const std::int64_t leaf_ports = spec.leaf.ports_at(port);
    if (leaf_ports == 0) {
        problem = fmt::format("{} has ports of {}, slower than a NIC's {}", spec.leaf.name,
                              line_rate_text(spec.leaf.port_bandwidth), line_rate_text(port));
        return t;
    }
    const bool by_rail = spec.kind != "fat_tree" && spec.kind != "single_switch";
    const auto total = static_cast<std::int64_t>(t.nic_count());
    const std::int64_t server_nics = spec.servers * spec.nics_per_server;
    Shape shape{spec, [&](std::int64_t node, std::int64_t nic) { return t.nic(node, nic); }, {}, 0};
    for (std::int64_t i = 0; i < server_nics; ++i) {
        shape.server_nics.push_back(t.server_nic(0, i));
    }
    if (spec.kind == "single_switch") {
        shape.nics_per_leaf = total;
        if (total > leaf_ports) {
            problem = fmt::format("{} NICs on one switch, {} has {} ports at {}", total,
                                  spec.leaf.name, leaf_ports, line_rate_text(port));
            return t;
        }
    } else {
        shape.nics_per_leaf = fitting_leaf(spec, by_rail, total, server_nics, leaf_ports);
    }
    if (spec.kind == "rail_only") {
        for (std::int64_t rail = 0; rail < spec.rail_count(); ++rail) {
            if (!t.add_tree(spec, one_rail(shape, rail), port, problem)) return t;
        }
    } else {
        const Leaves leaves = by_rail ? rail_by_rail(shape) : node_by_node(shape);
        for (int plane = 0; plane < (planes ? 2 : 1); ++plane) {
            if (!t.add_tree(spec, leaves, port, problem)) return t;
        }
    }
    t.finish();
    return t;
}

}  // namespace railyard
