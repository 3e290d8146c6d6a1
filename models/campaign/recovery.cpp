// What a job does about a failure, beside what it runs and saves.

#include "models/campaign/sections.h"
#include "models/training/training.h"

namespace railyard {

namespace {

// The sizes that the job can shrink to: fewer replicas on whole nodes, in memory that fits. Their steps are
// modelled later, with those of slow parts.
void read_smaller_jobs(Section& recovery, std::int64_t replicas_min, Scenario& s) {
    if (!s.job.recovery.recompute) {
        recovery.error("policy", "a job that shrinks goes back to a checkpoint",
                       "recompute = true");
    } else if (!step_is_modelled(s) || !s.no_path.empty()) {
        recovery.error("policy", "how long a step takes on fewer nodes must be modelled",
                       "give job.model and job.parallel, and neither job.step.time nor job.trace");
    } else {
        const ParallelPlan& plan = s.plan;
        s.job.replicas = plan.data;
        if (replicas_min == 0) replicas_min = (plan.data + 1) / 2;
        for (std::int64_t data = plan.data; data-- > replicas_min;) {
            const ParallelPlan smaller = with_replicas(plan, data);
            const bool whole_nodes = smaller.gpus() % s.job.gpus_per_node == 0;
            if (!whole_nodes || !plan_problems(s.model, smaller).empty()) continue;
            const bool fits =
                memory_bytes_per_gpu(s.model, smaller, s.parameter_bytes, s.node.gpu) <=
                real(s.node.gpu.usable_memory.count());
            if (!fits) continue;
            SmallerJob& size = s.job.smaller.emplace_back();
            size.nodes = smaller.gpus() / s.job.gpus_per_node;
            size.replicas = data;
        }
        if (s.job.smaller.empty()) {
            recovery.error("policy",
                           "there is no smaller size: no count of replicas below the job's fills "
                           "whole nodes and their memory",
                           "lower replicas_min, or another policy");
        }
    }
}

// What every node and rank reads from the store as the job starts.
void settle_start(Section& recovery, Scenario& s) {
    const RecoverySpec& r = s.job.recovery;
    const Bytes image = s.image;
    const Bytes index = s.dataset_index;
    TransferSpec& start = s.job.checkpoint.read_at_start;
    start.store = shared_store;
    start.direction = Direction::read;
    start.weight = s.fair_by_job ? 1 : s.job.nodes;
    start.bytes = image * s.job.nodes + index * s.job.gpus();
    start.files =
        s.job.nodes * (image > Bytes{} ? 1 : 0) + s.job.gpus() * (index > Bytes{} ? 1 : 0);
    start.cap = s.stores[shared_store].limits.client_read * s.job.nodes;
    start.cap_wall = Wall::client;
    if (start.bytes > Bytes{} && r.restore) {
        recovery.error("restore",
                       "is the whole time to read back; image and dataset_index are part of it",
                       "leave out one of them");
    }
}

}  // namespace

void join_recovery(Section& job, Catalogue& catalogue, Scenario& s) {
    Section recovery = job.section("recovery");
    const RecoveryKeys keys = read_recovery(recovery, s.job.recovery.policy);
    RecoverySpec& r = s.job.recovery;
    r.policy = keys.policy;
    r.restore = keys.restore;
    r.recompute = keys.recompute;
    if (!recovery.ok() || recovery.describing()) return;
    const RecoveryTimes times = recovery_times(catalogue, keys, s.job.nodes, s.job.gpus());
    r.replacement = times.replacement;
    r.restart = times.restart;
    if (r.policy == RecoveryPolicy::shrink) read_smaller_jobs(recovery, keys.replicas_min, s);
    s.image = keys.image;
    s.dataset_index = keys.dataset_index;
    settle_start(recovery, s);
    if (!r.recompute && s.job.checkpoint.mode == CheckpointMode::async) {
        recovery.error("recompute",
                       "without recomputation nothing can be lost, so asynchronous checkpoints "
                       "have no meaning",
                       "use job.checkpoint.mode = \"sync\" or \"none\"");
    }
}

}  // namespace railyard
