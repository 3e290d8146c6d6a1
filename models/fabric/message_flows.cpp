#include "models/fabric/message_flows.h"

#include <algorithm>

namespace railyard {

namespace {

PacketRouting packet_routing(Routing policy) {
    switch (policy) {
        case Routing::spray:
            return PacketRouting::spray;
        case Routing::random_spray:
            return PacketRouting::random_spray;
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

}  // namespace

MessageFlows::MessageFlows(const Topology& topology, RoutingSpec routing)
    : router_(topology, routing),
      queue_pairs_(routing.queue_pairs),
      routing_(packet_routing(routing.policy)) {}

MessageFlows::Handle MessageFlows::send(const Message& m) {
    const auto first = static_cast<Handle>(flows_.size());
    for (std::int64_t q = 0; q < queue_pairs_; ++q) {
        PacketFlow flow;
        if (m.continues == nothing) {
            flow.hash = Router::hash(m.from, m.to, m.label, q);
            usages_.clear();
            if (!router_.route_queue_pair(m.from, m.to, flow.hash, usages_)) return nothing;
            for (const Usage& u : usages_) flow.path.push_back(u.link);
        } else {
            const PacketFlow& before = flows_[static_cast<std::size_t>(m.continues + q)];
            flow.hash = before.hash;
            flow.path = before.path;
            flow.continues = m.continues + q;
        }
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

}  // namespace railyard
