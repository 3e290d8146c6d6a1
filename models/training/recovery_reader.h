#pragma once
// [job.recovery]: what a job does about a failure, and how long that takes.

#include "models/catalogue/catalogue.h"
#include "models/training/job.h"
#include "sim/config.h"

namespace railyard {

extern const std::vector<std::string> recovery_policy_names;  // in the order of RecoveryPolicy

// The section as it stands.
struct RecoveryKeys {
    RecoveryPolicy policy = RecoveryPolicy::spare;
    std::int64_t replicas_min = 0;  // 0: half of them
    std::optional<Duration> replacement;
    std::optional<Duration> restart;
    std::optional<Duration> restore;
    Bytes image;          // that each node reads as it starts
    Bytes dataset_index;  // and each rank
    bool recompute = true;
};
// `usual`: the policy where the section names none.
RecoveryKeys read_recovery(Section& recovery, RecoveryPolicy usual);

// What the section doesn't say of how long it takes to come back, from the catalogue.
struct RecoveryTimes {
    Duration replacement{};
    Duration restart{};
};
RecoveryTimes recovery_times(Catalogue& catalogue, const RecoveryKeys& keys, std::int64_t nodes,
                             std::int64_t gpus);

}  // namespace railyard
