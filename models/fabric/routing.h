#pragma once
// Chooses the links of a flow: shortest paths up the tree and down again, chosen among equals by a policy.

#include <array>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/fabric/shortest_paths.h"
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
    ecmp,  // by a hash of source, destination and queue pair; another at each switch, if not polarized
    adaptive,      // packet by packet, at each switch the output that would send it first
    spray,         // over all equal outputs evenly, packet by packet, in turn
    random_spray,  // likewise, by chance
    flowlet,  // likewise, but only after a pause of the flow: one that never pauses keeps the way that was
              // least loaded at each switch when it started
    entropy,  // by a hash of what each packet carries, which its sender chooses (Ultra Ethernet)
};
extern const std::vector<std::string> routing_names;
// A hash decides something.
constexpr bool hashes(Routing policy) {
    return policy == Routing::ecmp || policy == Routing::flowlet;
}

// Its packets choose for themselves: those of a NIC with a port in several planes go over all of them. Others
// are bound to a port with their queue pair.
constexpr bool goes_by_packet(Routing policy) {
    return !hashes(policy) && policy != Routing::destination;
}

// Two NICs that have to talk and between which no path is left: nothing that waits for them advances.
class NoPath : public std::exception {
  public:
    NoPath(const std::string& from, const std::string& to)
        : text_("no path is left from " + from + " to " + to) {}
    const char* what() const noexcept override { return text_.c_str(); }

  private:
    std::string text_;
};

// A seed for a network's hashes in place of its own; none: its own.
using HashSeed = std::optional<std::uint64_t>;

struct RoutingSpec {
    Routing policy = Routing::ecmp;
    // Queue pairs of one connection: its bytes are split evenly over them, each takes its own path.
    std::int64_t queue_pairs = 1;
    std::uint64_t hash_seed = 0;
    // All switches hash alike: flows that one tier has put together stay together in the next.
    bool hash_polarized = false;
};

class Router {
  public:
    // `topology` must outlive the router and not change.
    Router(const Topology& topology, RoutingSpec spec);

    // Appends the links of a connection from NIC to NIC; `label` tells connections between the same two
    // NICs apart. Where load decides, the connection's own stays where it was put. Where packets choose and
    // all ways are alike, one cable of each hop stands for all that carry as much: fair rates are the same.
    // False when no path is left: nothing is appended then.
    bool route(VertexId from, VertexId to, std::uint64_t label, std::vector<Usage>& usages);
    // What names a connection's queue pair, for NICs, which deal them out over their ports, and for
    // switches, which hash them.
    static std::uint64_t queue_pair(VertexId from, VertexId to, std::uint64_t label,
                                    std::int64_t number);
    // The path of that queue pair, in order: one of those that route() merges. Where packets are sprayed
    // there is none, and it is that of a hashed one.
    bool route_queue_pair(VertexId from, VertexId to, std::uint64_t queue_pair,
                          std::vector<Usage>& usages);
    bool reaches(VertexId from, VertexId to);
    // The NIC's links on shortest ways to another.
    std::vector<LinkId> ports_towards(VertexId from, VertexId to);
    // The sum of latencies along the connection's longest path.
    Picoseconds latency(std::span<const Usage> usages) const;

    // From now on switches hash with this seed.
    void rehash(std::uint64_t seed) { spec_.hash_seed = seed; }
    // As if no connection had been routed yet.
    void forget_loads();
    // For packets that are sprayed: from now on one cable of each hop stands for all that are alike, as for
    // adaptive ones, where all ways are. All connections have the rates that they had.
    void let_one_stand_for_all();
    // Whether a way between two NICs follows from the leaves that they are on: from none of the connections
    // before it, nor from a hash.
    bool by_leaf() const { return goes_by_packet(spec_.policy) && load_.empty(); }

  private:
    static constexpr std::uint32_t no_way = UINT32_MAX;

    // A vertex on the ways of packets that choose.
    struct Way {
        VertexId at = 0;
        std::uint32_t first = 0;  // of its outputs in outputs_
        std::uint32_t end = 0;
        double share = 0;        // of the bytes that come by here
        double bytes_per_s = 0;  // that get from here to the target
    };
    // One output of a switch whose outputs are being filled.
    struct Output {
        LinkId link = 0;
        double bytes_per_s = 0;  // of all that lies behind it too
        double load = 0;
        double level = 0;  // load / bytes_per_s
    };

    Picoseconds latency_by_cores(std::span<const Usage> usages) const;
    LinkId choose(VertexId v, std::uint64_t queue_pair, float share) const;
    LinkId choose_by_destination(VertexId v, int height);
    void walk(VertexId from, int height, std::uint64_t queue_pair, float share,
              std::vector<Usage>& usages);
    void spray(VertexId v, int height, float share, std::vector<Usage>& usages);
    void spread(VertexId from, int height, std::vector<Usage>& usages);
    void spread_from_port(VertexId from, int height, std::size_t port, float share,
                          std::vector<Usage>& usages);
    void find_ways(int height);
    void pour(std::vector<Usage>& usages);
    void fill(const Way& way);

    const Topology& topology_;
    RoutingSpec spec_;
    ShortestPaths paths_;
    std::span<const LinkId> candidates_;  // of the hop under way
    // By level: how many equal ways up there were below it, on the walk under way.
    std::array<std::uint32_t, ShortestPaths::heights + 1> stride_{};
    std::vector<double> load_;  // of each link, where load decides

    std::vector<Way> ways_;  // all of the packets under way, in the order of the hops to them
    std::vector<LinkId> outputs_;
    std::vector<std::uint32_t> way_of_;  // of each vertex, while it is one of them
    std::vector<Output> filling_;
};

}  // namespace railyard
