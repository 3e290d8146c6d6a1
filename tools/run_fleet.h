#pragma once
// What a run says of a fleet: its design, who waited, who was interrupted.

#include "models/campaign/campaign.h"

namespace railyard {

void print_fleet_design(const Scenario& scenario);
void print_fleet(const Scenario& scenario, const CampaignResult& result);

}  // namespace railyard
