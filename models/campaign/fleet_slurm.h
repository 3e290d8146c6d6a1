#pragma once
// Reads what a fleet under Slurm is given beyond what every fleet is.

#include "models/campaign/fleet.h"

namespace railyard {

// Of [scheduler]: its intervals and depths, topology, backfill, priority, QOS, accounts.
void read_slurm(Section& scheduler, Catalogue& catalogue, FleetSpec& spec);

}  // namespace railyard
