// The built-in networks: Clos trees over an order of the NICs.

#include <fmt/format.h>

#include <algorithm>
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

// The most cables down that leave ports for enough cables up. By halving: slow links make very many ports of
// a switch.
std::int64_t down_ports_max(const SwitchModel& model, Bandwidth down_rate, Bandwidth up_rate,
                            double oversubscription) {
    const std::int64_t ports = model.ports_at(down_rate);
    const auto down_all = real(ports);
    const auto up_all = real(model.ports_at(up_rate));
    const auto fit = [&](std::int64_t down) {
        const auto up = real(up_ports_for(down, oversubscription));
        return real(down) * up_all + up * down_all <= down_all * up_all;
    };
    std::int64_t fits = 0;
    for (std::int64_t beyond = ports + 1; beyond - fits > 1;) {
        const std::int64_t down = fits + (beyond - fits) / 2;
        (fit(down) ? fits : beyond) = down;
    }
    return fits;
}

// At least `least` links from each group, at most `most`; a few more when fewer switches then do.
FanOut fan_out(std::int64_t groups, std::int64_t least, std::int64_t most, std::int64_t ports) {
    FanOut best;
    if (ports == 0) return best;
    for (std::int64_t links = least; links <= std::min(most, least + least / 8); ++links) {
        std::int64_t switches = ceil_div(groups * links, ports);
        while (switches <= links && links % switches != 0) ++switches;
        if (switches <= links && (best.switches == 0 || switches < best.switches)) {
            best = {links, switches};
        }
    }
    return best;
}

using Leaves = std::vector<std::vector<VertexId>>;

}  // namespace

// What is above the leaves. `pods` is 0 where two tiers do, or one.
struct TreePlan {
    FanOut spines;  // of each pod, or of all leaves
    std::int64_t pods = 0;
    std::int64_t pod_leaves = 0;
    // The spines of each pod are dealt to so many groups, and a group meets that of each other pod.
    std::int64_t groups = 0;
    FanOut cores;  // of each group
};

namespace {

Bandwidth core_rate(const TopologySpec& spec, Bandwidth port) {
    return spec.site_bandwidth.bits_per_second() > 0 ? spec.site_bandwidth : port;
}

// As many links as asked for, so that no tier has more bandwidth than asked for; a few more only where that
// halves the switches.
FanOut fan_out_of_pod(std::int64_t leaves, std::int64_t least, std::int64_t most,
                      std::int64_t ports) {
    const FanOut exact = fan_out(leaves, least, least, ports);
    const FanOut more = fan_out(leaves, least, most, ports);
    return exact.switches > 0 && exact.switches < 2 * more.switches ? exact : more;
}

// As few core switches as the ports allow.
void plan_cores(TreePlan& plan, std::int64_t least, std::int64_t most, std::int64_t ports) {
    for (std::int64_t groups = plan.spines.switches; groups > 0; --groups) {
        const std::int64_t spines = plan.pods * ceil_div(plan.spines.switches, groups);
        const FanOut cores = fan_out(spines, least, most, ports);
        if (cores.switches == 0) continue;
        if (plan.groups == 0 || groups * cores.switches < plan.groups * plan.cores.switches) {
            plan.groups = groups;
            plan.cores = cores;
        }
    }
}

// What is wrong where a spine or a core switch is slower than a cable that it has to join.
std::string no_port(const char* what, const SwitchModel& model, Bandwidth rate, bool of_sites) {
    return fmt::format("a {} ({}) has no port at {}{}", what, model.name, line_rate_text(rate),
                       of_sites ? ", which sites.bandwidth asks for" : "");
}

// Pods of leaves, one for each site where there are several. `most`: links of a leaf.
std::optional<TreePlan> plan_pods(const TopologySpec& spec, std::int64_t leaf_count,
                                  std::int64_t up, std::int64_t most, Bandwidth port,
                                  std::string& problem) {
    TreePlan plan;
    const bool sites = spec.sites > 1;
    const Bandwidth rate = core_rate(spec, port);
    const bool given = sites && spec.site_bandwidth.bits_per_second() > 0;
    const double oversubscription =
        sites ? spec.site_oversubscription * rate.bytes_per_second() / port.bytes_per_second()
              : spec.spine_oversubscription;
    const std::int64_t spine_ports = spec.spine.ports_at(port);
    const std::int64_t down_max = down_ports_max(spec.spine, port, rate, oversubscription);
    if (spine_ports == 0 || (!sites && down_max == 0)) {
        problem = no_port("spine", spec.spine, port, false);
        return std::nullopt;
    }
    if (spec.spine.ports_at(rate) == 0) {
        problem = no_port("spine", spec.spine, rate, given);
        return std::nullopt;
    }
    const std::int64_t core_ports = spec.core.ports_at(rate);
    if (core_ports == 0) {
        problem = no_port("core switch", spec.core, rate, given);
        return std::nullopt;
    }
    plan.pods = sites ? spec.sites : ceil_div(leaf_count, down_max);
    plan.pod_leaves = ceil_div(leaf_count, plan.pods);
    plan.spines = fan_out_of_pod(plan.pod_leaves, up, most, down_max);
    if (plan.spines.switches == 0) {
        const std::int64_t cables = up_ports_for(plan.pod_leaves, oversubscription);
        problem = fmt::format(
            "a site has two tiers: {} leaves at {} and {} cable{} to other sites at {} are more "
            "than the {} ports of {} of a spine ({})",
            plan.pod_leaves, line_rate_text(port), cables, cables == 1 ? "" : "s",
            line_rate_text(rate), spec.spine.ports, line_rate_text(spec.spine.port_bandwidth),
            spec.spine.name);
        return std::nullopt;
    }
    const std::int64_t down = plan.pod_leaves * (plan.spines.links / plan.spines.switches);
    // What the leaves leave of a spine's ports, at the rate of its cables up.
    const std::int64_t left =
        in_proportion(spine_ports - down, spine_ports, spec.spine.ports_at(rate));
    plan_cores(plan, up_ports_for(down, oversubscription), left, core_ports);
    if (plan.groups == 0) {
        problem = fmt::format("{} {} are more than the {} ports at {} of a core switch ({}){}",
                              plan.pods, sites ? "sites" : "pods", core_ports, line_rate_text(rate),
                              spec.core.name, sites ? "" : " can join in three tiers");
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
    const std::int64_t up = leaf_count == 1 ? 0 : up_ports_for(down, spec.oversubscription);
    const std::int64_t leaf_ports = spec.leaf.ports_at(port);
    if (down + up > leaf_ports) {
        problem = fmt::format("a leaf needs {} ports down and {} up, {} has {} at {}", down, up,
                              spec.leaf.name, leaf_ports, line_rate_text(port));
        return std::nullopt;
    }
    if (spec.sites == 1 && leaf_count == 1) return plan;
    const std::int64_t up_most = leaf_ports - down;
    const std::int64_t spine_ports = spec.spine.ports_at(port);
    plan.spines = fan_out(leaf_count, up, up_most, spine_ports);
    if (spec.sites == 1 && spec.tiers != 3 && plan.spines.switches > 0) return plan;
    if (spec.sites > 1 || spec.tiers != 2) {
        return plan_pods(spec, leaf_count, up, up_most, port, problem);
    }
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
                          Bandwidth port) {
    if (spec.nodes_per_leaf > 0) {
        return spec.nodes_per_leaf * (by_rail(spec) ? 1 : spec.nics_per_node);
    }
    if (one_leaf(spec, total, spec.leaf.ports_at(port))) return by_rail(spec) ? spec.nodes : total;
    const std::int64_t most =
        std::max<std::int64_t>(1, down_ports_max(spec.leaf, port, port, spec.oversubscription));
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
        shape.nics_per_leaf = fitting_leaf(own, total, server_nics, port);
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

std::vector<VertexId> TopologyBuilder::add_above(int level, const SwitchModel& model,
                                                 const FanOut& fan, std::span<const VertexId> below,
                                                 Bandwidth port, Metres length) {
    std::vector<VertexId> added;
    for (std::int64_t s = 0; s < fan.switches; ++s) {
        added.push_back(add_switch(level, model));
        for (const VertexId v : below) {
            for (std::int64_t k = 0; k < fan.links / fan.switches; ++k) {
                add_cable(v, added.back(), port, length);
            }
        }
    }
    return added;
}

// A group's spines pod by pod: the cables down from a core switch lead to one pod after the other.
void TopologyBuilder::add_pods(const TopologySpec& spec, const TreePlan& plan,
                               std::span<const VertexId> leaf_of, Bandwidth port) {
    std::vector<std::vector<VertexId>> groups(static_cast<std::size_t>(plan.groups));
    const auto pod_leaves = static_cast<std::size_t>(plan.pod_leaves);
    for (std::size_t first = 0; first < leaf_of.size(); first += pod_leaves) {
        const auto leaves = leaf_of.subspan(first, std::min(pod_leaves, leaf_of.size() - first));
        const std::vector<VertexId> spines =
            add_above(2, spec.spine, plan.spines, leaves, port, spec.switch_cable);
        for (std::size_t j = 0; j < spines.size(); ++j) {
            groups[j * groups.size() / spines.size()].push_back(spines[j]);
        }
    }
    for (std::size_t g = 0; g < groups.size(); ++g) {
        if (spec.sites > 1) {
            add_site_cores(spec, plan.cores, g, groups[g], port);
        } else {
            add_above(3, spec.core, plan.cores, groups[g], port, spec.switch_cable);
        }
    }
}

// Each in a building of its own, in turn; the group's place sets where the turns begin.
void TopologyBuilder::add_site_cores(const TopologySpec& spec, const FanOut& fan, std::size_t group,
                                     std::span<const VertexId> spines, Bandwidth port) {
    const auto sites = static_cast<std::size_t>(spec.sites);
    for (std::int64_t s = 0; s < fan.switches; ++s) {
        const VertexId core = add_switch(3, spec.core);
        const std::size_t home = (group + static_cast<std::size_t>(s)) % sites;
        for (std::size_t i = 0; i < spines.size(); ++i) {
            const bool near = i * sites / spines.size() == home;
            const Metres length = near ? spec.switch_cable : spec.site_distance;
            for (std::int64_t k = 0; k < fan.links / fan.switches; ++k) {
                add_cable(spines[i], core, core_rate(spec, port), length);
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
