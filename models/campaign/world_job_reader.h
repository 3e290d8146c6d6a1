#pragma once
// Reads many jobs.

#include "models/campaign/world.h"

namespace railyard {

// What many jobs are read with.
struct WorldReading {
    ValueReader& values;
    Catalogue& catalogue;
    const Scenario& scenario;  // its cluster and networks
};

// [jobs]. All else of the cluster must be known.
void read_world_jobs(Section& top, const WorldReading& reading, WorldScenario& world);

}  // namespace railyard
