#pragma once
// What a run says of storage: data, stores, checkpoints and the walls that they hit, neighbours.

#include "models/campaign/campaign.h"

namespace railyard {

void print_data(const Scenario& scenario);
// After the run; nothing when the job neither saves nor reads.
void print_storage(const Scenario& scenario, const CampaignResult& result);

}  // namespace railyard
