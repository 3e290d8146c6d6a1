#include "models/campaign/bill_of_materials.h"

namespace railyard {

BillOfMaterials bill_of_materials(const Scenario& s, Catalogue& catalogue) {
    BillOfMaterials bill;
    bill.node = s.node.name;
    bill.nic = s.node.nic;
    bill.nodes = s.nodes.nodes;
    bill.gpus_per_node = s.node.gpus;
    bill.nics_per_node = s.node.nics;
    for (const ClusterNetwork& network : s.networks) {
        if (network.topology.vertex_count() == 0) continue;
        bill.networks.push_back({&network, materials_of(network.topology, catalogue)});
    }
    return bill;
}

}  // namespace railyard
