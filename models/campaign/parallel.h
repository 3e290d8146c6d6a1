#pragma once
// The section [job.parallel] of a scenario: how the job's model is split over its GPUs.

#include "models/campaign/scenario.h"

namespace railyard {

// [job.step]: a step that was measured, if one was.
std::optional<Duration> read_given_step(Section& job);

// Reads the section into `s.plan`, for the job, node and model that `s` has by now, and reports what
// doesn't divide. With a model it also sets the memory per GPU, which is an error when it is more than
// there is and the changes say that it must fit.
void read_parallel(Section& job, ValueReader& values, Catalogue& catalogue,
                   const ScenarioChanges& changes, Scenario& s);

}  // namespace railyard
