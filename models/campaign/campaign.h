#pragma once
// The door of the library: a scenario in; goodput, the ledger and how sure we are of them out.

#include <atomic>
#include <functional>
#include <optional>

#include "models/campaign/bill_of_materials.h"
#include "models/campaign/cost.h"
#include "models/campaign/cost_metrics.h"
#include "models/campaign/kept_bound.h"
#include "models/campaign/metric_names.h"
#include "models/campaign/replica_tally.h"
#include "models/campaign/save_walls.h"
#include "models/campaign/scenario.h"
#include "models/campaign/store_traffic.h"
#include "models/campaign/world.h"
#include "models/fabric/fabric.h"
#include "sim/metrics.h"

namespace railyard {

// No campaign is longer; a job that is not done by then makes no progress.
constexpr Duration campaign_length_max = time_max;

// What became of a job of many.
struct JobRecord {
    std::string name;  // its trace's own id, or its place
    std::string kind;
    std::string state;  // how it ended; running: it holds GPUs; waiting, or suspended
    std::int64_t gpus = 0;
    std::int64_t starts = 0;
    std::int64_t interruptions = 0;
    double submit_s = 0;
    double start_s = 0;  // the first; not a number before it
    double end_s = 0;    // likewise
    double wait_s = 0;   // until the first start, or the campaign's end
    double held_s = 0;   // with all its GPUs
    double kept_s = 0;   // steps that were kept
    double contention_s = 0;
};
using TakeJob = std::function<void(const JobRecord&)>;

struct ReplicaResult {
    // The defaults, in campaign.cpp: compiled once there, not in each source that uses one.
    ReplicaResult();
    ReplicaResult(const ReplicaResult&);
    ReplicaResult(ReplicaResult&&) noexcept;
    ReplicaResult& operator=(const ReplicaResult&);
    ReplicaResult& operator=(ReplicaResult&&) noexcept;
    ~ReplicaResult();

    std::int64_t index = 0;
    Ending ending = Ending::complete;
    std::string stuck_report;  // who waits on what
    Ledger ledger;
    JobOutcome job;
    NodePool::Outcome nodes;
    std::vector<std::int64_t> repairs;         // nodes that went to repair, by cause
    StoreFailureCounts store;                  // of [storage]
    FeedCounts feeds;                          // of [facility]
    CampaignEnergy energy;                     // before the facility's own losses
    std::vector<NeighbourOutcome> neighbours;  // in the scenario's order
    Duration simulated{};
    std::uint64_t events = 0;
    std::uint64_t trajectory = 0;  // digest of every event
    std::uint64_t outcome = 0;     // digest of the ledger and the counts
    MetricList metrics;
    std::vector<CampaignEvent> log;   // when asked for
    std::vector<RefusedJob> refused;  // with many jobs, by number of submission
};

// With many jobs: one of them runs on these nodes from a start to a stop.
struct JobHold {
    std::int64_t job = 0;  // its id
    std::size_t kind = 0;
    Instant from;
    Instant until;
    Allocation gpus;  // or instances of them
};

// A replica from minute to minute, for those that look at one. Rates stand until the next change.
struct ReplicaTrace {
    std::vector<PhaseStart> phases;
    std::vector<StoreRates> store_rates;  // by index into Scenario::stores
    std::vector<NodeAbsence> absences;
    std::vector<NodeMove> moves;  // of one job's nodes
    std::vector<JobHold> holds;   // by their start
};

// One replica of a scenario whose ranks reach each other, alone: the same scenario and index give
// the same bytes, always. Checks that the ledger sums to GPUs x time.
// `record` is filled when it is given; it changes nothing else.
// `so_far`: what the one job had done before this phase; it goes on from there.
// `jobs` is told at the end what has become of each of many jobs, in the order of their submission.
ReplicaResult run_replica(const Scenario& scenario, std::int64_t index, bool log_events,
                          ReplicaTrace* record = nullptr, JobSoFar* so_far = nullptr,
                          const TakeJob& jobs = {});

// Strikes on the nodes of the one job, or of many, of all causes, but for injected ones and those that
// come with jobs.
Rate strike_rate(const Scenario& scenario);
// These, of each running job of many.
Rate strike_rate_per_job(const Scenario& scenario);

void add_store_metrics(const StoreFailureCounts& counts, MetricList& out);
// What faults did, and what became of nodes, one job's or those of many: as far as the scenario asks for it.
void add_fault_metrics(const Scenario& scenario, const FaultCounts& faults, MetricList& out);
void add_node_counts(const Scenario& scenario, const NodeFailureCounts& nodes, MetricList& out);

// The same of a scenario with many jobs. Of one of its phases: with these jobs, on its own clock.
struct WorldPart {
    WorldJobs jobs;
    bool off_at_end = false;  // as WorldRun has it
    WorldRunResult ran;       // what has become of them
};
ReplicaResult run_world_replica(const Scenario& scenario, std::int64_t index, bool log_events,
                                ReplicaTrace* record = nullptr, WorldPart* part = nullptr,
                                const TakeJob& take = {});
MetricList world_metrics(const Scenario& scenario, const WorldJobs& jobs,
                         const WorldRunResult& ran);
// What all jobs of the first replica take alone, in GPU seconds.
double gpu_seconds_alone(const Scenario& scenario);
void tell_jobs(const WorldSpec& spec, const WorldJobs& jobs, const WorldOutcome& outcome,
               Instant end, const TakeJob& take);

struct CampaignOptions {
    unsigned threads = 1;
    std::int64_t logged_replicas = 0;  // the first so many keep their event log
    TakeJob jobs;                      // of the first replica, called by the thread that runs it
    const std::atomic<bool>* cancelled = nullptr;
    // Called as replicas finish, from any thread, one call at a time.
    std::function<void(std::int64_t done, std::int64_t total)> progress;
    // Receives each finished replica, in order of index, one call at a time.
    std::function<void(const ReplicaResult&)> finished;
};

// Replicas are added up as they finish. When cancelled, those that were finished, the first so many.
struct CampaignResult : ReplicaSums {
    // The defaults, in campaign.cpp: compiled once there, not in each source that uses one.
    CampaignResult();
    CampaignResult(const CampaignResult&);
    CampaignResult(CampaignResult&&) noexcept;
    CampaignResult& operator=(const CampaignResult&);
    CampaignResult& operator=(CampaignResult&&) noexcept;
    ~CampaignResult();

    bool cancelled = false;
    std::vector<RefusedJob> refused;  // with many jobs, in the first replica
    struct Stuck {
        std::int64_t replica = 0;
        Instant at{};
        std::string report;
    };
    std::optional<Stuck> stuck;        // the first that was
    std::vector<double> energy;        // J, mean by category; then of the network and of storage
    double planned_interruptions = 0;  // mean over replicas
    double simulated_s = 0;            // likewise
    std::vector<LimitReached> limits;  // that the scenario's own numbers ran into
    double cpu_s = 0;

    // The worst of its replicas', unless a limit was run into.
    Ending ending() const;
    // A metric over all replicas.
    double mean(std::string_view metric) const { return this->metric(metric).summary.mean; }
};

CampaignResult run_campaign(const Scenario& scenario, const CampaignOptions& options);

// CPU seconds that this process has used.
double process_cpu_seconds();

}  // namespace railyard
