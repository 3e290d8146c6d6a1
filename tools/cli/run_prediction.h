#pragma once
// What `railyard run` tries beside the run: how far its answer may be off, and on which estimates it hangs.

#include <string>
#include <vector>

#include "models/campaign/campaign.h"
#include "tools/study/prediction.h"
#include "tools/study/trials.h"
#include "tools/study/verdict_estimates.h"

namespace railyard {

Prediction run_prediction(const Scenario& s, const CampaignResult& r, const TrialOptions& like,
                          ScenarioChanges changes);

// "Hourly" has two meanings; what the other one would give, on the same random numbers.
void print_other_clock(const Scenario& s, const CampaignResult& r, const std::string& text,
                       ScenarioChanges changes, unsigned threads);

// The first of those that move goodput, of `read_count` that were read.
void print_estimates(const std::vector<EstimateEffect>& effects, std::size_t read_count);

}  // namespace railyard
