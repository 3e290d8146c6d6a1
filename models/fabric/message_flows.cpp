#include "models/fabric/message_flows.h"

#include <algorithm>

namespace railyard {

namespace {

PacketRouting packet_routing(Routing policy) {
    switch (policy) {
        case Routing::spray:
            return PacketRouting::spray;
        case Routing::adaptive:
            return PacketRouting::adaptive;
        case Routing::flowlet:
            return PacketRouting::flowlet;
        case Routing::destination:
        case Routing::ecmp:
            break;
    }
    return PacketRouting::path;
}

// Each queue pair is a flow of its own here; and of packets that choose their way only the path's ends count.
RoutingSpec one_path(RoutingSpec routing) {
    routing.queue_pairs = 1;
    if (routing.policy == Routing::spray) routing.policy = Routing::ecmp;
    return routing;
}

}  // namespace

MessageFlows::MessageFlows(const Topology& topology, RoutingSpec routing)
    : router_(topology, one_path(routing)),
      queue_pairs_(routing.queue_pairs),
      routing_(packet_routing(routing.policy)) {}

MessageFlows::Handle MessageFlows::send(const Message& m) {
    const auto first = static_cast<Handle>(flows_.size());
    for (std::int64_t q = 0; q < queue_pairs_; ++q) {
        usages_.clear();
        const auto label =
            m.label * static_cast<std::uint64_t>(queue_pairs_) + static_cast<std::uint64_t>(q);
        if (!router_.route(m.from, m.to, label, usages_)) return nothing;
        PacketFlow flow;
        for (const Usage& u : usages_) flow.path.push_back(u.link);
        flow.bytes =
            std::max<std::int64_t>(1, m.bytes / queue_pairs_ + (q < m.bytes % queue_pairs_));
        flow.start = m.start;
        flow.after = m.after == nothing ? -1 : m.after + q;
        flow.traffic_class = m.traffic_class;
        flow.routing = routing_;
        flows_.push_back(std::move(flow));
    }
    return first;
}

void MessageFlows::each(Handle message, std::vector<std::int64_t>& flows) const {
    for (std::int64_t q = 0; q < queue_pairs_; ++q) flows.push_back(message + q);
}

bool MessageFlows::reaches(VertexId from, VertexId to) {
    usages_.clear();
    return router_.route(from, to, 0, usages_);
}

}  // namespace railyard
