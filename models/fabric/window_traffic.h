#pragma once
// What the nodes of a job send in a packet window.

#include <string>
#include <vector>

#include "models/fabric/network_reader.h"
#include "models/fabric/traffic_file.h"

namespace railyard {

// All NICs take part, each on its rail.
enum class WindowTraffic : std::uint8_t {
    ring,         // each node to the next; a piece goes on when the one before it is acknowledged
    all_to_all,   // each NIC to the same NIC of every other node
    permutation,  // each NIC to one other
    incast,       // some NICs to one
    sharp,        // an all-reduce that the switches add up, rail by rail
    checkpoint,   // every node to the storage servers
    restore,      // and back
    file,         // what a file lists
};
extern const std::vector<std::string> window_traffic_names;
struct TrafficSpec {
    WindowTraffic kind = WindowTraffic::ring;
    Bytes bytes;               // of each flow; of a node's checkpoint
    std::int64_t steps = 1;    // of a ring
    std::int64_t senders = 0;  // of an incast
    std::int64_t group = 0;    // nodes that follow one another, of a ring and an all-to-all; 0: all
    std::int64_t stripes = 0;  // servers that a node writes to at once; 0: all
    Duration start{};
    std::vector<ListedFlow> flows;  // of a file
};

// Who takes part.
struct WindowContext {
    const std::vector<ClusterNetwork>& networks;
    std::int64_t nodes = 0;  // of the job
    bool converged = false;  // storage traffic uses the compute network
    int storage_class = 1;   // of converged storage traffic
    std::uint64_t seed = 1;
    bool packet_rates = false;  // run.fidelity = "packet"
};

// A [[window.traffic]]. Reports what its network can't take, and warns of what will not be noticed.
TrafficSpec read_window_traffic(Section& section, const WindowContext& context);
// What a window has that names no traffic: a ring.
TrafficSpec default_window_traffic();

constexpr std::int64_t window_flows_max = 4'000'000;

// How many nodes send to one another.
std::int64_t group_nodes(const TrafficSpec& traffic, std::int64_t nodes);
// The network that it runs on; null: there is none.
const ClusterNetwork* network_of(const TrafficSpec& traffic, const WindowContext& context);
// Whether it is between nodes and storage servers.
bool on_storage(WindowTraffic kind);
// The queue pairs that it takes there; of a reduction, to and from its leaves.
std::int64_t flows_of(const TrafficSpec& traffic, const ClusterNetwork& network,
                      const WindowContext& context);

}  // namespace railyard
