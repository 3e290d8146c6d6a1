#pragma once
// The plan of a scenario's job.

#include "models/campaign/scenario.h"

namespace railyard {

// Reads job.software and [job.parallel] for the job, node and model that `s` has by now.
void read_job_plan(Section& job, ValueReader& values, Catalogue& catalogue,
                   const ScenarioChanges& changes, Scenario& s);

}  // namespace railyard
