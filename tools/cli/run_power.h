#pragma once
// The power that `railyard run` prints.

#include <string>

#include "models/campaign/campaign.h"

namespace railyard {

// What an entry of CampaignResult::energy is called: a ledger category, or "network" or "storage".
std::string energy_name(std::size_t index);

// One line; with [power] or [facility] what it is made of too.
void print_power(const Scenario& scenario, const CampaignResult& result);

}  // namespace railyard
