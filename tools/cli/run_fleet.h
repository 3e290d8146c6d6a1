#pragma once
// What a run says of a fleet: its design, who waited, who was interrupted; and how often anything fails.

#include "models/campaign/campaign.h"

namespace railyard {

// For a fleet or one job: "3 causes, one every 1.85 h".
std::string failures_text(const Scenario& scenario);
void print_fleet_design(const Scenario& scenario);
void print_fleet(const Scenario& scenario, const CampaignResult& result);
// A table of its jobs: one line each, with a header.
std::string jobs_csv(const std::vector<JobRecord>& jobs);

}  // namespace railyard
