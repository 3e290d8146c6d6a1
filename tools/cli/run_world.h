#pragma once
// What a run says of many jobs: their cluster, who waited, who was interrupted; and how often anything fails.

#include <string>
#include <vector>

#include "models/campaign/campaign.h"
#include "tools/program/output_file.h"

namespace railyard {

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
