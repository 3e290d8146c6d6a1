#pragma once
// What commands say of the luck in a network.

#include <nlohmann/json.hpp>
#include <string>

#include "models/campaign/campaign.h"

namespace railyard {

// In a sentence: over how many draws the step is spread, or that it is one draw; empty where there is no
// luck.
std::string draws_text(const Scenario& scenario);

// "9.8 s to 10.2 s": the ends of a range in seconds.
std::string ends_text(const DrawRange& range);

// {"draws", "median", "low", "high"}.
nlohmann::ordered_json range_json(const DrawRange& range);

// That of the steps; of many jobs the number of draws alone.
nlohmann::ordered_json draws_json(const Scenario& scenario);

}  // namespace railyard
