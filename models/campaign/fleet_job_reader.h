#pragma once
// Reads the jobs of a fleet.

#include "models/campaign/fleet.h"

namespace railyard {

// What a fleet is read with.
struct FleetReading {
    ValueReader& values;
    Catalogue& catalogue;
    const Scenario& scenario;  // its cluster and networks
};

// [jobs]. All else of the fleet must be known.
void read_fleet_jobs(Section& top, const FleetReading& reading, FleetScenario& fleet);

}  // namespace railyard
