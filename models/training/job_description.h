#pragma once
// What a training job is: its steps, what it saves, how it recovers, where its data come from.

#include <functional>
#include <optional>
#include <vector>

#include "models/failure/failure.h"
#include "models/training/checkpoint.h"
#include "models/training/data_feed.h"
#include "models/training/network_parts.h"
#include "models/training/stages.h"
#include "models/training/step.h"
#include "models/training/steps_done.h"

namespace railyard {

// What a job does when nodes are lost.
enum class RecoveryPolicy : std::uint8_t {
    spare,       // hot spares take the empty places; without one the job waits
    requeue,     // it is torn down whatever has failed, and goes through the queue
                 // again
    in_process,  // processes restart where they are; a spare takes a lost node's
                 // place
    shrink,      // as spare; without one it goes on with fewer replicas until nodes
                 // are back
};

// The job on fewer nodes.
struct SmallerJob {
    std::int64_t nodes = 0;
    std::int64_t replicas = 0;
    StepTime step;
    std::vector<Duration> slowed;  // as JobSteps::slowed
};

// How much longer a step takes while these parts of the network are broken, by size (0: whole, then as
// JobSteps::smaller) and conditions of slow parts; nothing when no way is left.
using OverNetwork = std::function<std::optional<Duration>(
    const NetworkState& broken, std::size_t size, std::uint32_t conditions)>;

// Its way to the shared store while these parts are broken.
using StoreWays = std::function<StoreWay(const NetworkState& broken)>;

struct RecoverySpec {
    RecoveryPolicy policy = RecoveryPolicy::spare;
    double misdiagnosis = 0;  // of diagnoses, how many blame another node
    SearchSpec search;
    Duration replacement{};
    Duration restart{};
    std::optional<Duration> restore;  // otherwise what reading the state back takes
    bool recompute = true;            // false: the job goes on where it was, as if every
                                      // step had been saved
};

struct MaintenanceSpec {
    Duration every{};  // zero: none
    Duration duration{};
    Duration since{};  // the campaign's start, when the first one counts from an earlier instant
};

// What a job's steps take on the places and the network that it has got.
struct JobSteps {
    StepTime step;
    std::vector<Duration> slowed;     // what a step takes longer, by slow parts' conditions (bits)
    std::vector<SmallerJob> smaller;  // the largest first; with RecoveryPolicy::shrink
    OverNetwork over_network{};       // of a job on a network whose parts break
    std::vector<StageSpec> stages;    // instead of `step`, from the first on; none: `step` is all
};

// What a job has done in an earlier campaign and not saved.
struct StepsAtRisk {
    std::vector<OpenSteps<Workers>::Done> done;  // the newest last
    Duration save_due_in{};                      // of a job that saves by the wall clock
    bool stood_still = false;                    // since then: it has none of them any more

    std::int64_t count() const;
    std::int64_t replica_steps_missing() const;
};

// What a job has behind it that goes on with another campaign.
struct JobSoFar {
    std::int64_t steps = 0;              // that nothing takes away
    std::int64_t steps_to_target = 0;    // of JobSpec::target_steps
    std::vector<std::int64_t> by_stage;  // steps of each
    StepsAtRisk at_risk;                 // after all these
    std::vector<bool> had_pause;         // by pause
    Duration pause_left{};               // of the pause, or the planned stop, under way
    bool pause_restarts = false;
};

struct JobSpec : JobSteps {
    std::int64_t nodes = 0;
    std::int64_t gpus_per_node = 0;
    std::int64_t replicas = 1;  // data-parallel, that share the batch
    std::vector<PauseSpec> pauses;
    std::int64_t target_steps = 0;  // the job ends after these; 0: it runs until the campaign ends
    CheckpointSpec checkpoint;
    RecoverySpec recovery;
    MaintenanceSpec maintenance;
    StepsAtRisk at_risk;               // it begins with these
    std::optional<DataFeedSpec> data;  // read from a store while the job runs
    // What its nodes together move: to and from all stores, and by store.
    struct StorePath {
        Bandwidth read;
        Bandwidth write;
    };
    StorePath network;
    std::vector<StorePath> store_paths;
    StoreWays store_ways{};  // where what breaks is on them

    std::int64_t gpus() const { return nodes * gpus_per_node; }
};

}  // namespace railyard
