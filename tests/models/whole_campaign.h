#pragma once
// A campaign with all of its replicas, which run_campaign() adds up and does not keep.

#include <vector>

#include "models/campaign/campaign.h"

namespace railyard {

struct WholeCampaign : CampaignResult {
    std::vector<ReplicaResult> each;  // by index
};

inline WholeCampaign run_whole(const Scenario& scenario, CampaignOptions options = {}) {
    std::vector<ReplicaResult> each;
    options.finished = [&](const ReplicaResult& r) { each.push_back(r); };
    WholeCampaign out{run_campaign(scenario, options), {}};
    out.each = std::move(each);
    return out;
}

}  // namespace railyard
