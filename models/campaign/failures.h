#pragma once
// What breaks in a campaign, as a scenario asks for it: [failures] with its causes, storms and lemons.

#include <string>
#include <vector>

#include "models/campaign/scenario.h"

namespace railyard {

// Reads [failures] into the scenario, whose cluster, networks, job and window must be there: storms are run.
void read_failures(Section& top, Catalogue& catalogue, Scenario& scenario);

// [[inject]], failures at known times: after [failures], whose causes they name.
void read_injections(Section& top, Catalogue& catalogue, Scenario& scenario);

}  // namespace railyard
