#include "models/fabric/window_traffic.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/fabric/packet_limits.h"
#include "sim/text.h"

namespace railyard {

namespace {

constexpr std::int64_t flow_packets_max = std::int64_t{1} << 31;  // they are counted in 32 bits

bool in_groups(WindowTraffic kind) {
    return kind == WindowTraffic::ring || kind == WindowTraffic::all_to_all;
}

bool in_steps(WindowTraffic kind) {
    return kind == WindowTraffic::ring || kind == WindowTraffic::sharp;
}

const ClusterNetwork* storage_network(const WindowContext& context) {
    if (context.converged) return context.networks.data();
    for (const ClusterNetwork& n : context.networks) {
        if (n.name == "storage" && n.topology.vertex_count() > 0) return &n;
    }
    return nullptr;
}

// How many messages it takes; of a reduction, to and from its leaves.
std::int64_t messages(const TrafficSpec& t, const Topology& network, std::int64_t nodes) {
    const std::int64_t nics = nodes * network.nics_per_node();
    switch (t.kind) {
        case WindowTraffic::ring:
            return group_nodes(t, nodes) > 1 ? nics * t.steps : 0;
        case WindowTraffic::all_to_all:
            return nics * (group_nodes(t, nodes) - 1);
        case WindowTraffic::permutation:
            return nics > 1 ? nics : 0;
        case WindowTraffic::incast:
            return t.senders > 0 ? std::min(t.senders, nics - 1) : nics - 1;
        case WindowTraffic::sharp:
            return nodes > 1 ? 2 * nics * t.steps : 0;
        case WindowTraffic::checkpoint:
        case WindowTraffic::restore:
            return nodes * (t.stripes > 0 ? std::min(t.stripes, network.spec().servers)
                                          : network.spec().servers);
        case WindowTraffic::file:
            return static_cast<std::int64_t>(t.flows.size());
    }
    return 0;
}

Bytes largest(const TrafficSpec& t) {
    Bytes out = t.kind == WindowTraffic::file ? Bytes{} : t.bytes;
    for (const ListedFlow& flow : t.flows) out = std::max(out, Bytes::of(flow.bytes));
    return out;
}

// What its network can't take, or will not notice.
void check_traffic(Section& section, const TrafficSpec& t, const WindowContext& context) {
    const ClusterNetwork* network = network_of(t, context);
    const std::string& name = word_of(window_traffic_names, t.kind);
    if (network == nullptr) {
        section.error(
            "kind", fmt::format("{}: there is no network between nodes and storage servers", name),
            "a node with storage NICs, or storage.network = \"compute\"");
        return;
    }
    if (t.kind == WindowTraffic::sharp && !network->sharp) {
        section.error("kind", "sharp: the compute network does not add up",
                      "fabric.compute.sharp = true, with InfiniBand switches");
        return;
    }
    if (in_groups(t.kind) && context.nodes % group_nodes(t, context.nodes) != 0) {
        section.error("group", fmt::format("expected a divisor of the job's {} nodes, found {}",
                                           context.nodes, t.group));
        return;
    }
    if (network->topology.vertex_count() == 0) return;
    const std::int64_t nics = context.nodes * network->topology.nics_per_node();
    if (t.kind == WindowTraffic::incast && t.senders >= nics && nics > 1) {
        section.warning("senders", fmt::format("{} of {}: of the job's {} NICs one receives",
                                               nics - 1, t.senders, nics));
    }
    const std::int64_t servers = network->topology.spec().servers;
    if (on_storage(t.kind) && t.stripes > servers) {
        section.warning("stripes",
                        fmt::format("{} of {}: there are no more servers", servers, t.stripes));
    }
    const std::int64_t payload = network->packets.spec.payload_bytes;
    const std::int64_t pieces = in_steps(t.kind) ? t.steps : 1;
    if (largest(t).count() / payload >= flow_packets_max / pieces) {
        section.error(t.kind == WindowTraffic::file ? "path" : "bytes",
                      fmt::format("expected less than {}, found {}",
                                  to_text(Bytes::of(flow_packets_max / pieces * payload)),
                                  to_text(largest(t))),
                      fmt::format("a queue pair has at most 2^31 packets of {}",
                                  to_text(Bytes::of(payload))));
    }
    const std::int64_t flows = flows_of(t, *network, context);
    if (flows > window_flows_max) {
        section.error("",
                      fmt::format("{} of {} nodes is {} flows, a window takes {}", name,
                                  context.nodes, flows, window_flows_max),
                      "fewer nodes, steps, stripes or queue pairs");
    } else if (flows == 0) {
        section.warning("",
                        fmt::format("{} sends nothing: {}", name,
                                    on_storage(t.kind) ? "there are no storage servers"
                                    : in_groups(t.kind) && t.group == 1 ? "groups of one node"
                                                                        : "the job has one node"));
    }
}

// The flows of a file, between the job's NICs.
void read_listed(Section& section, const std::string& path, const WindowContext& context,
                 TrafficSpec& t) {
    if (section.describing()) return;
    if (path.empty() != (t.kind != WindowTraffic::file)) {
        section.error("path", path.empty() ? "is missing: kind = \"file\" needs it"
                                           : "belongs to kind = \"file\"");
        return;
    }
    const Topology& network = context.networks[0].topology;
    if (path.empty() || network.vertex_count() == 0) return;
    Diagnostics diagnostics;
    try {
        t.flows = read_traffic_file(path, context.nodes * network.nics_per_node(), diagnostics);
    } catch (const ScenarioError& e) {
        section.error("path", e.diagnostics().empty() ? e.what() : e.diagnostics()[0].message);
    }
    diagnostics.raise_if_any();
}

}  // namespace

const std::vector<std::string> window_traffic_names = {
    "ring", "all_to_all", "permutation", "incast", "sharp", "checkpoint", "restore", "file"};

bool on_storage(WindowTraffic kind) {
    return kind == WindowTraffic::checkpoint || kind == WindowTraffic::restore;
}

std::int64_t group_nodes(const TrafficSpec& t, std::int64_t nodes) {
    return t.group > 0 ? t.group : nodes;
}

const ClusterNetwork* network_of(const TrafficSpec& t, const WindowContext& context) {
    return on_storage(t.kind) ? storage_network(context) : context.networks.data();
}

std::int64_t flows_of(const TrafficSpec& t, const ClusterNetwork& network,
                      const WindowContext& context) {
    return messages(t, network.topology, context.nodes) * network.routing.queue_pairs;
}

TrafficSpec default_window_traffic() {
    TrafficSpec ring;
    ring.bytes = Bytes::of(1 << 20);
    ring.steps = 8;
    return ring;
}

TrafficSpec read_window_traffic(Section& section, const WindowContext& context) {
    TrafficSpec t = default_window_traffic();
    section.choose("kind", t.kind, window_traffic_names, "What the job's nodes send");
    section.read("bytes", t.bytes, "Bytes of each flow; of each node for checkpoint and restore",
                 {Bound::positive});
    section.read("steps", t.steps, "Pieces that each NIC sends on, of ring and sharp",
                 {Bound::count});
    section.read("senders", t.senders, "NICs that send to one, of an incast",
                 {Bound::positive, "all others"});
    section.read("group", t.group,
                 "Nodes that follow one another and send among themselves, of ring and all_to_all: "
                 "a divisor of the job's",
                 {Bound::positive, "all"});
    section.read("stripes", t.stripes,
                 "Servers that a node uses at once, of checkpoint and restore",
                 {Bound::positive, "all"});
    section.read("start", t.start, "When it begins", {Bound::non_negative});
    keep_within(section, "start", t.start, packet_time_max);
    const std::string path =
        section.file("path",
                     "A list of flows, id,src,dst,bytes,start_ps,dep: NICs of the job counted node "
                     "by node; dep: the id of an earlier flow that must end first, or 0",
                     {.otherwise = "only with kind = \"file\""});
    section.finish();
    read_listed(section, path, context, t);
    const auto idle = [&](const char* key, bool used) {
        if (section.has(key) && !used) {
            section.warning(key, fmt::format("has no effect with kind = \"{}\"",
                                             word_of(window_traffic_names, t.kind)));
        }
    };
    idle("bytes", t.kind != WindowTraffic::file);
    idle("steps", in_steps(t.kind));
    idle("senders", t.kind == WindowTraffic::incast);
    idle("group", in_groups(t.kind));
    idle("stripes", on_storage(t.kind));
    if (section.ok() && !section.describing()) check_traffic(section, t, context);
    return t;
}

}  // namespace railyard
