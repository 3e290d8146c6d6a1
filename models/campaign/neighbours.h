#pragma once
// Other jobs that a scenario puts on the job's stores: [[neighbour]].

#include <vector>

#include "models/campaign/scenario.h"

namespace railyard {

// Reads all of them into the scenario; its stores and job must be known.
void read_neighbours(Section& top, Scenario& scenario);

}  // namespace railyard
