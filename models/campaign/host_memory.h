#pragma once
// What a job keeps in the memory of each of its nodes, all together: caches and buffers of its data,
// copies of its state, and activations that leave its GPUs.

#include "models/campaign/scenario.h"

namespace railyard {

struct HostMemoryUse {
    const char* what;
    const char* section;  // of [job], that asks for it
    double bytes;  // of one node, as stored: what decoding or a process's heap adds is not known
};
std::vector<HostMemoryUse> host_memory_uses(const Scenario& scenario);

// Reports an error on `job` when they don't fit into a node's memory together. Nodes whose memory the
// catalogue does not know pass.
void check_host_memory(Section& job, Catalogue& catalogue, const Scenario& scenario);

}  // namespace railyard
