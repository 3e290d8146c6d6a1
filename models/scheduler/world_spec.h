#pragma once
// What is given of a cluster that many jobs share while it fails and is repaired.

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/scheduler/gpu_request.h"
#include "models/scheduler/kube_spec.h"
#include "models/scheduler/mig.h"
#include "models/scheduler/slurm_spec.h"
#include "models/scheduler/world_carried.h"
#include "models/storage/storage.h"
#include "models/training/training.h"

namespace railyard {

using JobIndex = std::uint32_t;   // of WorldJobs, in order of submission
using NodeIndex = std::uint32_t;  // of the cluster
constexpr JobIndex no_world_job = std::numeric_limits<JobIndex>::max();

// Nodes of one kind, numbered one after another.
struct NodeGroup {
    std::string name;
    std::int64_t nodes = 0;
    std::int64_t gpus_per_node = 0;  // at most 255
    GpuAttributes gpu{};
    std::optional<MigSpec> mig{};  // cut into slices, which gpu.slices names

    void list_slices();  // fills gpu.slices
};

// Where nodes stand in the network: nodes of one leaf, and leaves of one block, are close.
struct NodePlace {
    std::uint32_t leaf = 0;
    std::uint32_t block = 0;
};

// What a scheduler takes for a job's time before it has ended.
enum class RuntimeEstimate : std::uint8_t {
    limit,  // its time limit; without one a year, as Slurm's backfill plans it
    work,   // how long it will run, without saves and failures
};

// Nodes behind one queue. Partitions may share nodes.
struct PartitionSpec {
    std::string name;
    NodeIndex first_node = 0;
    std::int64_t nodes = 0;
    Duration limit_max{};            // of a job's time; 0: none
    Duration limit_default{};        // of a job that names none; 0: limit_max
    std::int64_t gpus_max = 0;       // of one job; 0: none
    std::int64_t submitted_max = 0;  // jobs that it holds, running and waiting; 0: any number
    std::int64_t priority = 0;       // for kinds that look at it
    std::int64_t tier = 0;  // higher tiers are looked at first, whatever their jobs' priority
};

// What a step takes on these nodes, in order of rank, under these conditions of slow parts (bits), on the
// network as it is. Throws NoPath.
using PlacedStep = std::function<StepTime(const std::vector<NodeIndex>& nodes,
                                          std::uint32_t conditions, const NetworkNow& network)>;
// What such a step sends between switches; null on an ideal network.
using PlacedTraffic = std::function<std::shared_ptr<const StepTraffic>(
    const std::vector<NodeIndex>& nodes, const NetworkNow& network)>;
// The broken parts that such a step's routes meet, detours round broken cables included.
using PlacedRoutes =
    std::function<NetworkState(const std::vector<NodeIndex>& nodes, const NetworkNow& network)>;

// What a transfer to or from a store sends over the same network, all the time; null where it is on another.
using PlacedTransfer = std::function<std::shared_ptr<const StepTraffic>(
    const std::vector<NodeIndex>& nodes, const NetworkNow& network, const TransferSpec& transfer)>;

// Its way to the shared store.
using PlacedWay =
    std::function<StoreWay(const std::vector<NodeIndex>& nodes, const NetworkNow& network)>;

// How jobs of a kind save to stores that all jobs share, and to tiers before them.
struct WorldSaving {
    // How a job of so many GPUs on so many nodes saves.
    std::function<std::shared_ptr<const CheckpointSpec>(std::int64_t gpus, std::int64_t nodes)>
        checkpoint;
    // What a job's nodes move together: to and from all stores, and by store.
    JobSpec::StorePath network{unlimited, unlimited};
    std::vector<JobSpec::StorePath> store_paths{};
};
struct WorldStore {
    std::string name;
    StoreSupply supply;
};

// A job on fewer of its nodes, each replica of its data on whole ones.
struct SmallerWorldJob {
    std::int64_t nodes = 0;
    std::int32_t replicas = 0;
    PlacedStep step{};
    PlacedTraffic traffic{};
    PlacedRoutes routes{};
};

// What jobs of a kind have in common.
struct WorldJobKind {
    std::string name;
    Duration checkpoint_interval{};  // of work; 0: nothing is saved, an end loses all
    std::int64_t checkpoint_steps =
        0;  // from one to the next, whatever a step takes; 0: by the interval
    Duration checkpoint_training{};  // training time that these steps are; 0: they are given
    Duration checkpoint_stall{};
    bool by_wall_clock = false;           // the interval is one from start to start
    std::optional<WorldSaving> saving{};  // without it a stall and a restore take always the same
    // What its steps read from a store, or through shuffle buffers. It then has `saving` too, if only to save
    // nothing.
    std::shared_ptr<const DataFeedSpec> data{};
    Duration restart{};  // each start: launch, imports, communicators
    Duration restore{};  // each start with a saved state: reading it back
    Rate
        own_failure_rate_per_gpu{};  // while it runs: its own code, data, mounts; no node is to blame
    bool requeue = true;             // when it fails, or its nodes do; else that is its end
    bool resubmit = false;           // when its time limit ends it before it is done
    std::int64_t restarts_max = 1'000'000;  // then it is given up
    // What a step takes on these nodes, in order of rank, under these conditions of slow parts; without it
    // work goes on at the clock's pace.
    PlacedStep step{};
    PlacedTraffic traffic{};
    PlacedRoutes routes{};
    PlacedTransfer transfer_traffic{};
    PlacedWay store_way{};  // where the store is on the network of the steps
    // Uploads behind the steps are on the links too; else they slow their own job's steps alone.
    bool uploads_on_links = false;
    // The largest first; empty: it needs all of its nodes. Else it waits so long for others after a failure.
    std::vector<SmallerWorldJob> smaller{};
    Duration shrink_after = std::chrono::seconds(30);
    std::int32_t replicas = 1;  // of its data, on all of its nodes
    std::int64_t steps = 0;     // with `step`: its length
    Duration steps_take{};      // and what that takes on the cluster's first nodes, where asked for
    Duration given_step{};      // without it: what one was measured to take; 0: work has none
    double throttled = 0;       // likewise: what work takes longer because its GPUs are hot
    // Each step's wait for data, of jobs that read some, with the store to one of them alone and nothing
    // slow; and what the rest of that step takes.
    Duration data_wait{};
    Duration beside_data{};
    // Likewise: the share of its time in which it computes; else it waits for requests, say.
    double duty = 1;
    KubeJobKind kube{};
    std::uint32_t request = 0;  // of WorldSpec::requests

    bool has_parts() const { return saving.has_value(); }
    // What a step waits for data whose rest takes so long, with the store to its job alone.
    Duration late(Duration rest) const { return batch_late(data_wait, rest - beside_data); }
};

// GPUs come in pods, each on one node: gpus_per_pod of them, the last pod what is left over.
struct WorldJob {
    std::int64_t id = 0;          // its place in order of submission, from 1
    std::uint32_t trace_row = 0;  // of WorldSpec::trace_ids, from 1; 0: no trace has it
    std::uint32_t kind = 0;
    std::uint32_t account = 0;
    std::uint32_t partition = 0;
    std::uint32_t qos = 0;
    std::uint32_t queue = 0;        // of kube.queues
    std::int32_t switches_max = 0;  // leaves that it wants to be on at most; 0: any number
    bool timed = false;             // caps and heat make it no longer, and what is done in it less
    std::optional<std::int64_t> priority{};  // of its pods, by a trace; none: its QOS's
    Instant submit{};
    std::int64_t gpus = 1;
    std::int64_t gpus_per_pod = 1;
    Duration work{};           // productive time; of a kind with steps: not used
    Duration limit{};          // of each run, from its start; 0: the partition's
    Duration switches_wait{};  // and how long it waits for that
    std::int64_t done = 0;     // steps, before the campaign begins
    // It runs as the campaign begins, and has for so long. It goes on on the GPUs that `carried` says, before
    // all others are looked at; if it cannot, it is stopped, as if all had been switched off.
    std::optional<Duration> goes_on{};
    std::shared_ptr<const CarriedJob> carried{};  // from the campaign that had it before

    std::int64_t pods() const { return (gpus + gpus_per_pod - 1) / gpus_per_pod; }
};

// Nodes under maintenance for a while, again and again if `every` is not 0: no job starts there that would
// have to end in it. What runs there all the same goes on.
struct Reservation {
    NodeIndex first_node = 0;
    std::int64_t nodes = 0;
    Instant start{};
    Duration length{};
    Duration every{};
};

// Checks of nodes: a broken one that is found leaves for its reset or repair as soon as it is empty.
struct HealthChecks {
    bool prolog = true;  // before a job starts; what it finds sends the job back to the queue
    bool epilog = true;  // after it has ended
    Duration prolog_time{};
    Duration epilog_time{};
    Duration interval{};  // of all nodes, whoever is on them; 0: never
};

// A site's power, that holds back jobs. In milliwatts at the nodes' plugs.
struct PowerBudget {
    std::int64_t room = 0;               // beside what all nodes draw while they are idle
    std::vector<std::int64_t> per_part;  // by kind of jobs: what a part of a GPU adds, at the most
};

struct WorldSpec : NodeFailures {
    std::vector<NodeGroup> groups;
    std::vector<NodePlace> places;  // by node
    std::vector<PartitionSpec> partitions;
    std::vector<std::string> accounts;
    std::vector<Reservation> reservations;
    HealthChecks health;
    SearchSpec search;  // for slow parts
    std::vector<double>
        slowdowns;            // by condition of slow parts: what work without a model takes longer
    double misdiagnosis = 0;  // of searches among a job's nodes, how many blame a sound one

    std::string scheduler = "slurm";  // a name of world_scheduler_kinds()
    SlurmSpec slurm;
    KubeSpec kube;
    // What sjf and easy take for a job's time before it has ended.
    RuntimeEstimate estimate = RuntimeEstimate::limit;

    std::vector<WorldJobKind> kinds;
    std::optional<PowerBudget> power;         // that jobs wait for
    std::vector<WorldStore> stores;           // that transfers name by their place
    std::vector<GpuRequest> requests = {{}};  // the first asks for nothing
    std::vector<std::string> trace_ids;       // of jobs from a file, as it has them

    // What people know a job by: its trace's own id, else its place in order of submission, with its kind's
    // name before it where the scenario has a trace, whose ids look alike.
    std::string name_of(const WorldJob& job) const;

    // A step of work without a model: short enough to be none, and long enough to be slowed.
    Duration tick(const WorldJobKind& kind) const {
        if (kind.given_step > Duration{}) return kind.given_step;
        const bool slowed = !slowdowns.empty() || kind.throttled > 0 || kind.duty < 1 ||
                            static_cast<bool>(kind.traffic);
        return slowed ? Duration(std::chrono::milliseconds(1)) : Duration(1);
    }
    // Such a step of jobs whose GPUs and links are sound, with the store to one of them alone.
    Duration sound_step(const WorldJobKind& kind) const;
    std::int64_t steps_of(const WorldJob& job) const;  // all that it has to do
    std::int64_t nodes() const;
    std::int64_t gpus() const;
    const NodeGroup& group_of_node(NodeIndex node) const;

    // A pool: the nodes of a partition whose GPUs are as requested. Those of the first request are the
    // partitions, in their order.
    std::uint32_t pools() const {
        return static_cast<std::uint32_t>(requests.size() * partitions.size());
    }
    std::uint32_t pool(std::uint32_t partition, std::uint32_t request) const {
        return static_cast<std::uint32_t>(request * partitions.size()) + partition;
    }
    std::uint32_t pool(const WorldJob& job) const {
        return pool(job.partition, kinds[job.kind].request);
    }
    std::uint32_t partition_of_pool(std::uint32_t pool) const {
        return static_cast<std::uint32_t>(pool % partitions.size());
    }
    const GpuRequest& request_of_pool(std::uint32_t pool) const {
        return requests[pool / partitions.size()];
    }
    // The ledger counts in these: compute slices in a cluster that has any, else GPUs.
    std::int64_t parts_per_gpu() const;
    std::int64_t parts_of(const WorldJob& job) const;  // of each of its GPUs, or its slice
    // GPUs of the pool's first node; if the pool is empty, of the partition's.
    std::int64_t gpus_of_pool_node(std::uint32_t pool) const;
    // Why a pool is empty, and which nodes come nearest; nothing of one that isn't.
    std::optional<std::string> why_empty(std::uint32_t pool) const;
};

}  // namespace railyard
