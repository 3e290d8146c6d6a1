#include "models/campaign/replica_tally.h"

#include <algorithm>

#include "models/campaign/cost_metrics.h"
#include "sim/check.h"

namespace railyard {

const MetricSummary& ReplicaSums::metric(std::string_view name) const {
    const MetricSummary* found = find_named(metrics, name);
    RY_CHECK(found != nullptr);
    return *found;
}

ReplicaTally::ReplicaTally(const Scenario& scenario) : scenario_(scenario) {
    sums_.shares.resize(category_count);
    sums_.interruptions.assign(scenario.causes.size(), 0);
}

void ReplicaTally::add(const ReplicaFigures& r) {
    const auto before = static_cast<std::size_t>(sums_.replicas);
    try {
        for (std::size_t c = 0; c < category_count; ++c) sums_.shares[c].push_back(r.ledger[c]);
        if (scenario_.cost) sums_.uses.push_back(campaign_use(scenario_, r.metrics, r.simulated));
        sums_.values.add(r.metrics);
    } catch (...) {
        for (std::vector<double>& share : sums_.shares)
            share.resize(std::min(before, share.size()));
        sums_.uses.resize(std::min(before, sums_.uses.size()));
        throw;
    }
    ++sums_.replicas;
    digest_.add(r.outcome);
    trajectory_.add(r.trajectory);
    if (r.ending == Ending::stuck || sums_.worst == Ending::complete) sums_.worst = r.ending;
    const double gpu_s = scenario_.gpu_seconds(r.simulated);
    for (std::size_t c = 0; c < category_count; ++c) {
        ledger_[c].add(r.ledger[c]);
        gpu_s_[c].add(r.ledger[c] * gpu_s);
    }
    for (std::size_t c = 0; c < sums_.interruptions.size(); ++c) {
        sums_.interruptions[c] += real(r.interruptions[c]);
    }
}

ReplicaSums ReplicaTally::take() {
    if (sums_.replicas == 0) return std::move(sums_);
    sums_.metrics = sums_.values.summaries(scenario_.draws.size());
    for (std::size_t c = 0; c < category_count; ++c) {
        sums_.ledger.push_back(ledger_[c].mean());
        sums_.gpu_s.push_back(gpu_s_[c].mean());
    }
    for (double& count : sums_.interruptions) count /= real(sums_.replicas);
    sums_.digest = digest_.hex();
    sums_.trajectory = trajectory_.hex();
    return std::move(sums_);
}

}  // namespace railyard
