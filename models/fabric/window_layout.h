#pragma once
// A window's traffic as flows of each network, message by message, with its faults and routes.

#include <vector>

#include "models/fabric/packet_window.h"
#include "models/fabric/window_reader.h"

namespace railyard {

// One network's part of a window: its flows, and which traffic each belongs to.
struct NetworkWindow {
    const ClusterNetwork* network = nullptr;
    PacketWindow window;
    std::vector<std::size_t> traffic;  // of each flow: index into WindowSpec::traffic
};

// The networks that have traffic, compute first. Throws NoPath, and ScenarioError for more flows than a
// window takes.
std::vector<NetworkWindow> lay_out(const WindowSpec& spec, const WindowContext& context);

}  // namespace railyard
