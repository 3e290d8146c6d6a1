// The built-in networks: Clos trees over an order of the NICs.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <span>

#include "models/fabric/topology_builder.h"
#include "sim/integers.h"

namespace railyard {

namespace {

std::int64_t up_ports_for(std::int64_t down, double oversubscription) {
    const auto up = static_cast<std::int64_t>(real(down) / oversubscription);
    return real(up) * oversubscription < real(down) ? up + 1 : up;
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

}  // namespace

// What is above the leaves. `pods` is 0 where two tiers do, or one.
struct TreePlan {
    std::int64_t up = 0;  // links of a leaf
    FanOut spines;        // of two tiers
    // Three tiers: pods of leaves under one spine per leaf uplink.
    std::int64_t pods = 0;
    std::int64_t pod_leaves = 0;
    FanOut cores;  // of each group
};

namespace {

// A pod for each site.
std::optional<TreePlan> plan_sites(const TopologySpec& spec, std::int64_t leaf_count,
                                   std::int64_t up, Bandwidth port, std::string& problem) {
    TreePlan plan;
    plan.up = up;
    plan.pods = spec.sites;
    plan.pod_leaves = leaf_count / spec.sites;
    const Bandwidth rate = spec.site_bandwidth.bits_per_second() > 0 ? spec.site_bandwidth : port;
    const std::int64_t spine_ports = spec.spine.ports_at(port);
    const double down = real(plan.pod_leaves) * port.bytes_per_second() / rate.bytes_per_second();
    const auto links = static_cast<std::int64_t>(std::ceil(down / spec.site_oversubscription));
    if (plan.pod_leaves + links > spine_ports) {
        problem = fmt::format(
            "a site has two tiers: {} leaves and {} cables to other sites are more than the {} "
            "ports at {} of a spine ({})",
            plan.pod_leaves, links, spine_ports, line_rate_text(port), spec.spine.name);
        return std::nullopt;
    }
    const std::int64_t core_ports = spec.core.ports_at(rate);
    plan.cores = fan_out(plan.pods, links, spine_ports - plan.pod_leaves, core_ports);
    if (plan.cores.switches == 0) {
        problem = fmt::format("{} sites are more than the {} ports at {} of a core switch ({})",
                              plan.pods, core_ports, line_rate_text(rate), spec.core.name);
        return std::nullopt;
    }
    return plan;
}

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
    if (spec.sites > 1) return plan_sites(spec, leaf_count, plan.up, port, problem);
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

bool by_rail(const TopologySpec& spec) {
    return spec.kind != "fat_tree" && spec.kind != "single_switch";
}

// Whether all NICs of each tree are on one switch, which then needs no ports up.
bool one_leaf(const TopologySpec& spec, std::int64_t total, std::int64_t leaf_ports) {
    const std::int64_t leaves = by_rail(spec) ? spec.rail_count() : 1;
    const bool apart = leaves == 1 || spec.kind == "rail_only";
    return apart && spec.sites == 1 && spec.tiers == 0 && ceil_div(total, leaves) <= leaf_ports;
}

// How many of the nodes' NICs a leaf takes: as few leaves, or units, as the ports allow, and these filled
// evenly. `total` is of all NICs.
std::int64_t fitting_leaf(const TopologySpec& spec, std::int64_t total, std::int64_t server_nics,
                          std::int64_t leaf_ports) {
    if (spec.nodes_per_leaf > 0) {
        return spec.nodes_per_leaf * (by_rail(spec) ? 1 : spec.nics_per_node);
    }
    if (one_leaf(spec, total, leaf_ports)) return by_rail(spec) ? spec.nodes : total;
    const std::int64_t most =
        std::max<std::int64_t>(1, down_ports_max(leaf_ports, spec.oversubscription));
    if (by_rail(spec)) {
        // Servers take a part of every leaf's ports.
        std::int64_t units = 1;
        const auto ports = [&] {
            return ceil_div(spec.nodes, units) * (spec.nics_per_node / spec.rail_count()) +
                   ceil_div(server_nics, units * spec.rail_count());
        };
        while (ports() > most && units < spec.nodes) ++units;
        return ceil_div(spec.nodes, units);
    }
    const auto even = [](std::int64_t all, std::int64_t most_each) {
        return ceil_div(all, ceil_div(all, most_each));
    };
    if (most < spec.nics_per_node) return even(total, most);
    const std::int64_t boxes = ceil_div(total, spec.nics_per_node);
    return even(boxes, most / spec.nics_per_node) * spec.nics_per_node;
}

struct Shape {
    const TopologySpec& spec;
    std::function<VertexId(std::int64_t node, std::int64_t nic)> nic;
    std::vector<VertexId> server_nics;
    std::int64_t nics_per_leaf;   // the most
    std::int64_t first_node = 0;  // of the site
    std::int64_t end_node = 0;
};

Leaves node_by_node(const Shape& s) {
    Leaves leaves(1);
    const auto attach = [&](VertexId nic) {
        if (static_cast<std::int64_t>(leaves.back().size()) == s.nics_per_leaf) {
            leaves.emplace_back();
        }
        leaves.back().push_back(nic);
    };
    for (std::int64_t node = s.first_node; node < s.end_node; ++node) {
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
    for (std::int64_t first = s.first_node; first < s.end_node; first += s.nics_per_leaf) {
        const std::int64_t end = std::min(first + s.nics_per_leaf, s.end_node);
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
    for (std::int64_t node = s.first_node; node < s.end_node; ++node) {
        if ((node - s.first_node) % s.nics_per_leaf == 0) leaves.emplace_back();
        attach_rail(s, node, rail, leaves.back());
    }
    spread_servers(s, static_cast<std::size_t>(rail), static_cast<std::size_t>(s.spec.rail_count()),
                   leaves);
    return leaves;
}

// The nodes and servers of one site, and how many NICs its leaves take.
std::optional<Shape> shape_of(const Topology& t, const TopologySpec& spec, std::int64_t site,
                              Bandwidth port, std::string& problem) {
    const std::int64_t leaf_ports = spec.leaf.ports_at(port);
    TopologySpec own = spec;
    own.nodes = spec.nodes / spec.sites;
    own.servers = spec.servers / spec.sites;
    const std::int64_t server_nics = own.servers * own.nics_per_server;
    const std::int64_t total = own.nodes * own.nics_per_node + server_nics;
    Shape shape{
        spec, [&t](std::int64_t node, std::int64_t nic) { return t.nic(node, nic); }, {}, 0};
    shape.first_node = site * own.nodes;
    shape.end_node = shape.first_node + own.nodes;
    for (std::int64_t i = 0; i < server_nics; ++i) {
        shape.server_nics.push_back(t.server_nic(0, site * server_nics + i));
    }
    shape.nics_per_leaf = total;
    if (spec.kind != "single_switch") {
        shape.nics_per_leaf = fitting_leaf(own, total, server_nics, leaf_ports);
    } else if (total > leaf_ports) {
        problem = fmt::format("{} NICs on one switch, {} has {} ports at {}", total, spec.leaf.name,
                              leaf_ports, line_rate_text(port));
        return std::nullopt;
    }
    return shape;
}

}  // namespace

const std::vector<TopologyKind>& topology_kinds() {
    static const std::vector<TopologyKind> kinds = {
        {"fat_tree", "all NICs of a node on one leaf, leaves joined by spines"},
        {"rail_optimized",
         "NIC i of every node of a unit on the unit's leaf i, leaves joined by spines"},
        {"rail_only", "a separate network per rail; other rails are reached over NVLink"},
        {"dual_plane", "as rail_optimized, with planes = 2"},
        {"single_switch", "every NIC on one switch"},
    };
    return kinds;
}

bool TopologyBuilder::add_tree(const TopologySpec& spec,
                               const std::vector<std::vector<VertexId>>& leaves, Bandwidth port,
                               std::string& problem) {
    const std::optional<TreePlan> plan = plan_tree(spec, leaves, port, problem);
    if (!plan) return false;
    std::uint32_t position = 0;
    std::vector<VertexId> leaf_of;
    for (const auto& nics : leaves) {
        for (const VertexId nic : nics) set_position(nic, position++);
        leaf_of.push_back(add_switch(1, spec.leaf));
        for (const VertexId nic : nics) add_cable(nic, leaf_of.back(), port, spec.endpoint_cable);
    }
    if (plan->pods == 0) {
        add_above(2, spec.spine, plan->spines, leaf_of, port, spec.switch_cable);
    } else {
        add_pods(spec, *plan, leaf_of, port);
    }
    return true;
}

void TopologyBuilder::add_above(int level, const SwitchModel& model, const FanOut& fan,
                                std::span<const VertexId> below, Bandwidth port, Metres length) {
    for (std::int64_t s = 0; s < fan.switches; ++s) {
        const VertexId above = add_switch(level, model);
        for (const VertexId v : below) {
            for (std::int64_t k = 0; k < fan.links / fan.switches; ++k) {
                add_cable(v, above, port, length);
            }
        }
    }
}

// Spine j of every pod meets the others in core group j.
void TopologyBuilder::add_pods(const TopologySpec& spec, const TreePlan& plan,
                               const std::vector<VertexId>& leaf_of, Bandwidth port) {
    const auto leaf_count = static_cast<std::int64_t>(leaf_of.size());
    std::vector<std::vector<VertexId>> group(static_cast<std::size_t>(plan.up));
    for (std::int64_t pod = 0; pod < plan.pods; ++pod) {
        const std::int64_t first = pod * plan.pod_leaves;
        const std::int64_t end = std::min(first + plan.pod_leaves, leaf_count);
        for (auto& spines : group) {
            spines.push_back(add_switch(2, spec.spine));
            for (std::int64_t l = first; l < end; ++l) {
                add_cable(leaf_of[l], spines.back(), port, spec.switch_cable);
            }
        }
    }
    for (std::size_t j = 0; j < group.size(); ++j) {
        if (spec.sites > 1) {
            add_site_cores(spec, plan.cores, j, group[j], port);
        } else {
            add_above(3, spec.core, plan.cores, group[j], port, spec.switch_cable);
        }
    }
}

// Each in a building of its own, in turn; the group's place sets where the turns begin.
void TopologyBuilder::add_site_cores(const TopologySpec& spec, const FanOut& fan, std::size_t group,
                                     std::span<const VertexId> spines, Bandwidth port) {
    const Bandwidth rate = spec.site_bandwidth.bits_per_second() > 0 ? spec.site_bandwidth : port;
    for (std::int64_t s = 0; s < fan.switches; ++s) {
        const VertexId core = add_switch(3, spec.core);
        const std::size_t home = (group + static_cast<std::size_t>(s)) % spines.size();
        for (std::size_t site = 0; site < spines.size(); ++site) {
            const Metres length = site == home ? spec.switch_cable : spec.site_distance;
            for (std::int64_t k = 0; k < fan.links / fan.switches; ++k) {
                add_cable(spines[site], core, rate, length);
            }
        }
    }
}

Topology Topology::build(const TopologySpec& spec, std::string& problem) {
    TopologyBuilder t;
    t.start(spec);
    const Bandwidth port = spec.nic_bandwidth * (1.0 / real(spec.plane_count()));
    if (spec.leaf.ports_at(port) == 0) {
        problem = fmt::format("{} has ports of {}, slower than a NIC's {}", spec.leaf.name,
                              line_rate_text(spec.leaf.port_bandwidth), line_rate_text(port));
        return t;
    }
    // Leaves of one plane, tree by tree: those of a site, then those of the next.
    std::vector<Leaves> trees;
    const bool rails_apart = spec.kind == "rail_only";
    trees.resize(rails_apart ? static_cast<std::size_t>(spec.rail_count()) : 1);
    for (std::int64_t site = 0; site < spec.sites; ++site) {
        const std::optional<Shape> shape = shape_of(t, spec, site, port, problem);
        if (!shape) return t;
        for (std::size_t tree = 0; tree < trees.size(); ++tree) {
            const Leaves leaves = rails_apart ? one_rail(*shape, static_cast<std::int64_t>(tree))
                                  : by_rail(spec) ? rail_by_rail(*shape)
                                                  : node_by_node(*shape);
            trees[tree].insert(trees[tree].end(), leaves.begin(), leaves.end());
        }
    }
    // Room for as many cables above leaves, and above spines, as there are above NICs.
    t.wiring_->links.reserve(std::size_t{t.nic_count()} * 2 * 3 *
                             static_cast<std::size_t>(spec.plane_count()));
    for (std::int64_t plane = 0; plane < spec.plane_count(); ++plane) {
        for (const Leaves& leaves : trees) {
            if (!t.add_tree(spec, leaves, port, problem)) return t;
        }
    }
    t.finish();
    return t;
}

}  // namespace railyard
