#pragma once
// The arms of a study: designs of one scenario under several settings or of several scenarios, how a command
// line names them, and the comparison of their replicas in pairs, metric by metric.

#include <string>
#include <vector>

#include "models/campaign/campaign.h"
#include "sim/comparison.h"
#include "tools/results/saved_run.h"
#include "tools/study/deciding_metric.h"

namespace railyard {

struct Arm {
    std::string name;
    std::vector<std::string> settings;  // as --set takes them
};

// `varied`: "KEY=V1,V2", split at commas outside of quotes and brackets; every combination of all of them.
// `named`: "NAME: KEY=V; KEY=V", each of them with every combination. Neither: no arms.
// Throws ScenarioError.
std::vector<Arm> arms_of(const std::vector<std::string>& varied,
                         const std::vector<std::string>& named);

struct ComparedArm {
    std::string name;  // A, B, C ... or what --arm calls it
    std::string file;
    std::string toml;
    std::vector<std::string> settings;
    Document document{};  // after the settings
    Scenario scenario{};
    ReplicaSums sums{};               // of its replicas, with prices
    std::optional<CostStudy> cost{};  // with [cost]
    std::vector<LimitReached> limits{};
    std::optional<CampaignResult::Stuck> stuck{};
};

// Reads and checks the scenario. Throws ScenarioError.
ComparedArm load_arm(std::string name, std::string file, std::vector<std::string> settings,
                     const std::shared_ptr<WindowCache>& windows);

// Throws ScenarioError when replicas of these have nothing in common that could be paired: other seeds, other
// campaign lengths, jobs that train other amounts until they are done.
void check_pairs(const std::vector<ComparedArm>& arms);
// By what they are judged where nobody says: as their designs are, or by cost when nothing else differs.
DecidingMetric deciding_metric(const std::vector<ComparedArm>& arms);
// Throws ScenarioError for a metric that not all of them have, before all replicas are run.
void find_common_metric(const std::vector<ComparedArm>& arms, const std::string& wanted);

// All arms have as many replicas as the one with the fewest.
void share_replicas(std::vector<ComparedArm>& arms);
// Runs the arms as `like` says, one after the other, each into its point of `saved`. False: Ctrl-C.
bool run_arms(std::vector<ComparedArm>& arms, const CampaignOptions& like, SavedRun& saved);

// Metrics that both have, in a's order, over as many replicas. `verdict_on` is compared at `confidence`, the
// others at 95 %; money at the same prices, draw by draw.
std::vector<MetricComparison> compare_arms(const std::vector<ComparedArm>& arms, std::size_t a,
                                           std::size_t b, const std::string& verdict_on,
                                           Better better, double confidence);
// All pairs of arms, pair by pair.
std::vector<MetricComparison> compare_all(const std::vector<ComparedArm>& arms,
                                          const DecidingMetric& by, double confidence);
// The share of a ledger category.
PairedComparison compare_category(const ComparedArm& a, const ComparedArm& b, Category category);

}  // namespace railyard
