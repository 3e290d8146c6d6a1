#pragma once
// Packet windows of a scenario, run to their end.

#include <string>
#include <vector>

#include "models/campaign/campaign.h"

namespace railyard {

inline WindowResult run_to_its_end(const Scenario& s, const NetworkWindow& w,
                                   WindowRecord* record = nullptr) {
    StandaloneCatalogue own = s.open_catalogue();
    return run_window(own.catalogue, w.network->topology, w.network->packets, w.window, {}, record);
}

// Four nodes of two NICs at one RoCE switch; what they send is the caller's.
inline const std::string one_switch = R"(
[run]
duration = "1 h"
[cluster]
nodes = 4
nics_per_node = 2
[fabric.compute]
kind = "roce"
topology = "single_switch"
[job]
step.time = "1 s"
checkpoint.mode = "none"
)";

// The first window of a scenario that is given as text and settings.
inline WindowResult run_first_window(const std::string& text,
                                     const std::vector<std::string>& settings) {
    ScenarioChanges changes;
    changes.packets = true;
    changes.settings = settings;
    const Scenario s = load_scenario(text, "window.toml", changes);
    return run_to_its_end(s, packet_windows(s)[0]);
}

}  // namespace railyard
