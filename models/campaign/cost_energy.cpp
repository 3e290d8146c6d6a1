#include "models/campaign/cost_energy.h"

namespace railyard {

namespace {

double node_watts(const ClusterPower& power, Category category) {
    switch (category) {
        case Category::productive:
        case Category::lost_work:
            return power.node_compute;
        case Category::exposed_communication:
        case Category::pipeline_bubble:
        case Category::straggler_wait:
        case Category::degraded:
        case Category::storm_stall:
        case Category::detection:
            return power.node_communication;
        case Category::repair:
            return 0;
        default:
            return power.node_idle;
    }
}

}  // namespace

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
    power.node_compute = plug.at(Activity::compute).value;
    power.node_communication = plug.at(Activity::communication).value;
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

double energy_kwh(const ClusterPower& power, std::int64_t gpus_per_node,
                  const ReplicaResult& result) {
    double joules = seconds(result.simulated) * power.network;
    for (std::size_t i = 0; i < category_count; ++i) {
        const auto category = static_cast<Category>(i);
        const double node_seconds = static_cast<double>(result.ledger.booked(category)) * 1e-9 /
                                    static_cast<double>(gpus_per_node);
        joules += node_seconds * node_watts(power, category);
    }
    return joules * power.pue / joules_per_kilowatt_hour;
}

}  // namespace railyard
