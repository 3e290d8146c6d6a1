#pragma once
// The fat-tree that the traffic of traffic.h runs on, built by railyard: a port of each core switch to each
// pod, 400 Gbit/s everywhere.

#include "models/fabric/fabric.h"
#include "tests/bench/traffic.h"

namespace railyard {

inline Topology fat_tree(const Traffic& traffic) {
    const Bandwidth line = Bandwidth::bits_per_second(400'000'000'000);
    TopologySpec shape;
    shape.nodes = traffic.hosts();
    shape.tiers = 3;
    shape.nic_bandwidth = line;
    shape.leaf.name = "switch";
    shape.leaf.ports = 2 * traffic.half;
    shape.leaf.port_bandwidth = line;
    shape.spine = shape.leaf;
    shape.core = shape.leaf;
    shape.core.name = "core switch";
    shape.core.ports = traffic.pods;
    shape.endpoint_cable = shape.switch_cable = {};
    std::string problem;
    return Topology::build(shape, problem);
}

// The links of a flow, in order.
inline std::vector<LinkId> path_of(Router& router, const Flow& flow) {
    std::vector<Usage> usages;
    router.route(static_cast<VertexId>(flow.from), static_cast<VertexId>(flow.to), 0, usages);
    std::vector<LinkId> path;
    for (const Usage& u : usages) path.push_back(u.link);
    return path;
}

inline void add_flows(const std::vector<Flow>& flows, const Topology& topology,
                      PacketRouting routing, PacketEngine& engine) {
    Router router(topology, {Routing::ecmp});
    for (const Flow& each : flows) {
        PacketFlow flow;
        flow.path = path_of(router, each);
        flow.bytes = static_cast<std::int64_t>(each.bytes);
        flow.start = Picoseconds(static_cast<std::int64_t>(each.start_s * 1e12));
        flow.after = each.after;
        flow.routing = routing;
        engine.add(flow);
    }
}

}  // namespace railyard
