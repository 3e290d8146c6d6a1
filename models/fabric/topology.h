#pragma once
// A network as flat arrays: NICs at level 0, switches above them, cables between neighbouring levels.
//
// Every built-in kind is one Clos tree, or several side by side, over an order of the NICs; the kinds
// differ in the order alone. A plain fat-tree takes them node by node, a rail-optimised one rail by rail
// within a scalable unit, a rail-only one has a tree per rail. Planes are all of that again, once for each
// port of a NIC.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/fabric/switch_model.h"
#include "sim/config.h"

namespace railyard {

using VertexId = std::uint32_t;
// One direction of a cable; the other direction of link l is l ^ 1, and cable l / 2 holds both.
using LinkId = std::uint32_t;
constexpr LinkId reverse_link(LinkId link) {
    return link ^ 1U;
}

struct TopologySpec {
    std::string kind = "fat_tree";  // a name in topology_kinds()
    std::int64_t nodes = 1;
    std::int64_t nics_per_node = 1;
    std::int64_t rails = 0;   // of a rack-size node, fewer than its NICs; 0: each NIC is on its own
    Bandwidth nic_bandwidth;  // line rate of a NIC, all its ports together, per direction
    // Networks side by side: each NIC has a port in each of them, of its rate's equal part.
    std::int64_t planes = 0;  // 0: one, or the two of a dual-plane network
    // Buildings: each has an equal part of the nodes, in their order, and a tree of two tiers of its own.
    // Core switches, which stand in one building or another, join the spines; a cable from another building
    // is as long as the way.
    std::int64_t sites = 1;
    Metres site_distance{0};
    double site_oversubscription = 1;  // a site's bandwidth to its spines over that to the cores
    Bandwidth site_bandwidth;          // of a cable to the cores; 0: a port's
    bool site_lossless = true;  // a cable between buildings has pauses, and headroom for them
    // Storage servers on the same network, with NICs of the same rate. They stand on the last leaves of a
    // network that is cabled node by node; rails spread them over all leaves.
    std::int64_t servers = 0;
    std::int64_t nics_per_server = 0;
    SwitchModel leaf;
    SwitchModel spine;
    SwitchModel core;
    std::int64_t tiers = 0;                // of switches: 2 or 3; 0: as many as it takes
    double oversubscription = 1;           // a leaf's bandwidth down over that up
    double spine_oversubscription = 1;     // likewise between spine and core, three tiers
    std::int64_t nodes_per_leaf = 0;       // 0: as many as the leaf's ports allow
    double propagation_s_per_m = 5.05e-9;  // in fibre and copper alike
    Metres endpoint_cable{10};             // NIC to leaf
    Metres switch_cable{30};               // between switches
    std::string endpoint_optics;           // entries of the catalogue; empty: by rate and length
    std::string switch_optics;

    std::int64_t rail_count() const { return rails > 0 ? rails : nics_per_node; }
    std::int64_t plane_count() const { return planes > 0 ? planes : kind == "dual_plane" ? 2 : 1; }
    Picoseconds propagation(Metres length) const {
        return Picoseconds(static_cast<std::int64_t>(length.value * propagation_s_per_m * 1e12));
    }
    bool operator==(const TopologySpec&) const = default;
};

struct Link {
    VertexId from = 0;
    VertexId to = 0;
    double bytes_per_s = 0;  // 0: dead
    Picoseconds latency{};   // propagation and what the switch at `to` takes
};

const char* level_name(int level);  // "NIC", "leaf", "spine", "core"

// What cables are bought as: by where they run, and how far.
struct CableKind {
    int low_level = 0;  // from this level to the next
    Metres length;
    Bandwidth bandwidth;
    std::int64_t count = 0;
};

class Topology {
  public:
    Topology();

    // Builds what `spec` asks for. What cannot be cabled is reported as text in `problem`, which names the
    // port that runs out and what would help; the topology is then unusable.
    static Topology build(const TopologySpec& spec, std::string& problem);

    // A network of the user's own, from a TOML document:
    //
    //     [[switch]]   name = "leaf-0", tier = 1, model = "qm9700_ndr"
    //     [[cable]]    from = "leaf-0", to = "spine-0", count = 4, bandwidth = "400 Gbit/s"
    //     [[attach]]   switch = "leaf-0", first_node = 0, last_node = 31, nic = 0
    //
    // Cables join neighbouring tiers; each attach is one port of NIC `nic` (or of all of them) on each node.
    // Storage servers are the nodes after the last one.
    static Topology read(Section& top, const TopologySpec& spec, Catalogue& catalogue);

    // What was asked for, and of a custom network what its file leaves open.
    const TopologySpec& spec() const { return wiring_->spec; }
    std::int64_t nodes() const { return wiring_->spec.nodes; }
    std::int64_t nics_per_node() const { return wiring_->spec.nics_per_node; }
    std::size_t nic_count() const {  // vertices 0 to this, nodes' before servers'
        return static_cast<std::size_t>(wiring_->spec.nodes * wiring_->spec.nics_per_node +
                                        wiring_->spec.servers * wiring_->spec.nics_per_server);
    }
    VertexId nic(std::int64_t node, std::int64_t index) const {
        return static_cast<VertexId>(node * wiring_->spec.nics_per_node + index);
    }
    VertexId server_nic(std::int64_t server, std::int64_t index) const {
        return static_cast<VertexId>(wiring_->spec.nodes * wiring_->spec.nics_per_node +
                                     server * wiring_->spec.nics_per_server + index);
    }

    std::size_t vertex_count() const { return wiring_->level.size(); }
    int level(VertexId v) const { return wiring_->level[v]; }  // 0: a NIC; then leaf, spine, core
    int levels() const { return static_cast<int>(wiring_->count.size()) - 1; }  // the highest level
    std::string name(VertexId v) const;  // "node-3.nic-0", "server-1.nic-0", "leaf-12"
    const SwitchModel& switch_model(VertexId v) const;  // of a switch
    // Where a NIC stands in the order of its tree's leaves: what destination-based routing counts by.
    std::uint32_t position(VertexId nic) const { return wiring_->position[nic]; }

    const std::vector<Link>& links() const { return wiring_->links; }
    Bandwidth line_rate(LinkId link) const { return wiring_->rate[link / 2]; }  // as it was bought
    Metres cable_length(LinkId link) const { return wiring_->length[link / 2]; }
    // The link's latency if its cable were so long.
    Picoseconds latency_at(LinkId link, Metres length) const {
        return wiring_->links[link].latency + spec().propagation(length) -
               spec().propagation(cable_length(link));
    }
    bool between_sites(LinkId link) const {
        return wiring_->spec.sites > 1 &&
               cable_length(link).value == wiring_->spec.site_distance.value;
    }
    // Whether classes with pauses have them on this cable.
    bool pauses(LinkId link) const { return wiring_->spec.site_lossless || !between_sites(link); }
    std::span<const LinkId> up_links(VertexId v) const {
        return slice(wiring_->up, wiring_->up_first, v);
    }
    std::span<const LinkId> down_links(VertexId v) const {
        return slice(wiring_->down, wiring_->down_first, v);
    }
    std::int64_t ports_used(VertexId v) const {
        return static_cast<std::int64_t>(up_links(v).size() + down_links(v).size());
    }
    // How many of its cables lead to other sites.
    std::int64_t site_cables(VertexId v) const;
    const std::vector<CableKind>& cables() const { return wiring_->cables; }
    // What those from this level to the next are made of; empty: what their rate and length ask for.
    const std::string& optics(int low_level) const {
        return low_level == 0 ? wiring_->spec.endpoint_optics : wiring_->spec.switch_optics;
    }

    // Two networks with the same two numbers carry the same: the one is of their shape, the other of their
    // links' speeds. Worked out when it is first asked for. A custom network has names besides.
    using Likeness = std::array<std::uint64_t, 2>;
    Likeness likeness() const;

    // Multiplies both directions of a cable's line rate; 0 kills it. What was copied before stays as it is.
    void degrade(LinkId link, double factor);
    std::optional<VertexId> find(const std::string& name) const;

  protected:
    struct Wiring {
        Wiring() { spec.nodes = spec.nics_per_node = 0; }  // until it is built
        TopologySpec spec;
        std::vector<std::uint8_t> level;
        std::vector<std::uint8_t> model;      // of each vertex: index into models
        std::vector<std::uint32_t> number;    // of each vertex, within its level
        std::vector<std::uint32_t> count;     // of each level
        std::vector<std::string> given_name;  // of each switch of a custom network
        std::vector<std::uint32_t> position;  // of each NIC
        std::vector<SwitchModel> models;
        std::vector<Link> links;
        std::vector<Bandwidth> rate;  // of each cable
        std::vector<Metres> length;   // likewise
        std::vector<CableKind> cables;
        std::vector<LinkId> up;
        std::vector<LinkId> down;
        std::vector<std::uint32_t> up_first;
        std::vector<std::uint32_t> down_first;
        std::optional<Likeness> likeness;  // once somebody has asked
    };

    // Copies share it until one of them is degraded.
    std::shared_ptr<Wiring> wiring_;

  private:
    static std::span<const LinkId> slice(const std::vector<LinkId>& all,
                                         const std::vector<std::uint32_t>& first, VertexId v) {
        return {all.data() + first[v], all.data() + first[v + 1]};
    }
};

std::vector<double> capacities(const Topology& topology);  // bytes/s, by link, as it works
// A cable between two vertices, a sound one if there is one left; nullopt when nothing joins them.
std::optional<LinkId> cable_between(const Topology& topology, VertexId a, VertexId b);
// One NIC from each part that is cut off from node 0's first NIC; empty when all is connected.
std::vector<VertexId> unreachable(const Topology& topology);
// Least bandwidth, bytes/s per direction, between the first half of the nodes and the others: maximum flow
// finds the network's minimum cut.
double bisection_bytes_per_s(const Topology& topology);

struct TopologyKind {
    const char* name;
    const char* doc;
};
// "custom" is not among them: it has a file instead of a shape.
const std::vector<TopologyKind>& topology_kinds();

}  // namespace railyard
