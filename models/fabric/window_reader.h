#pragma once
// The packet windows of a scenario: which traffic meets which fault, packet by packet, on its networks.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/fabric/network_reader.h"
#include "models/fabric/packet_window.h"
#include "models/fabric/window_traffic.h"

namespace railyard {

// A route that the network would not choose: one of a stale or mistaken table, or of a switch that sends
// back up what it can't send on down. Several can close a circle of buffers, which shortest paths up and
// down never do.
struct WindowRoute {
    std::string network;
    VertexId from = 0;  // NICs
    VertexId to = 0;
    std::vector<LinkId> path;
};

// Reads a [[window.route]]; nothing when its network was not built, or when something was wrong.
std::optional<WindowRoute> read_window_route(Section& section,
                                             const std::vector<ClusterNetwork>& networks);

// What goes wrong in a packet window, at which NIC or cable.
extern const std::vector<std::string> window_fault_names;  // in the order of WindowFault::Kind

struct FaultSpec {
    std::string network;
    WindowFault fault;  // of one link; of all cables of a NIC where it has several
    std::vector<LinkId> links;
};

// Reads a [[window.fault]]; nothing when its network was not built, or when something was wrong.
std::optional<FaultSpec> read_window_fault(Section& section,
                                           const std::vector<ClusterNetwork>& networks);

// Reports a fault that one of `faults` is as well: the last would win.
void check_faulty_once(Section& section, const std::vector<FaultSpec>& faults,
                       const FaultSpec& fault);

struct WindowSpec {
    bool given = false;  // the scenario has a [window]
    std::vector<TrafficSpec> traffic;
    std::vector<FaultSpec> faults;
    std::vector<WindowRoute> routes;
    Duration time_max{};
    std::int64_t events_max = 0;
    bool allow_loss = false;  // a lossless class that loses packets is a result, not a mistake
    // With run.fidelity = "packet" a collective's rate has settled when twice the pieces change it no more.
    double settled_within = 0;
    std::int64_t pieces_max = 0;
};

// Reads [window]. Networks are looked at when they were built: for the places of faults, and for what the
// traffic is to them.
WindowSpec read_window(Section& top, const WindowContext& context);

// The cluster's networks, and what is sent over them in a packet window: [fabric], [window].
struct NetworksSpec {
    std::vector<ClusterNetwork> networks;  // compute, storage, management
    bool converged = false;                // storage traffic uses the compute network
    bool own_class = false;                // and there in a traffic class of its own
    WindowSpec window;
};

// ---- a window's traffic as flows of each network, message by message, with its faults and routes ----

// One network's part of a window: its flows, and which traffic each belongs to.
struct NetworkWindow {
    const ClusterNetwork* network = nullptr;
    PacketWindow window;
    std::vector<std::size_t> traffic;  // of each flow: index into WindowSpec::traffic
    // Where `network` is one of these, with NICs that are slower than the scenario's own networks have.
    std::shared_ptr<const std::vector<ClusterNetwork>> slowed;
};

// The networks that have traffic, compute first. Throws NoPath, and ScenarioError for more flows than a
// window takes.
std::vector<NetworkWindow> lay_out(const WindowSpec& spec, const WindowContext& context);

}  // namespace railyard
