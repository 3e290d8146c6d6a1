#pragma once
// What each change that money can buy would return: candidates from the catalogue, each run on the same
// random numbers as the scenario.

#include <optional>
#include <string>
#include <vector>

#include "tools/study/verdict_estimates.h"

namespace railyard {

struct Upgrade {
    std::string name;                   // "storage.servers 8 instead of 4"
    std::vector<std::string> settings;  // as --set takes them
    bool free = false;                  // a setting of what is there
};

// Next to what the scenario has. Free: other routing, more queue pairs, another order of ranks,
// microbatch, recomputation, checkpoint interval or mode. To be bought: nodes with another GPU, a
// faster NIC, less oversubscription, the other kind of network, more or fewer spares, a larger store or
// another system. Some may turn out to be impossible.
std::vector<Upgrade> upgrade_candidates(const Scenario& scenario);

struct UpgradeEffect {
    Upgrade upgrade;
    Summary speed;    // relative gain of kept steps per time
    Summary goodput;  // difference
    // USD a year more, where the scenario has prices, and the relative change of steps per USD; at the same
    // prices, draw by draw.
    std::optional<CostRange> cost;
    std::optional<CostRange> return_on_cost;
};

// The best of all changes, none among them, and the next: who gets more done per day, or per money
// where there are prices.
struct Contest {
    Upgrade best;  // without settings: as it is
    Upgrade second;
    MetricComparison difference;  // the second's less the best's
};

struct UpgradeTable {
    std::vector<UpgradeEffect>
        effects;  // best first: by return where there are prices, else by speed; free ones before others
    std::vector<std::string> impossible;  // names
    std::optional<double> cost;           // of the scenario, USD a year
    std::optional<Contest> contest;       // none: there is nothing to change
    bool interrupted = false;
};

// `scenario` is what `changes` make of the text.
UpgradeTable try_upgrades(const TrialOptions& options, const ScenarioChanges& changes,
                          const Scenario& scenario);

// Does the best change stay the best? `options` and `changes` as for try_upgrades.
VerdictEstimates estimates_of(const Contest& contest, const TrialOptions& options,
                              const ScenarioChanges& changes);

}  // namespace railyard
