#pragma once
// Messages from NIC to NIC as flows of a packet window: one for each queue pair, routed as the network
// routes. And reductions in the network, over trees of its switches.

#include <map>
#include <utility>
#include <vector>

#include "models/fabric/aggregation_tree.h"
#include "models/fabric/packet_engine.h"
#include "models/fabric/routing.h"

namespace railyard {

class MessageFlows {
  public:
    // `topology` must outlive this.
    MessageFlows(const Topology& topology, RoutingSpec routing);

    // A message that was sent; its flows have consecutive numbers.
    using Handle = std::int64_t;
    static constexpr Handle nothing = -1;
    struct Message {
        VertexId from = 0;
        VertexId to = 0;
        std::int64_t bytes = 0;  // at least one goes over each queue pair
        Picoseconds start{};
        Handle after = nothing;  // all of it has come
        // An earlier message of the same connection, whose queue pairs this one uses too.
        Handle continues = nothing;
        int traffic_class = 1;
        std::uint64_t label = 0;  // tells connections between the same two NICs apart
    };
    // All connections between two NICs take this path, whatever the network's routing.
    void pin(VertexId from, VertexId to, std::vector<LinkId> path);
    // `nothing` when no path is left.
    Handle send(const Message& message);
    // Appends the numbers of its flows.
    void each(Handle message, std::vector<std::int64_t>& flows) const;
    // An all-reduce of `pieces` of so many bytes, one behind the other: a switch sends one on when it has it
    // from all its children. One queue pair for each branch and direction, so a tree has one all_reduce().
    // Returns the flows by which NICs get it back: all of the first piece, in the order of their branches,
    // then all of the next.
    std::vector<std::int64_t> all_reduce(const AggregationTree& tree, std::int64_t bytes,
                                         std::int64_t pieces, Picoseconds start);
    // The node's NIC number `preferred`, or the next one with a path there: rails may not meet. Or NoPath.
    VertexId nic_towards(std::int64_t node, VertexId there, std::int64_t preferred);

    std::size_t size() const { return flows_.size(); }
    const std::vector<PacketFlow>& flows() const { return flows_; }
    std::vector<PacketFlow> take() { return std::move(flows_); }
    // PacketWindow::aggregating, of the trees so far.
    const std::vector<VertexId>& aggregating() const { return aggregating_; }

  private:
    std::int64_t joint_of(Handle message);
    std::size_t aggregation_node(VertexId switch_);  // its place among them

    const Topology& topology_;
    Router router_;
    std::int64_t queue_pairs_;
    PacketRouting routing_;
    bool sprays_ports_;
    std::map<std::pair<VertexId, VertexId>, std::vector<LinkId>> pinned_;
    std::vector<Usage> usages_;
    std::vector<PacketFlow> flows_;
    std::vector<VertexId> aggregating_;
    std::int64_t joints_ = 0;
};

}  // namespace railyard
