#pragma once
// What a cluster draws while nobody uses it: the campaign's own energy is metered with it (power.h).

#include "models/campaign/campaign.h"

namespace railyard {

ClusterPower read_cluster_power(const BillOfMaterials& bill, Catalogue& catalogue);

}  // namespace railyard
