#pragma once
// What a scenario says of saving a job's state and of coming back: [job.checkpoint] with its tiers and
// [job.recovery].

#include <functional>

#include "models/campaign/scenario.h"

namespace railyard {

// Notes what the nodes of the job in `s`, which must be known, move together to and from its stores.
void join_stores(Scenario& s);

// What an upload that shares the compute network with the steps costs each of them; asked at most once.
using BurstPenalty = std::function<Duration()>;

// Reads the two sections into `s.job`, for the cluster, stores, model and step that `s` has by now.
// `burst_penalty` is empty where packets don't tell.
void read_checkpoint(Section& job, Catalogue& catalogue, Scenario& s,
                     const BurstPenalty& burst_penalty);
// [job.recovery], after the job, its steps and checkpoints.
void join_recovery(Section& job, Catalogue& catalogue, Scenario& s);

}  // namespace railyard
