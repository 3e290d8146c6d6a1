#pragma once
// What a run says of many jobs: their cluster, who waited, who was interrupted; and how often anything fails.

#include "models/campaign/campaign.h"

namespace railyard {

// For many jobs or one: "3 causes, one every 1.85 h".
std::string failures_text(const Scenario& scenario);
void print_world_design(const Scenario& scenario);
void print_world(const Scenario& scenario, const CampaignResult& result);
// A table of its jobs: one line each, with a header.
std::string jobs_csv(const std::vector<JobRecord>& jobs);

}  // namespace railyard
