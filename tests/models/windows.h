#pragma once
// Packet windows of a scenario, run to their end.

#include <atomic>
#include <string>
#include <vector>

#include "models/campaign/campaign.h"

namespace railyard {

inline WindowResult run_to_its_end(const Scenario& s, const NetworkWindow& w,
                                   WindowRecord* record = nullptr) {
    StandaloneCatalogue own = s.open_catalogue();
    const std::atomic<bool> never{false};
    return run_window(own.catalogue, w.network->topology, w.network->packets, w.window, never,
                      record);
}

// The first window of a scenario that is given as text and settings.
inline WindowResult run_first_window(const char* text, const std::vector<std::string>& settings) {
    ScenarioChanges changes;
    changes.packets = true;
    changes.settings = settings;
    const Scenario s = load_scenario(text, "window.toml", changes);
    return run_to_its_end(s, packet_windows(s)[0]);
}

}  // namespace railyard
