#pragma once
// The packet windows of a scenario: which traffic meets which fault, packet by packet, on its networks.

#include <string>
#include <vector>

#include "models/campaign/network.h"
#include "models/campaign/traffic_file.h"
#include "models/campaign/window_route.h"

namespace railyard {

// What the nodes of the job send. All NICs take part, each on its rail.
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
const std::vector<std::string>& window_traffic_names();
const std::vector<std::string>& window_fault_names();  // in the order of WindowFault::Kind

struct TrafficSpec {
    WindowTraffic kind = WindowTraffic::ring;
    Bytes bytes;               // of each flow; of a node's checkpoint
    std::int64_t steps = 1;    // of a ring
    std::int64_t senders = 0;  // of an incast
    std::int64_t stripes = 0;  // servers that a node writes to at once; 0: all
    Duration start{};
    std::vector<ListedFlow> flows;  // of a file
};

struct FaultSpec {
    std::string network;
    WindowFault fault;  // of one link; of all cables of a NIC where it has several
    std::vector<LinkId> links;
};

struct WindowSpec {
    bool given = false;  // the scenario has a [window]
    std::vector<TrafficSpec> traffic;
    std::vector<FaultSpec> faults;
    std::vector<WindowRoute> routes;
    Duration time_max{};
    std::int64_t events_max = 0;
    bool allow_loss = false;  // a lossless class that loses packets is a result, not a mistake
    // Of run.fidelity = "packet": a collective's rate has settled when twice the pieces change it by no more.
    double settled_within = 0;
    std::int64_t pieces_max = 0;
};

// One network's part of a window: its flows, and which traffic each belongs to.
struct NetworkWindow {
    const ClusterNetwork* network = nullptr;
    PacketWindow window;
    std::vector<std::size_t> traffic;  // of each flow: index into WindowSpec::traffic
};

// Who takes part.
struct WindowContext {
    const std::vector<ClusterNetwork>& networks;
    std::int64_t nodes = 0;  // of the job
    bool converged = false;  // storage traffic uses the compute network
    int storage_class = 1;   // of converged storage traffic
    std::uint64_t seed = 1;
    bool packet_rates = false;  // run.fidelity = "packet"
    std::string folder{};       // of the scenario: where files of traffic are looked for
};
// Reads [window]. Networks are looked at when they were built: for the places of faults, and for what the
// traffic is to them.
WindowSpec read_window(Section& top, const WindowContext& context);

// The networks that have traffic, compute first. Throws NoPath, and ScenarioError for more flows than a
// window takes, and for a route that none takes.
std::vector<NetworkWindow> lay_out(const WindowSpec& spec, const WindowContext& context);

}  // namespace railyard
