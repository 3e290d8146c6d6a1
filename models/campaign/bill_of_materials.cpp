#include "models/campaign/bill_of_materials.h"

#include "models/campaign/power.h"
#include "models/campaign/power_reader.h"
#include "models/campaign/world.h"

namespace railyard {

BillOfMaterials bill_of_materials(const Scenario& s, Catalogue& catalogue) {
    BillOfMaterials bill;
    if (s.world) {
        for (std::size_t g = 0; g < s.world->nodes.size(); ++g) {
            bill.nodes.push_back({&s.world->nodes[g], s.world->spec.groups[g].nodes});
        }
    } else {
        bill.nodes.push_back({&s.node, s.nodes.nodes});
    }
    for (const NodeOrder& order : bill.nodes) {
        const Node& node = *order.node;
        if (!node.nvlink || !catalogue.has("node", node.name, "switch_trays")) continue;
        SwitchOrder trays{.tier = "NVLink", .model = "nvlink_switch_tray_nvl72"};
        trays.count = order.count * catalogue.integer("node", node.name, "switch_trays");
        trays.ports = trays.count * catalogue.integer("switch", trays.model, "ports");
        const std::string gpu = catalogue.text("node", node.name, "gpu");
        trays.ports_used = order.count * node.gpus * catalogue.integer("gpu", gpu, "nvlink_links");
        bill.nvlink.push_back(std::move(trays));
    }
    for (const ClusterNetwork& network : s.networks) {
        if (network.topology.vertex_count() == 0) continue;
        bill.networks.push_back({&network, materials_of(network.topology, catalogue)});
    }
    return bill;
}

double rated_node_watts(const BillOfMaterials& bill, Catalogue& catalogue) {
    double watts = 0;
    for (const NodeOrder& order : bill.nodes) {
        const NodePower plug = read_node_power(catalogue, node_power_spec(*order.node), 0);
        watts += real(order.count) * plug.rated.value;
    }
    return watts;
}

double rated_watts(const BillOfMaterials& bill, Catalogue& catalogue) {
    double watts = rated_node_watts(bill, catalogue);
    for (const NetworkBill& network : bill.networks) {
        for (const SwitchOrder& order : network.materials.switches) {
            watts += real(order.count) * switch_power(order.model, catalogue).most.value;
        }
    }
    return watts;
}

}  // namespace railyard
