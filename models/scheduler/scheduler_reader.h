#pragma once
// Reads who shares a cluster and by which rules: [scheduler], [[node_group]], [[partition]], [[reservation]].

#include <cstdint>
#include <vector>

#include "models/fabric/fabric.h"
#include "models/hardware/hardware.h"
#include "models/scheduler/world.h"
#include "sim/config.h"

namespace railyard {

// Where the jobs run.
struct WorldSite {
    std::int64_t nodes = 0;
    const Node& node;         // each of them, where there are no groups
    const Topology& network;  // of the compute network; empty: it was not built
};

// `nodes`: what each group's are.
void read_scheduler(Section& top, Catalogue& catalogue, const WorldSite& site, WorldSpec& spec,
                    std::vector<Node>& nodes);

}  // namespace railyard
