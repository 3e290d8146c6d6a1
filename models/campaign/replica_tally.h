#pragma once
// Replicas of a scenario, added up: the same numbers whether they have just run or were read back.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/campaign/scenario.h"
#include "sim/fingerprint.h"
#include "sim/metrics.h"

namespace railyard {

// How a replica ended. `stuck` and `limit` mark a result that is not what was asked for.
enum class Ending : std::uint8_t { complete, stuck, limit };

// The figures of a replica that are added up.
struct ReplicaFigures {
    Ending ending = Ending::complete;
    Duration simulated{};
    std::uint64_t outcome = 0;  // digests, as in ReplicaResult
    std::uint64_t trajectory = 0;
    std::span<const Metric> metrics;
    std::array<double, category_count> ledger{};  // fractions
    std::span<const std::int64_t> interruptions;  // by cause
};

// What is kept of each replica: its metrics, its ledger and what prices are put on.
struct ReplicaSums {
    std::int64_t replicas = 0;
    Ending worst = Ending::complete;          // a stuck replica is worse than one at a limit
    MetricTable values;                       // of each replica
    std::vector<std::vector<double>> shares;  // of GPU time, by category, then replica
    std::vector<CampaignUse> uses;            // of each replica, with [cost]
    std::vector<MetricSummary> metrics;
    std::vector<double> ledger;         // mean fraction by category; sums to 1
    std::vector<double> gpu_s;          // mean by category
    std::vector<double> interruptions;  // mean count by cause
    std::string digest;                 // of all outcomes
    std::string trajectory;             // of all trajectories

    const MetricSummary& metric(std::string_view name) const;
};

class ReplicaTally {
  public:
    explicit ReplicaTally(const Scenario& scenario);
    // In order of index. If it throws because memory has run out, the replicas before stay as they are.
    void add(const ReplicaFigures& replica);
    std::int64_t replicas() const { return sums_.replicas; }
    const MetricTable& values() const { return sums_.values; }
    ReplicaSums take();  // leaves nothing

  private:
    const Scenario& scenario_;
    ReplicaSums sums_;
    std::array<RunningMean, category_count> ledger_{};
    std::array<RunningMean, category_count> gpu_s_{};
    Fingerprint digest_;
    Fingerprint trajectory_;
};

}  // namespace railyard
