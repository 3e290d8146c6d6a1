#pragma once
// What 'railyard run' and 'plan' print of a job's stages and pauses.

#include "models/campaign/campaign.h"

namespace railyard {

// By stage: nodes, split, batch, the step of its first and last level, memory. Nothing without stages.
void print_stage_plans(const Scenario& scenario);

// By stage: days on the wall clock, steps, tokens, step time and MFU; and the pauses.
void print_stages(const Scenario& scenario, const CampaignResult& result);

}  // namespace railyard
