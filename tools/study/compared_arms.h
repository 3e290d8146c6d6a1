#pragma once
// Designs to be compared: each a scenario, its replicas, and pairs of them metric by metric.

#include "models/campaign/campaign.h"
#include "sim/comparison.h"
#include "tools/results/point_key.h"

namespace railyard {

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
// Whether nothing but prices and how they are paid is another in some of them, and all are priced.
bool differ_in_money_alone(const std::vector<ComparedArm>& arms);

// Metrics that both have, in a's order, over as many replicas. `verdict_on` is compared at `confidence`, the
// others at 95 %; money at the same prices, draw by draw.
std::vector<MetricComparison> compare_arms(const std::vector<ComparedArm>& arms, std::size_t a,
                                           std::size_t b, const std::string& verdict_on,
                                           Better better, double confidence);
// The share of a ledger category.
PairedComparison compare_category(const ComparedArm& a, const ComparedArm& b, Category category);

}  // namespace railyard
