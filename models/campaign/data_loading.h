#pragma once
// What a job reads to train on, from which of the scenario's stores: [job.data], and the same of a kind.

#include "models/campaign/counterfactual.h"
#include "models/campaign/scenario.h"

namespace railyard {

// Reads the section into `s.data`, `s.job.data` and what each step waits for data, for the job, step, node
// and stores that `s` has by now. `without`: what a counterfactual takes away.
void join_data(Section& job, Catalogue& catalogue, const LossCauses& without, Scenario& s);

}  // namespace railyard
