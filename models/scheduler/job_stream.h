#pragma once
// A trace of jobs on perfect nodes, which nothing but their number and size tells apart: who gets which GPUs
// when, and who waits how long. It is a world without failures, whose partitions share no node.

#include <cstdint>
#include <string>
#include <vector>

#include "models/scheduler/world.h"

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
};

// Nodes that share one queue, and nothing else.
struct VirtualCluster {
    std::string name;
    std::int64_t nodes = 0;
    std::int64_t gpus_per_node = 0;

    std::int64_t gpus() const { return nodes * gpus_per_node; }
};

struct StreamChoice {
    const char* name;
    const char* doc;
};
// Who starts next, and on which GPUs.
const std::vector<StreamChoice>& policy_kinds();
const std::vector<StreamChoice>& placement_kinds();

struct StreamRules {
    std::string policy = "fifo";     // a name of policy_kinds()
    std::string placement = "pool";  // a name of placement_kinds()
    RuntimeEstimate estimate = RuntimeEstimate::work;
    BackfillRules backfill = {};  // of the policy `backfill`
    // Jobs that a virtual cluster may hold, running and waiting (Slurm's MaxSubmitJobs); 0: any number.
    std::int64_t submitted_max = 0;
};

// What became of each job.
struct JobRun {
    Duration start{};
    Duration end{};
    bool refused = false;  // at submission: it never started
};

// Totals of a virtual cluster.
struct ClusterUse {
    GpuNanoseconds busy = 0;  // GPU time in jobs
    GpuNanoseconds fragmented =
        0;  // free while the queue's first job waits for fewer GPUs than are free
    GpuNanoseconds node_busy = 0;  // GPU time of nodes with a job; of `pool`, of GPUs with one
};

struct StreamSchedule {
    std::vector<JobRun> jobs;         // by job
    std::vector<RefusedJob> refused;  // by index
    std::vector<ClusterUse> use;      // by virtual cluster
    Fingerprint digest;               // of every start, in their order
};

// Runs the jobs, in any order given. Virtual clusters have nodes and GPUs; jobs have GPUs, times >= 0
// and a virtual cluster. The names in `rules` exist. `listener` hears of jobs by their place in order of
// submission.
StreamSchedule run_job_stream(const std::vector<StreamJob>& jobs,
                              const std::vector<VirtualCluster>& clusters, const StreamRules& rules,
                              WorldListener* listener = nullptr);

}  // namespace railyard
