#pragma once
// The networks of a cluster, as a scenario asks for them: [fabric.compute], [fabric.storage] and
// [fabric.management].

#include <string>
#include <vector>

#include "models/fabric/optics.h"
#include "models/fabric/packet_reader.h"
#include "models/fabric/routing.h"
#include "models/fabric/topology.h"
#include "sim/config.h"

namespace railyard {

struct ClusterNetwork {
    std::string name;  // "compute"
    NetworkKind kind = NetworkKind::roce;
    bool sharp = false;
    bool given = false;  // the scenario has its section
    bool kind_given = false;
    TopologySpec spec;
    RoutingSpec routing;
    bool hash_given = false;  // with the seed of its hashes
    Topology topology;        // empty when it was not to be built
    // What the scenario says cables are made of: from NICs to leaves, and between switches.
    std::optional<Optics> endpoint_optics, switch_optics;
    PacketProfile packets;  // when the topology is there and the packet scale was asked for
    // Entropy values of a queue pair, where the scenario has fewer than the catalogue; 0: it has not.
    std::int64_t few_values = 0;

    // Nothing where the scenario does not say.
    const std::optional<Optics>& optics_of(LinkId link) const {
        const Link& cable = topology.links()[link];
        const bool at_nic = topology.level(cable.from) == 0 || topology.level(cable.to) == 0;
        return at_nic ? endpoint_optics : switch_optics;
    }
    bool infiniband() const { return kind == NetworkKind::infiniband; }
    // How flows share it. Fewer entropy values than the catalogue's are as many paths by hash.
    RoutingSpec flow_routing() const;
};

// What a node has for its networks.
struct NodePorts {
    std::string node;  // in the catalogue
    std::int64_t nics = 0;
    std::int64_t rails = 0;  // NICs of one tray; 0: every NIC is on a rail of its own
    std::int64_t storage_nics = 0;
    std::string nic;              // in the catalogue
    std::int64_t nic_planes = 1;  // ports that one NIC can have
    Bandwidth line_rate;
    bool infiniband = false;
};

// What a network's section needs to know of the rest of the scenario.
struct NetworkContext {
    NodePorts ports;
    std::int64_t nodes = 0;
    std::int64_t storage_servers = 0;
    std::int64_t nics_per_server = 0;
    bool converged = false;        // storage traffic runs over the compute network
    bool for_want = false;         // for want of other NICs: a custom network need not have servers
    StorageClass storage_class{};  // and there in a traffic class of its own
    bool build = false;            // networks without a section too, by their defaults
    bool build_compute = false;    // that one at least
    bool packets = false;          // a packet window will run on them
    bool packet_rates = false;     // run.fidelity = "packet"
    bool storage_traffic = false;  // and some of it goes to storage
    bool many_jobs = false;        // only their steps use it
    bool any_steps = true;         // whether there are any
    bool step_measured = false;    // the one job's step is given, not computed
};

// Reads [fabric] with its networks, builds those that are given, and reports what cannot be cabled.
// Compute first; storage and management only when they have a section, or are to be built.
std::vector<ClusterNetwork> read_networks(Section& top, Catalogue& catalogue,
                                          const NetworkContext& context);

// Reads the key `network` of something that is in one of them, compute or storage. Nothing when that was not
// built.
const ClusterNetwork* choose_network(Section& section, const std::vector<ClusterNetwork>& networks);

// The switch that a network gets which names none: the slowest of this kind whose ports are as fast as the
// NICs; empty: there is none.
std::string fitting_switch(Catalogue& catalogue, bool infiniband, Bandwidth rate);

}  // namespace railyard
