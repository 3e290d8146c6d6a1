#pragma once
// What a scenario's cluster is made of: what `railyard topo` prints and what [cost] pays for.

#include <vector>

#include "models/campaign/scenario.h"

namespace railyard {

struct NetworkBill {
    const ClusterNetwork* network;  // the scenario's
    Materials materials;
};

// Nodes of one kind.
struct NodeOrder {
    const Node* node;  // the scenario's
    std::int64_t count = 0;
};

struct BillOfMaterials {
    std::vector<NodeOrder> nodes;
    std::vector<SwitchOrder>
        nvlink;  // trays of racks that are one NVLink domain; part of their price
    std::vector<NetworkBill> networks;  // those that were built, compute first
};

// The scenario must outlive the bill.
BillOfMaterials bill_of_materials(const Scenario& scenario, Catalogue& catalogue);

// What the data centre must be able to deliver to nodes, in W, by the ratings that the power model has.
double rated_node_watts(const BillOfMaterials& bill, Catalogue& catalogue);
// To nodes and switches.
double rated_watts(const BillOfMaterials& bill, Catalogue& catalogue);

}  // namespace railyard
