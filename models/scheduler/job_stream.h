#pragma once
// Many jobs over years on a cluster of virtual clusters: who gets which GPUs when, and who waits how
// long. At each instant first all jobs end that end then, then jobs are submitted, then each virtual
// cluster's policy starts what may start. README.md has the rules.

#include <cstdint>
#include <string>
#include <vector>

#include "models/scheduler/placement.h"
#include "models/training/training.h"

namespace railyard {

// Times are on the stream's own clock.
struct StreamJob {
    std::int64_t id = 0;  // orders jobs that are alike in all else
    Duration submit{};
    Duration duration{};  // once it runs
    Duration limit{};     // what its user said it takes at most, 0: nothing; it is ended then
    std::int64_t gpus = 1;
    std::int64_t priority = 0;  // larger is sooner, where the policy looks at it
    std::uint32_t cluster = 0;  // index of its virtual cluster

    Duration runtime() const {
        return limit > Duration::zero() && limit < duration ? limit : duration;
    }
};

// Nodes that share one queue, and nothing else.
struct VirtualCluster {
    std::string name;
    std::int64_t nodes = 0;
    std::int64_t gpus_per_node = 0;

    std::int64_t gpus() const { return nodes * gpus_per_node; }
};

// What a policy takes for a job's duration before it has ended.
enum class RuntimeEstimate : std::uint8_t {
    exact,  // how long it will run
    limit,  // its time limit; without one a year, as Slurm's backfill plans it
};

// How conservative backfill looks at the queue. Slurm's sched/backfill, its parameters and its defaults
// (slurm.conf, SchedulerParameters): bf_interval, bf_window, bf_resolution, bf_max_job_test.
struct BackfillRules {
    Duration interval = std::chrono::seconds(30);    // from one look to the next
    Duration window = std::chrono::hours(24);        // how far ahead it plans
    Duration resolution = std::chrono::seconds(60);  // expected ends are rounded up to it
    std::int64_t depth = 100;                        // jobs that it looks at
};

struct StreamRules {
    std::string policy = "fifo";     // a name of policy_kinds()
    std::string placement = "pool";  // a name of placement_kinds()
    RuntimeEstimate estimate = RuntimeEstimate::exact;
    BackfillRules backfill = {};  // of the policy `backfill`
    // Jobs that a virtual cluster may hold, running and waiting (Slurm's MaxSubmitJobs); 0: any number.
    std::int64_t submitted_max = 0;
};

// Who wants to see each step; for tests and for what is built on a stream. `job` is an index.
class StreamListener {
  public:
    virtual ~StreamListener() = default;
    virtual void started(std::size_t job, Duration now, const Allocation& allocation) = 0;
    virtual void ended(std::size_t job, Duration now) = 0;
    // A policy that plans ahead has promised the first job of its queue that it starts by then.
    virtual void reserved(std::size_t job, Duration now, Duration start) = 0;
};

// What became of each job.
struct JobRun {
    Duration start{};
    Duration end{};
    bool refused = false;  // at submission: it never started
};

struct RefusedJob {
    std::size_t job = 0;
    std::string reason;
};

// Totals of a virtual cluster.
struct ClusterUse {
    GpuNanoseconds busy = 0;  // GPU time in jobs
    GpuNanoseconds fragmented =
        0;  // free while the queue's first job waits for fewer GPUs than are free
    GpuNanoseconds node_busy = 0;  // time of nodes with a job; 0 where placement knows no nodes
};

struct StreamSchedule {
    std::vector<JobRun> jobs;  // by job
    std::vector<RefusedJob> refused;
    std::vector<ClusterUse> use;  // by virtual cluster
    Fingerprint digest;           // of every start and end, in their order
};

// Runs the jobs, in any order given. Virtual clusters have nodes and GPUs; jobs have GPUs, times >= 0
// and a virtual cluster. The names in `rules` exist.
StreamSchedule run_job_stream(const std::vector<StreamJob>& jobs,
                              const std::vector<VirtualCluster>& clusters, const StreamRules& rules,
                              StreamListener* listener = nullptr);

}  // namespace railyard
