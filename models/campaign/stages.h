#pragma once
// The plans of a job's stages, [[job.stage]], and the steps that they take on the scenario's cluster.

#include "models/campaign/scenario.h"

namespace railyard {

// Reads the stages into `s.job.stages` and `s.stages`; their steps are modelled later. `job_table` is the
// document's [job]; `before` the scenario as it was when [job.parallel] was about to be read, for each stage
// reads that section again, with what the stage says itself in place of the job's.
void read_stages(Section& job, const Value* job_table, ValueReader& values, Catalogue& catalogue,
                 const ScenarioChanges& changes, const Scenario& before, Scenario& s);

// The steps of all stages, on each draw of the network's luck and under each condition of slow parts.
void model_stages(Scenario& s, const LossCauses& without);

}  // namespace railyard
