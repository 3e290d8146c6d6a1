#pragma once
// Reads how a group of nodes is cut into slices (MIG), and the slice that a job asks for.

#include "models/scheduler/world_spec.h"
#include "sim/config.h"

namespace railyard {

// Reads from a [[node_group]], whose GPUs must be known.
void read_slices(Section& section, Catalogue& catalogue, NodeGroup& group);

// Profiles that the cluster's GPUs have, cut or not.
std::vector<std::string> slices_of(const WorldSpec& spec);

// That the scheduler can place them.
void check_slices(Section& top, const WorldSpec& spec);

// slice of [jobs.kind.requires]; `kind_section` is its kind's.
void read_slice_request(Section& section, Section& kind_section, const WorldSpec& spec,
                        GpuRequest& request);

}  // namespace railyard
