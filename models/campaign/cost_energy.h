#pragma once
// The energy of a campaign, from its ledger and what a node draws.

#include "models/campaign/campaign.h"

namespace railyard {

ClusterPower read_cluster_power(const Node& node, const BillOfMaterials& bill,
                                Catalogue& catalogue);

// At the meter. Nodes that compute, that wait in collectives, that are idle; those in repair are off.
double energy_kwh(const ClusterPower& power, std::int64_t gpus_per_node,
                  const ReplicaResult& result);

}  // namespace railyard
