#pragma once
// Messages from NIC to NIC as flows of a packet window: one for each queue pair, routed as the network
// routes.

#include <vector>

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
        Handle after = nothing;  // queue pair by queue pair
        // An earlier message of the same connection, whose queue pairs this one uses too.
        Handle continues = nothing;
        int traffic_class = 1;
        std::uint64_t label = 0;  // tells connections between the same two NICs apart
    };
    // `nothing` when no path is left.
    Handle send(const Message& message);
    // Appends the numbers of its flows.
    void each(Handle message, std::vector<std::int64_t>& flows) const;
    bool reaches(VertexId from, VertexId to) { return router_.reaches(from, to); }

    std::size_t size() const { return flows_.size(); }
    std::vector<PacketFlow> take() { return std::move(flows_); }

  private:
    Router router_;
    std::int64_t queue_pairs_;
    PacketRouting routing_;
    std::vector<Usage> usages_;
    std::vector<PacketFlow> flows_;
};

}  // namespace railyard
