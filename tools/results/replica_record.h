#pragma once
// What the database keeps of a replica.

#include <array>
#include <span>

#include "models/campaign/campaign.h"

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

ReplicaFigures figures_of(const StoredReplica& record);  // which it must outlive

// With prices in the intervals of money, of a scenario with [cost].
ReplicaSums with_prices(ReplicaSums sums, const Scenario& scenario);

}  // namespace railyard
