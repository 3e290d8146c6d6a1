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
        case Routing::entropy:
            return PacketRouting::entropy;
        case Routing::destination:
        case Routing::ecmp:
            break;
    }
    return PacketRouting::path;
}

}  // namespace

MessageFlows::MessageFlows(const Topology& topology, RoutingSpec routing)
    : topology_(topology),
      router_(topology, routing),
      queue_pairs_(routing.queue_pairs),
      routing_(packet_routing(routing.policy)),
      sprays_ports_(goes_by_packet(routing.policy)) {}

void MessageFlows::pin(VertexId from, VertexId to, std::vector<LinkId> path) {
    pinned_[{from, to}] = std::move(path);
}

// What the flows of a message that has been sent join.
std::int64_t MessageFlows::joint_of(Handle message) {
    const auto first = flows_.begin() + message;
    if (first->joins < 0) {
        const std::int64_t joint = joints_++;
        std::for_each_n(first, queue_pairs_, [&](PacketFlow& flow) { flow.joins = joint; });
    }
    return first->joins;
}

MessageFlows::Handle MessageFlows::send(const Message& m) {
    const auto first = static_cast<Handle>(flows_.size());
    const bool joint = m.after != nothing && queue_pairs_ > 1;
    const std::int64_t after_joint = joint ? joint_of(m.after) : -1;
    const auto pinned = pinned_.find({m.from, m.to});
    for (std::int64_t q = 0; q < queue_pairs_; ++q) {
        PacketFlow flow;
        flow.routing = routing_;
        if (m.continues != nothing) {
            const PacketFlow& before = flows_[m.continues + q];
            flow.queue_pair = before.queue_pair;
            flow.path = before.path;
            flow.routing = before.routing;
            flow.ports = before.ports;
            flow.continues = m.continues + q;
        } else {
            flow.queue_pair = Router::queue_pair(m.from, m.to, m.label, q);
            if (pinned != pinned_.end()) {
                flow.path = pinned->second;
                flow.routing = PacketRouting::path;
            } else {
                usages_.clear();
                if (!router_.route_queue_pair(m.from, m.to, flow.queue_pair, usages_))
                    return nothing;
                for (const Usage& u : usages_) flow.path.push_back(u.link);
                if (sprays_ports_) flow.ports = router_.ports_towards(m.from, m.to);
                if (flow.ports.size() > planes_max) flow.ports.resize(planes_max);
            }
        }
        flow.bytes =
            std::max<std::int64_t>(1, m.bytes / queue_pairs_ + (q < m.bytes % queue_pairs_));
        flow.start = m.start;
        flow.after = joint ? -1 : m.after;
        flow.after_joint = after_joint;
        flow.traffic_class = m.traffic_class;
        flows_.push_back(std::move(flow));
    }
    return first;
}

void MessageFlows::each(Handle message, std::vector<std::int64_t>& flows) const {
    for (std::int64_t q = 0; q < queue_pairs_; ++q) flows.push_back(message + q);
}

std::size_t MessageFlows::aggregation_node(VertexId switch_) {
    const auto found = std::ranges::find(aggregating_, switch_);
    if (found == aggregating_.end()) {
        aggregating_.push_back(switch_);
        return aggregating_.size() - 1;
    }
    return static_cast<std::size_t>(found - aggregating_.begin());
}

VertexId MessageFlows::nic_towards(std::int64_t node, VertexId there, std::int64_t preferred) {
    const std::int64_t nics = topology_.nics_per_node();
    for (std::int64_t i = 0; i < nics; ++i) {
        const VertexId nic = topology_.nic(node, (preferred + i) % nics);
        if (router_.reaches(nic, there)) return nic;
    }
    throw NoPath(topology_.name(topology_.nic(node, 0)), topology_.name(there));
}

std::vector<std::int64_t> MessageFlows::all_reduce(const AggregationTree& tree, std::int64_t bytes,
                                                   std::int64_t pieces, Picoseconds start) {
    std::map<VertexId, std::size_t> node;  // of each switch
    for (const AggregationTree::Branch& b : tree.branches) {
        if (!node.contains(b.parent)) node.emplace(b.parent, aggregation_node(b.parent));
    }
    const auto is_nic = [&](VertexId v) { return topology_.level(v) == 0; };
    const auto branches = static_cast<std::int64_t>(tree.branches.size());
    std::vector<std::int64_t> arrivals;
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
        std::map<VertexId, std::int64_t> gathered;  // joint of each switch
        for (const auto& [switch_, index] : node) gathered.emplace(switch_, joints_++);
        const auto add = [&](PacketFlow flow) {
            flow.bytes = bytes;
            flow.start = start;
            // A piece has a flow for each branch up, and then for each down.
            if (piece > 0) flow.continues = static_cast<std::int64_t>(flows_.size()) - 2 * branches;
            flows_.push_back(std::move(flow));
            return static_cast<std::int64_t>(flows_.size()) - 1;
        };
        for (const AggregationTree::Branch& b : tree.branches) {
            PacketFlow up;
            if (!is_nic(b.child)) {
                up.path.push_back(from_aggregation_node(topology_, node.at(b.child)));
                up.after_joint = gathered.at(b.child);
            }
            up.path.push_back(b.up);
            up.path.push_back(to_aggregation_node(topology_, node.at(b.parent)));
            up.joins = gathered.at(b.parent);
            add(std::move(up));
        }
        std::map<VertexId, std::int64_t> received;  // the flow by which a switch gets it back
        std::vector<std::int64_t> of_nics;
        for (auto b = tree.branches.rbegin(); b != tree.branches.rend(); ++b) {
            PacketFlow down;
            down.path = {from_aggregation_node(topology_, node.at(b->parent)), reverse_link(b->up)};
            if (b->parent == tree.root) {
                down.after_joint = gathered.at(tree.root);
            } else {
                down.after = received.at(b->parent);
            }
            if (is_nic(b->child)) {
                of_nics.push_back(add(std::move(down)));
            } else {
                down.path.push_back(to_aggregation_node(topology_, node.at(b->child)));
                received[b->child] = add(std::move(down));
            }
        }
        arrivals.insert(arrivals.end(), of_nics.rbegin(), of_nics.rend());
    }
    return arrivals;
}

}  // namespace railyard
