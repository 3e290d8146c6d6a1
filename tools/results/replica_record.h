#pragma once
// What the database keeps of a replica, and what it makes of a point's replicas: the same numbers whether
// the replicas have just run or were read back.

#include <array>
#include <span>

#include "models/campaign/campaign.h"
#include "sim/fingerprint.h"

namespace railyard {

struct ReplicaHead {
    std::int64_t index = 0;
    Ending ending = Ending::complete;
    std::int64_t simulated_ns = 0;
    std::int64_t events = 0;
    std::uint64_t outcome = 0;
    std::uint64_t trajectory = 0;
};

struct StoredReplica : ReplicaHead {
    std::vector<Metric> metrics;
    std::array<double, category_count> ledger{};  // fractions
    std::vector<std::int64_t> interruptions;      // by cause
};

StoredReplica record_of(ReplicaResult result);

const char* ending_name(Ending ending);  // "complete", "stuck", "limit"
Ending ending_of(std::string_view name);

// The three lists as JSON: metrics as number, null or [sum, count]. They read back to the same bits.
struct RecordTexts {
    std::string metrics;
    std::string ledger;
    std::string interruptions;
};
RecordTexts texts_of(const StoredReplica& record);
// `metrics` has the names and units, one for each entry.
void read_texts(const RecordTexts& texts, std::span<const Metric> metrics, StoredReplica& out);

struct PointSummary {
    std::int64_t replicas = 0;
    Ending ending = Ending::complete;  // the worst of all
    std::vector<MetricSummary> metrics;
    std::vector<double> ledger;         // mean fraction by category
    std::vector<double> gpu_s;          // mean by category
    std::vector<double> interruptions;  // mean count by cause
    std::string digest;
    std::string trajectory;

    const MetricSummary& metric(std::string_view name) const;
};

// Adds a point's replicas up, in order of index, and keeps no more of them than their metrics. Intervals of
// money have what prices leave open in them, others are of the replicas' means.
class PointTally {
  public:
    PointTally(const Scenario& scenario, std::int64_t replicas_wanted)
        : scenario_(scenario), wanted_(static_cast<double>(replicas_wanted)) {}
    void add(const StoredReplica& replica);
    std::int64_t replicas() const { return replicas_; }
    PointSummary summary() const;  // of at least one

  private:
    const Scenario& scenario_;
    double wanted_;
    std::int64_t replicas_ = 0;
    Ending ending_ = Ending::complete;
    MetricTable metrics_;
    std::vector<CampaignUse> uses_;
    std::array<RunningMean, category_count> ledger_{};
    std::array<RunningMean, category_count> gpu_s_{};
    std::vector<double> interruptions_;
    Fingerprint digest_;
    Fingerprint trajectory_;
};
// At least one replica, by index.
PointSummary summarise_point(std::span<const StoredReplica> replicas, const Scenario& scenario);
// What a scenario with [cost] costs: prices and failures together.
CostStudy study_costs(std::span<const StoredReplica> replicas, const Scenario& scenario);

}  // namespace railyard
