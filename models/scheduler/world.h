#pragma once
// Many jobs on a cluster that fails: who gets which GPUs, what becomes of the jobs, where the GPU time went.

#include <memory>
#include <string>
#include <vector>

#include "models/scheduler/world_ledger.h"
#include "models/scheduler/world_scheduler.h"
#include "models/scheduler/world_spec.h"
#include "models/storage/storage.h"

namespace railyard {

struct WorldJobs {
    std::vector<WorldJob> jobs;  // in order of submission
};

// Where other campaigns have the job before this one, or after it.
struct JobBorder {
    std::vector<BookedSteps> lost;  // that an earlier one has booked as kept
    CarriedJob left;                // for the next one
};

// What became of a job. Steps that an earlier campaign kept and that are lost here count against `kept`.
struct WorldJobRun {
    Instant first_start{};
    Instant end{};
    bool started = false;
    bool over = false;
    bool waits = false;  // for GPUs as the campaign ends, or is suspended
    JobEnd how = JobEnd::completed;
    std::int32_t starts = 0;
    bool goes_on = false;            // the first of these took up a run of an earlier campaign
    std::int32_t interruptions = 0;  // by failures, of a node or its own
    Duration held{};                 // all its GPUs, or those that it went on with
    Duration kept{};                 // steps that were kept, less what uploads cost them
    std::int64_t kept_steps = 0;
    std::int64_t lost_steps = 0;
    std::int64_t replica_steps_missing = 0;  // of steps that were kept, on fewer replicas
    Duration contention{};                   // of all its steps: waiting for others on shared links
    std::optional<Instant> runs_since{};     // when it runs as the campaign ends
    std::shared_ptr<JobBorder> border{};     // null: nothing is carried over

    JobBorder& at_border() {
        if (!border) border = std::make_shared<JobBorder>();
        return *border;
    }
    void lose_booked(const std::vector<BookedSteps>& steps) {
        if (steps.empty()) return;
        std::vector<BookedSteps>& lost = at_border().lost;
        lost.insert(lost.end(), steps.begin(), steps.end());
    }
};

// Hears of every start and stop of a run.
class WorldListener {
  public:
    virtual ~WorldListener() = default;
    // Once, before anything happens. What it does to nodes or domains on this clock, it does to `nodes`.
    virtual void begins(CampaignEngine& /*engine*/, Renewals::Target& /*nodes*/) {}
    virtual void started(JobIndex job, Instant now, const Allocation& gpus) = 0;
    virtual void stopped(JobIndex job, Instant now) = 0;
    // A kind that plans ahead has promised the first of a partition's queue that it starts by then.
    virtual void promised(JobIndex /*job*/, Instant /*now*/, Instant /*start*/) {}
};

// GPU seconds that jobs of a kind waited for those of another on links that they share, also in steps that
// were lost later.
class ContentionByKind {
  public:
    ContentionByKind() = default;
    explicit ContentionByKind(std::size_t kinds) : kinds_(kinds), gpu_s_(kinds * kinds) {}
    double& at(std::size_t of, std::size_t by) { return gpu_s_[of * kinds_ + by]; }
    double at(std::size_t of, std::size_t by) const { return gpu_s_[of * kinds_ + by]; }

  private:
    std::size_t kinds_ = 0;
    std::vector<double> gpu_s_;
};

struct RefusedJob {
    std::size_t job = 0;
    std::string reason;
};

struct WorldOutcome : FaultCounts {
    std::vector<WorldJobRun> runs;  // by job
    // How far the jobs have come at the end: submitted = ended + running + waiting + refused.
    std::int64_t submitted = 0;
    std::int64_t ended = 0;
    std::int64_t running = 0;  // or holding GPUs all the same
    std::int64_t waiting = 0;
    std::vector<std::int64_t> interruptions;  // of jobs, by cause
    std::int64_t own_failures = 0;            // of jobs, by themselves
    std::int64_t preemptions = 0;
    std::int64_t shrinks = 0;          // of jobs that went on on fewer nodes
    std::int64_t strikes_on_idle = 0;  // failures that found no job on their node
    NodeFailureCounts nodes;
    std::vector<std::int64_t> repairs;  // nodes that went there, by cause
    std::vector<RefusedJob> refused;
    ContentionByKind contention_by;
    std::int64_t network_stalls = 0;     // of jobs that had no way left
    std::int64_t corrupted_results = 0;  // jobs that were done before anybody knew
    std::string stuck;                   // who holds what and can never have what it waits for
    UseByStore in_stores;                // by checkpoints
    StoreFailureCounts store;            // of the shared one
    GpuNanoseconds held = 0;             // by jobs
    GpuNanoseconds node_busy = 0;        // of nodes that hold a job, all their GPUs
    std::vector<GpuNanoseconds> node_busy_of{};  // likewise, by group of nodes
    GpuNanoseconds stranded = 0;                 // sevenths of GPUs that no instance could have had
    GpuNanoseconds sliced = 0;                   // of all sevenths of GPUs that are cut
};

// Runs them from the clock's start to `end`, or until all are over if that is Instant::max().
struct WorldRun {
    const WorldSpec& spec;
    const WorldJobs& jobs;
    const std::vector<FailureCause>& causes;
    std::uint64_t seed = 1;
    std::uint64_t replica = 0;
    HashSeed hashes{};
    const NetworkFaults* network = nullptr;  // what breaks of it
    const StoreSetup* store = nullptr;       // the shared one, where its parts fail
    Instant end = Instant::max();
    std::uint64_t events_max = UINT64_MAX;
    std::vector<WorldListener*> listeners{};
    std::vector<CampaignEvent>* events = nullptr;
    bool followed = false;    // another campaign goes on with its jobs
    bool off_at_end = false;  // what runs then stops, and loses what no store has

    // An event of a job, or of no_world_job, for whoever asked for them.
    void record(Instant now, const char* kind, JobIndex job, std::string cause, NodeIndex node,
                std::int64_t steps) const;
};
struct WorldRunResult {
    WorldOutcome outcome;
    Ledger ledger;
    WorldLedger ledgers;  // whose sum it is
    CampaignEngine::Outcome ended = CampaignEngine::Outcome::drained;
    Duration simulated{};
    std::uint64_t events = 0;
    Fingerprint trajectory;
};
WorldRunResult run_world(const WorldRun& run);

}  // namespace railyard
