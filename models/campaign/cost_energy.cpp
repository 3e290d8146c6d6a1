#include "models/campaign/cost_energy.h"

namespace railyard {

double ClusterPower::idle_kwh_per_year() const {
    return (static_cast<double>(nodes) * node_idle + network) * pue * hours_per_year * 1e-3;
}

ClusterPower read_cluster_power(const Node& node, const BillOfMaterials& bill,
                                Catalogue& catalogue) {
    const NodePower plug = read_node_power(catalogue,
                                           {.node = bill.node,
                                            .gpu = node.gpu.id,
                                            .nic = bill.nic,
                                            .gpus = bill.gpus_per_node,
                                            .nics = bill.nics_per_node,
                                            .storage_nics = node.storage_nics},
                                           0);
    ClusterPower power;
    power.nodes = bill.nodes;
    power.node_idle = plug.at(Activity::idle).value;
    for (const NetworkBill& network : bill.networks) {
        for (const SwitchOrder& order : network.materials.switches) {
            if (!catalogue.has("switch", order.model, "typical_power")) continue;
            power.network += static_cast<double>(order.count) *
                             catalogue.power("switch", order.model, "typical_power").value;
        }
    }
    power.pue = catalogue.number("power", "seed_claims", "pue");
    return power;
}

}  // namespace railyard
