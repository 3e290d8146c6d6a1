#include "models/scheduler/world.h"

#include <utility>

#include "models/scheduler/world_simulation.h"
#include "sim/cancel.h"

namespace railyard {

const std::vector<WorldSchedulerKind>& world_scheduler_kinds() {
    static const std::vector<WorldSchedulerKind> kinds = {
        {"slurm", "gang allocation, multifactor priority, backfill, preemption, topology",
         make_slurm},
        {"kubernetes", "pods bound one by one, a failed pod retried alone: partial gangs hold GPUs",
         make_kubernetes},
        {"volcano", "gangs by minMember, queues with weights, reclaim, restart of the whole job",
         make_volcano},
        {"kueue", "quota of cluster queues and cohorts, time-outs until pods are ready, topology",
         make_kueue},
        {"fifo", "in the order of submission; who does not fit makes all others wait", make_fifo},
        {"sjf", "the shortest first, likewise", make_sjf},
        {"priority", "the highest priority first, then fifo", make_priority},
        {"easy", "fifo, and who does not delay the first may overtake it (EASY backfill)",
         make_easy},
    };
    return kinds;
}

const char* job_end_name(JobEnd how) {
    constexpr const char* names[] = {"completed", "failed",    "node_fail", "timeout",
                                     "preempted", "cancelled", "refused"};
    return names[static_cast<std::size_t>(how)];
}

bool has_time_limit(const WorldSpec& spec, const WorldJob& job) {
    const PartitionSpec& partition = spec.partitions[job.partition];
    return std::max({job.limit, partition.limit_default, partition.limit_max}) > Duration{};
}

Duration time_limit(const WorldSpec& spec, const WorldJob& job) {
    const PartitionSpec& partition = spec.partitions[job.partition];
    Duration limit = job.limit;
    if (limit == Duration{}) limit = partition.limit_default;
    if (limit == Duration{}) limit = partition.limit_max;
    constexpr Duration year = std::chrono::hours(24 * 365);  // as Slurm plans a job without a limit
    return limit > Duration{} ? limit : year;
}

void WorldRun::record(Instant now, const char* kind, JobIndex job, std::string cause,
                      NodeIndex node, std::int64_t steps) const {
    if (events == nullptr) return;
    events->push_back({now, kind, std::move(cause),
                       node == no_node ? -1 : static_cast<std::int64_t>(node), steps,
                       job == no_world_job ? -1 : jobs.jobs[job].id});
}

WorldRunResult run_world(const WorldRun& run) {
    WorldRunResult result;
    CampaignEngine engine;
    result.ledgers = WorldLedger(run.spec.groups.size(), run.spec.kinds.size());
    WorldSimulation world(engine, run, result.ledgers);
    world.start();
    result.ended = run_cancellable(engine, run.end, run.events_max);
    result.outcome = world.end_campaign();
    result.ledger = result.ledgers.total();
    result.simulated = engine.now().time_since_epoch();
    result.events = engine.events();
    result.trajectory = engine.trajectory();
    const GpuNanoseconds all =
        GpuNanoseconds{run.spec.gpus() * run.spec.parts_per_gpu()} * result.simulated.count();
    WorldOutcome& out = result.outcome;
    for (const NodeGroup& group : run.spec.groups) {
        if (!group.mig) continue;
        out.sliced += GpuNanoseconds{group.nodes * group.gpus_per_node * mig_compute_slices} *
                      result.simulated.count();
    }
    out.held = result.ledgers.held();
    RY_CHECK(result.ledger.total() == all);
    RY_CHECK(out.held <= out.node_busy && out.node_busy <= all);
    RY_CHECK(out.submitted == out.ended + out.running + out.waiting + std::ssize(out.refused));
    return result;
}

}  // namespace railyard
