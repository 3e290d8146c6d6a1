#pragma once
// Pause storms of a campaign: [[failures.storm]]. What one does to the job is seen in a packet window, once;
// the campaign then books that for every storm that strikes.

#include <string>
#include <vector>

#include "models/campaign/scenario.h"

namespace railyard {

// What a storm does: the window's traffic on the compute network, with the NIC at the end of `links` pausing
// in the middle of what waits for it, against the same without. Sets the storm of `spec.cause`, and how long
// a fatal one goes unnoticed. What stands still until the collectives' own watchdog (PyTorch's) would end
// the job ends it then. A storm whose window runs out of events first is noted in the scenario's limits.
// Returns why the window tells nothing, with a hint; both empty: it does. Where windows are not run, only
// what can be said without one. Throws NoPath.
struct StormProblem {
    std::string text;
    std::string hint;
    bool warning = false;  // the storm then holds up nothing; else it can't be felt
};
StormProblem feel_storm(const Scenario& scenario, Catalogue& catalogue,
                        const std::vector<LinkId>& links, StormSpec& spec);

}  // namespace railyard
