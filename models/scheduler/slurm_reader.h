#pragma once
// Reads what Slurm takes beyond what every scheduler does.

#include <string>
#include <vector>

#include "models/scheduler/world_spec.h"
#include "sim/config.h"

namespace railyard {

const std::vector<std::string>& topology_aware_names();  // in the order of SlurmTopology
const std::vector<std::string>& preempt_mode_names();    // in the order of PreemptMode

// Reads from [scheduler] its intervals and depths, topology, backfill, priority, QOS, accounts.
void read_slurm(Section& scheduler, Catalogue& catalogue, WorldSpec& spec);

}  // namespace railyard
