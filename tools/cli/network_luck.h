#pragma once
// What commands say of the luck in a network.

#include <nlohmann/json.hpp>
#include <string>

#include "models/campaign/campaign.h"

namespace railyard {

// In a sentence: over how many draws the step is spread, or that it is one draw; empty where there is no
// luck.
std::string draws_text(const Scenario& scenario);

// The range of one job's step over the draws, in seconds.
DrawRange range_of_steps(const Scenario& scenario);

// {"draws", "median", "low", "high"}.
nlohmann::ordered_json range_json(const DrawRange& range);

// That of the steps; of many jobs the number of draws alone.
nlohmann::ordered_json draws_json(const Scenario& scenario);

}  // namespace railyard
