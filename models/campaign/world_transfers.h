#pragma once
// Saves and restores of many jobs over [storage], which all of them share.

#include "models/campaign/scenario.h"

namespace railyard {

// Each save moves `size` bytes, written by every rank and read by all nodes at once, as a job alone does it:
// its ranks' serialisation, its nodes' clients, its files, and the store's own supply bound it.
WorldSaving saves_to_storage(const Scenario& scenario, Bytes size,
                             const CheckpointWriters& each_rank);

}  // namespace railyard
