#pragma once
// Money as metrics: what a replica's metrics say of its cost, at typical prices, and what all prices
// leave open.

#include <span>
#include <string_view>

#include "models/campaign/scenario.h"
#include "sim/comparison.h"

namespace railyard {

// A metric of a scenario with [cost], and what it is of a year's cost.
struct CostMetric {
    std::string_view name;
    double (*of)(const YearlyCost&);
    bool has_luck = true;  // it is another in each replica
};
// Null: the metric is no money of [cost].
const CostMetric* cost_metric(std::string_view name);

// What has a price in `beside` and none in `of`, which then looks cheaper than it is.
std::vector<std::string> prices_missing(const Scenario& of, const Scenario& beside);

// Whether a store of the scenario is paid by what it is used for.
bool pays_by_use(const Scenario& s);
// What checkpoints cost by use: metrics that all replicas of such a scenario have, and no others.
void add_object_store_costs(const Scenario& s, const UseByStore& uses, MetricList& out);

// What a finished campaign used and gave, of its metrics: of a replica that has just run, or that was
// read back.
CampaignUse campaign_use(const Scenario& scenario, std::span<const Metric> metrics,
                         Duration simulated);

// In place of the replicas' means and their intervals: all replicas together at typical prices (a mean of
// ratios would leave out those without any work), and the middle 95 % of what prices and failures make of it.
void carry_prices(const CostStudy& study, std::vector<MetricSummary>& metrics);

// A design's cost, and a figure of it at typical prices in each replica. These share so many draws of the
// network's luck.
struct CostedReplicas {
    const CostStudy& study;
    std::vector<double> values;
    std::size_t draws = 0;
};
// How far the difference of the means is open because so few replicas, or draws of a network that they share,
// were looked at: half of Student's interval over them. Infinite for one pair, 0 for pairs that are equal.
double open_by_luck(const CostedReplicas& a, const CostedReplicas& b, double confidence);

// Two designs at the same prices, draw by draw: the middle `confidence` of the difference decides, wider by
// what luck leaves open. Student's interval of a mean would say how well the mean over prices is
// known, not what anybody will pay.
PairedComparison compare_money(const CostedReplicas& a, const CostedReplicas& b,
                               const CostMetric& metric, double confidence);

}  // namespace railyard
