#pragma once
// What a run and `railyard cost` say of money.

#include <nlohmann/json_fwd.hpp>

#include "models/campaign/campaign.h"

namespace railyard {

// A figure of a year's cost, by its name in JSON.
struct CostFigure {
    std::string name;
    const char* label;
    const CostMetric* metric;
};
// Per 10^12 tokens, and per unit of work, only where these are counted.
std::vector<CostFigure> cost_figures(const Scenario& scenario);

// Says of each of these designs, by name, what has a price in another one and none in it.
void warn_of_prices_missing(const std::vector<std::pair<std::string, const Scenario*>>& designs);

// What the interval of a figure is of, as a table's title.
std::string middle_of_money(std::int64_t replicas);
// Whether what is bought keeps to the budget, where there is one.
void print_budget(const CostPlan& plan, Cents bought);
// Line by line, at typical prices: what it costs to buy, and a year like the campaign's.
void print_cost_lines(const Scenario& scenario, const CampaignResult& result,
                      const CostStudy& study);
// The figures with their intervals, what dominates them, and renting instead.
void print_cost_figures(const Scenario& scenario, const CostStudy& study);
// The same as JSON.
nlohmann::ordered_json cost_json(const Scenario& scenario, const CostStudy& study);
nlohmann::ordered_json cost_lines_json(const Scenario& scenario, const CampaignResult& result,
                                       const CostStudy& study);
nlohmann::ordered_json range_json(const CostRange& range);
// Short, after a run of a scenario with [cost].
void print_cost(const Scenario& scenario, const CampaignResult& result);

}  // namespace railyard
