#pragma once
// Other jobs that a scenario puts on the job's stores: [[neighbour]].

#include <optional>
#include <vector>

#include "models/storage/neighbour.h"
#include "models/storage/store_reader.h"

namespace railyard {

// Reads all of them. The job beside them has so many nodes; jobs share the store by their nodes or, when
// `fair_by_job`, evenly.
std::vector<NeighbourSpec> read_neighbours(Section& top, const StoreSetup& store,
                                           std::int64_t job_nodes, bool fair_by_job);

// [storage], [object_store], [[neighbour]].
struct StoresSpec {
    Bandwidth server_write_bandwidth;   // of one storage server
    std::vector<StoreSetup> stores;     // [storage], then [object_store] if it is there
    bool fair_by_job = false;           // of stores: jobs have equal shares, whatever their size
    std::optional<Bandwidth> gpu_path;  // of a node's GPU memory to the storage NICs
    std::vector<NeighbourSpec> neighbours;
};

}  // namespace railyard
