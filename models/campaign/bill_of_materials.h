#pragma once
// What a scenario's cluster is made of: what `railyard topo` prints and what [cost] pays for.

#include <string>
#include <vector>

#include "models/campaign/scenario.h"

namespace railyard {

struct NetworkBill {
    const ClusterNetwork* network;  // the scenario's
    Materials materials;
};

struct BillOfMaterials {
    std::string node;  // catalogue entries
    std::string nic;
    std::int64_t nodes = 0;
    std::int64_t gpus_per_node = 0;
    std::int64_t nics_per_node = 0;     // of the compute network
    std::vector<NetworkBill> networks;  // those that were built, compute first
};

// The scenario must outlive the bill.
BillOfMaterials bill_of_materials(const Scenario& scenario, Catalogue& catalogue);

}  // namespace railyard
