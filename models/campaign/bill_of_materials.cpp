#include "models/campaign/bill_of_materials.h"

#include "models/campaign/fleet.h"

namespace railyard {

BillOfMaterials bill_of_materials(const Scenario& s, Catalogue& catalogue) {
    BillOfMaterials bill;
    if (s.fleet) {
        for (std::size_t g = 0; g < s.fleet->nodes.size(); ++g) {
            bill.nodes.push_back({&s.fleet->nodes[g], s.fleet->spec.groups[g].nodes});
        }
    } else {
        bill.nodes.push_back({&s.node, s.nodes.nodes});
    }
    for (const ClusterNetwork& network : s.networks) {
        if (network.topology.vertex_count() == 0) continue;
        bill.networks.push_back({&network, materials_of(network.topology, catalogue)});
    }
    return bill;
}

}  // namespace railyard
