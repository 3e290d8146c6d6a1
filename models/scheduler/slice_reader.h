#pragma once
// Reads how a group of nodes is cut into slices (MIG), and the slice that a job asks for.

#include "models/scheduler/fleet_spec.h"
#include "sim/config.h"

namespace railyard {

// Reads from a [[node_group]], whose GPUs must be known.
void read_slices(Section& section, Catalogue& catalogue, NodeGroup& group);

// Profiles that the fleet's GPUs have, cut or not.
std::vector<std::string> slices_of(const FleetSpec& spec);

// That the scheduler can place them.
void check_slices(Section& top, const FleetSpec& spec);

// slice of [jobs.kind.requires]; `kind_section` is its kind's.
void read_slice_request(Section& section, Section& kind_section, const FleetSpec& spec,
                        GpuRequest& request);

}  // namespace railyard
