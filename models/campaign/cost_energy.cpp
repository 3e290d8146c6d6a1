#include "models/campaign/cost_energy.h"

#include "models/campaign/power_reader.h"

namespace railyard {

double ClusterPower::idle_kwh_per_year() const {
    return (nodes + network) * pue * hours_per_year * 1e-3;
}

ClusterPower read_cluster_power(const BillOfMaterials& bill, Catalogue& catalogue) {
    ClusterPower power;
    for (const auto& [node, count] : bill.nodes) {
        const NodePower plug = read_node_power(catalogue, node_power_spec(*node), 0);
        power.nodes += static_cast<double>(count) * plug.at(Activity::idle).value;
    }
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
