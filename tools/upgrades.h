#pragma once
// What each change that money can buy would return: candidates from the catalogue, each run on the same
// random numbers as the scenario.

#include <optional>
#include <string>
#include <vector>

#include "tools/trials.h"

namespace railyard {

struct Upgrade {
    std::string name;                   // "storage.servers 8 instead of 4"
    std::vector<std::string> settings;  // as --set takes them
};

// Next to what the scenario has: nodes with another GPU, a faster NIC, less oversubscription, the other kind
// of network, more or fewer spares, a larger store or another system, another checkpoint interval or mode.
// Some may turn out to be impossible.
std::vector<Upgrade> upgrade_candidates(const Scenario& scenario);

struct UpgradeEffect {
    Upgrade upgrade;
    Summary speed;    // relative gain of kept steps per time
    Summary goodput;  // difference
    // USD a year more, where the scenario has prices: a metric of [cost].
    std::optional<double> cost;
    std::optional<double> return_on_cost;  // relative change of steps per USD
};

struct UpgradeTable {
    std::vector<UpgradeEffect>
        effects;  // best first: by return where there are prices, else by speed
    std::vector<std::string> impossible;  // names
    std::optional<double> cost;           // of the scenario, USD a year
    bool interrupted = false;
};

// `scenario` is what `changes` make of the text.
UpgradeTable try_upgrades(const TrialOptions& options, const ScenarioChanges& changes,
                          const Scenario& scenario);

}  // namespace railyard
