#pragma once
// Routes of a packet window that the network would not choose: those of a stale or mistaken table, or of a
// switch that sends back up what it can't send on down. Several can close a circle of buffers, which
// shortest paths up and down never do.

#include <optional>
#include <string>
#include <vector>

#include "models/fabric/network_reader.h"

namespace railyard {

struct WindowRoute {
    std::string network;
    VertexId from = 0;  // NICs
    VertexId to = 0;
    std::vector<LinkId> path;
};

// Reads a [[window.route]]; nothing when its network was not built, or when something was wrong.
std::optional<WindowRoute> read_window_route(Section& section,
                                             const std::vector<ClusterNetwork>& networks);

}  // namespace railyard
