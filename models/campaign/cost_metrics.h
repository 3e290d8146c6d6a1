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
};
// Null: the metric is no money of [cost].
const CostMetric* cost_metric(std::string_view name);

// What checkpoints in [object_store] cost by use.
void add_object_store_costs(const Scenario& s, const PlaceUse& use, MetricList& out);

// What a finished campaign used and gave, of its metrics: of a replica that has just run, or that was
// read back.
CampaignUse campaign_use(const Scenario& scenario, std::span<const Metric> metrics,
                         Duration simulated);

// In place of the intervals of the replicas' means, which have typical prices: the middle 95 % of what
// prices and failures make of them.
void carry_prices(const CostStudy& study, std::vector<MetricSummary>& metrics);

// A design's cost, and a figure of it at typical prices in each replica. These share so many draws of the
// network's luck.
struct CostedReplicas {
    const CostStudy& study;
    std::vector<double> values;
    std::size_t draws = 0;
};
// How far the difference of the means is open because so few draws of a network were looked at: half of the
// interval over draws. 0 where replicas share none.
double open_by_network(const CostedReplicas& a, const CostedReplicas& b, double confidence);

// Two designs at the same prices, draw by draw: the middle `confidence` of the difference decides, wider by
// what the network leaves open. Student's interval of a mean would say how well the mean over prices is
// known, not what anybody will pay.
PairedComparison compare_money(const CostedReplicas& a, const CostedReplicas& b,
                               const CostMetric& metric, double confidence);

}  // namespace railyard
