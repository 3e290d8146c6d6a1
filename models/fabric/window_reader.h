#pragma once
// The packet windows of a scenario: which traffic meets which fault, packet by packet, on its networks.

#include <vector>

#include "models/fabric/window_fault.h"
#include "models/fabric/window_route.h"
#include "models/fabric/window_traffic.h"

namespace railyard {

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

}  // namespace railyard
