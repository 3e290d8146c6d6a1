#pragma once
// What `railyard run` prints, each part by the source of its name: run_power, run_storage and so on.

#include <string>
#include <vector>

#include "models/campaign/campaign.h"
#include "tools/program/output_file.h"
#include "tools/study/prediction.h"
#include "tools/study/verdict_estimates.h"

namespace railyard {

// ---- all of it, but for what is tried beside the run ----

void print_result(const Scenario& scenario, const CampaignResult& result);

// ---- what is tried beside it: how far the answer may be off, and on which estimates it hangs ----

Prediction run_prediction(const Scenario& s, const CampaignResult& r, const TrialOptions& like,
                          ScenarioChanges changes);

// "Hourly" has two meanings; what the other one would give, on the same random numbers.
void print_other_clock(const Scenario& s, const CampaignResult& r, const std::string& text,
                       ScenarioChanges changes, unsigned threads);

// The first of those that move goodput, of `read_count` that were read.
void print_estimates(const std::vector<EstimateEffect>& effects, std::size_t read_count);

// ---- power ----

// What an entry of CampaignResult::energy is called: a ledger category, or "network" or "storage".
std::string energy_name(std::size_t index);

// One line; with [power] or [facility] what it is made of too.
void print_power(const Scenario& scenario, const CampaignResult& result);

// ---- data, stores, checkpoints and the walls that they hit, neighbours ----

void print_data(const Scenario& scenario);
// After the run; nothing when the job neither saves nor reads.
void print_storage(const Scenario& scenario, const CampaignResult& result);

// ---- a job's stages and pauses ----

// By stage: nodes, split, batch, the step of its first and last level, memory. Nothing without stages.
void print_stage_plans(const Scenario& scenario);

// By stage: days on the wall clock, steps, tokens, step time and MFU; and the pauses.
void print_stages(const Scenario& scenario, const CampaignResult& result);

// ---- many jobs: their cluster, who waited, who was interrupted; and how often anything fails ----

// For many jobs or one: "3 causes, one every 1.85 h".
std::string failures_text(const Scenario& scenario);
void print_world_design(const Scenario& scenario);
void print_world(const Scenario& scenario, const CampaignResult& result);

// A file with a line for each job, which are written as they come.
class JobsFile {
  public:
    JobsFile(const std::string& path, const std::vector<std::string>& inputs);
    void add(const JobRecord& job);
    void keep();

  private:
    OutputFile file_;
    std::string lines_;  // not written yet
};

}  // namespace railyard
