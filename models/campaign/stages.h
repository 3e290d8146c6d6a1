#pragma once
// [[job.stage]] and [[job.pause]] of a scenario: plans that follow each other, and pauses between steps.

#include "models/campaign/scenario.h"

namespace railyard {

// Reads the stages into `s.job.stages` and `s.stages`; their steps are modelled later. `job_table` is the
// document's [job]; `before` the scenario as it was when [job.parallel] was about to be read, for each stage
// reads that section again, with what the stage says itself in place of the job's.
void read_stages(Section& job, const Value* job_table, ValueReader& values, Catalogue& catalogue,
                 const ScenarioChanges& changes, const Scenario& before, Scenario& s);
void read_pauses(Section& job, Scenario& s);
// What a planned stop needs of the sections that are read by now.
void check_planned_stops(Section& job, const Scenario& s);

// The steps of all stages, on each draw of the network's luck and under each condition of slow parts.
void model_stages(Scenario& s, const LossCauses& without);

}  // namespace railyard
