#pragma once
// Failures at known times: [[inject]].

#include "models/campaign/scenario.h"

namespace railyard {

// After [failures], whose causes they name.
void read_injections(Section& top, Catalogue& catalogue, Scenario& scenario);

}  // namespace railyard
