#pragma once
// Other jobs that a scenario puts on the job's stores: [[neighbour]].

#include <vector>

#include "models/storage/neighbour.h"
#include "models/storage/store_reader.h"

namespace railyard {

// Reads all of them. The job beside them has so many nodes; jobs share the store by their nodes or, when
// `fair_by_job`, evenly.
std::vector<NeighbourSpec> read_neighbours(Section& top, const StoreSetup& store,
                                           std::int64_t job_nodes, bool fair_by_job);

}  // namespace railyard
