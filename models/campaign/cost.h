#pragma once
// [cost]: what the scenario's cluster costs, from its bill of materials, and what its campaigns use.

#include <optional>

#include "models/facility/facility.h"
#include "sim/config.h"

namespace railyard {

struct Scenario;
struct ReplicaResult;

// What is paid by use, in the order of CostPlan::used.
enum class UsedLine : std::uint8_t {
    energy,         // kWh at the meter
    repair_visits,  // nodes that went to repair
    gpu_parts,      // replaced in them
    nic_parts,
    other_parts,
    paid,  // USD: requests to an object store, egress
};
constexpr std::size_t used_line_count = 6;

struct CostSetup {
    CostPlan plan;
    double idle_kwh_per_year = 0;  // at the meter
    double tariff = 1;          // what a kWh costs over a day, in prices of one, for an even draw
    bool rented = false;        // nodes and networks are somebody else's, and where they stand
    bool parts_covered = true;  // by support: what is replaced costs nothing more
};

// Reads [cost]; without the section, or when something is wrong, there is no plan. Everything else of the
// scenario must have been read, its networks built. Warns of a cluster that is over its budget.
std::optional<CostSetup> read_cost(Section& top, ValueReader& values, const Scenario& scenario);

// What a finished replica used and gave. The scenario must have a plan.
CampaignUse usage_of(const Scenario& scenario, const ReplicaResult& result);

// Capital, a year's cost and the cost of what the replica gave, at typical prices.
void add_cost_metrics(const Scenario& scenario, ReplicaResult& result);

std::string money_text(double usd);  // "2.62 MUSD", "310 kUSD", "2.41 USD"

}  // namespace railyard
