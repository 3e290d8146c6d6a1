#pragma once
// Which links a flow takes: shortest paths up the tree and down again, chosen among equals by a policy.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/fabric/topology.h"

namespace railyard {

// A link and how much of a flow's bytes cross it: seven digits, so that 100,000 paths stay small.
struct Usage {
    LinkId link = 0;
    float share = 1;
};

// Joins usages of the same link, from index `first` on; sorts them by link.
void merge_usages(std::vector<Usage>& usages, std::size_t first = 0);

enum class Routing : std::uint8_t {
    destination,  // by the destination's place among the leaves (D-mod-k; what an InfiniBand subnet
                  // manager's fat-tree engine programs)
    ecmp,         // by a hash of source, destination and queue pair, of another seed at each switch
    adaptive,     // the output with the least load at each switch, when the flow starts
    spray,        // over all equal outputs evenly, packet by packet
};
const std::vector<std::string>& routing_names();

struct RoutingSpec {
    Routing policy = Routing::ecmp;
    // Queue pairs of one connection: its bytes are split evenly over them, each takes its own path.
    std::int64_t queue_pairs = 1;
    std::uint64_t hash_seed = 0;
};

class Router {
  public:
    // `topology` must outlive the router.
    Router(const Topology& topology, RoutingSpec spec);

    // Appends the links of a connection from NIC to NIC; `label` tells connections between the same two
    // NICs apart. Under adaptive routing the connection's load stays where it was put. False when no path
    // is left: nothing is appended then.
    bool route(VertexId from, VertexId to, std::uint64_t label, std::vector<Usage>& usages);
    // The sum of latencies along the connection's longest path.
    Picoseconds latency(std::span<const Usage> usages) const;

    // Connections routed anew, as after a change of links: forgets loads.
    void forget_loads();

  private:
    static constexpr std::uint8_t never = 255;

    void aim_at(VertexId to);
    std::uint8_t hops_up_from(VertexId v);
    // Links out of v on shortest paths to the target, into candidates_.
    void find_candidates(VertexId v);
    bool walk(VertexId from, std::uint64_t hash, float share, std::vector<Usage>& usages);
    void spray(VertexId v, float share, std::vector<Usage>& usages);
    LinkId choose(VertexId v, std::uint64_t hash) const;
    LinkId choose_by_destination(VertexId v);

    const Topology& topology_;
    RoutingSpec spec_;
    // Hops to the target, by vertex: going down only; and going up first. Valid where the stamp is ours,
    // so that aiming at another target touches only the target's ancestors.
    VertexId target_ = UINT32_MAX;
    std::uint32_t stamp_ = 0;
    std::vector<std::uint32_t> down_stamp_;
    std::vector<std::uint32_t> up_stamp_;
    std::vector<std::uint8_t> down_hops_;
    std::vector<std::uint8_t> up_hops_;
    std::vector<VertexId> frontier_;
    std::vector<LinkId> candidates_;
    // By level: how many equal ways up there were below it, on the walk under way.
    std::array<std::uint32_t, 8> stride_{};
    std::vector<double> load_;  // of each link, adaptive only
};

}  // namespace railyard
