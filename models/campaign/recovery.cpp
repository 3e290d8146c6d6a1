// [job.recovery]: what a job does about a failure, and how long that takes.

#include "models/campaign/checkpoint.h"
#include "models/campaign/conditions.h"

namespace railyard {

const std::vector<std::string>& recovery_policy_names() {
    static const std::vector<std::string> names = {"spare", "requeue", "in_process", "shrink"};
    return names;
}

namespace {

// The sizes that the job can shrink to: fewer replicas on whole nodes, in memory that fits. Their steps are
// modelled later, with those of slow parts.
void read_smaller_jobs(Section& recovery, std::int64_t replicas_min, Scenario& s) {
    if (!s.job.recovery.recompute) {
        recovery.error("policy", "a job that shrinks goes back to a checkpoint",
                       "recompute = true");
    } else if (s.model.name.empty() || s.no_path.size() > 0 || step_is_given(s)) {
        recovery.error("policy", "how long a step takes on fewer nodes must be modelled",
                       "give job.model and job.parallel, and not job.step.time");
    } else {
        const ParallelPlan& plan = s.plan;
        s.job.replicas = plan.data;
        if (replicas_min == 0) replicas_min = (plan.data + 1) / 2;
        for (std::int64_t data = plan.data; data-- > replicas_min;) {
            const ParallelPlan smaller = with_replicas(plan, data);
            const bool fits =
                memory_bytes_per_gpu(s.model, smaller, s.parameter_bytes, s.node.gpu) <=
                static_cast<double>(s.node.gpu.usable_memory.count());
            const bool splits = data % plan.expert == 0 && data * plan.context % plan.shards() == 0;
            const bool whole_nodes = smaller.gpus() % s.job.gpus_per_node == 0;
            if (!whole_nodes || !fits || (!splits && (plan.expert > 1 || plan.shard_ranks > 0))) {
                continue;
            }
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

// Set up in order, groups wait for each other once: the time grows with the ranks, not with their square.
Duration communicators_set_up(Catalogue& c, std::int64_t gpus) {
    const char* measured = "nccl_init_2048_tuned";
    const double share = static_cast<double>(gpus) / c.number("restart", measured, "gpus");
    return from_seconds(seconds(c.time("restart", measured, "time")) * share);
}

// What the scenario doesn't say of how long it takes to come back, from the catalogue.
void settle_times(Catalogue& c, Scenario& s, std::optional<Duration> replacement,
                  std::optional<Duration> restart) {
    RecoverySpec& r = s.job.recovery;
    const bool requeue = r.policy == RecoveryPolicy::requeue;
    if (!replacement) {
        replacement = c.time("restart", requeue ? "job_requeue_cold" : "hot_spare_swap", "time");
    }
    if (!restart) {
        restart = c.time("restart", "python_import", "time") +
                  c.time("restart", "framework_init", "time") +
                  communicators_set_up(c, s.job.gpus()) +
                  c.time("restart", "first_step_warmup", "time");
        if (r.policy != RecoveryPolicy::in_process) {
            *restart += c.time("restart", "slurm_launch", "time") +
                        c.time("restart", "slurm_launch", "time_per_node") * s.job.nodes +
                        c.time("restart", "container_pull", requeue ? "time" : "warm_time");
        }
    }
    r.replacement = *replacement;
    r.restart = *restart;
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
                       "is the whole time to read back; image and dataset_index are "
                       "part of it",
                       "leave out one of them");
    }
    if (start.bytes > Bytes{} && s.job.checkpoint.mode == CheckpointMode::none) {
        recovery.error(image > Bytes{} ? "image" : "dataset_index",
                       "without checkpoints nothing is restored");
    }
}

}  // namespace

void read_recovery(Section& job, Catalogue& catalogue, Scenario& s) {
    Section recovery = job.section("recovery");
    std::optional<Duration> replacement;
    std::optional<Duration> restart;
    RecoverySpec& r = s.job.recovery;
    auto policy = static_cast<int>(r.policy);
    recovery.choose("policy", policy, recovery_policy_names(),
                    "What the job does about a failure: 'railyard list kinds' has a line on each");
    r.policy = static_cast<RecoveryPolicy>(policy);
    std::int64_t replicas_min = 0;
    recovery.read("replicas_min", replicas_min,
                  "With policy = \"shrink\": data-parallel replicas that the job needs to go on",
                  {.bound = Bound::count, .otherwise = "half of job.parallel.data"});
    recovery.read("replacement", replacement, "Draining a broken node and swapping in a spare",
                  {.bound = Bound::non_negative,
                   .otherwise = "a hot spare's, or a requeue's, from the catalogue"});
    recovery.read("restart", restart, "Launch, imports, communicator set-up and warm-up",
                  {.bound = Bound::non_negative,
                   .otherwise = "the sum of their catalogue values at this size"});
    recovery.read("restore", r.restore, "Reading the checkpoint back",
                  {.bound = Bound::non_negative,
                   .otherwise = "what the tier that has it takes, at the share of its read "
                                "bandwidth that a load gets"});
    Bytes image;
    Bytes index;
    recovery.read("image", image,
                  "Container image that each node reads from [storage] as it starts",
                  {.bound = Bound::non_negative, .otherwise = "every node has it"});
    recovery.read("dataset_index", index, "Index of the data that each rank reads as it starts",
                  {.bound = Bound::non_negative});
    recovery.read(
        "recompute", r.recompute,
        "Steps since the last safe checkpoint are lost and done again; false charges only the "
        "time to come back");
    recovery.finish();
    if (!recovery.ok() || recovery.describing()) return;

    settle_times(catalogue, s, replacement, restart);
    if (recovery.has("replicas_min") && r.policy != RecoveryPolicy::shrink) {
        recovery.warning("replicas_min", "has no effect without policy = \"shrink\"");
    }
    if (r.policy == RecoveryPolicy::shrink) read_smaller_jobs(recovery, replicas_min, s);
    s.image = image;
    s.dataset_index = index;
    settle_start(recovery, s);
    if (!r.recompute && s.job.checkpoint.mode == CheckpointMode::async) {
        recovery.error("recompute",
                       "without recomputation nothing can be lost, so asynchronous "
                       "checkpoints have no meaning",
                       "use job.checkpoint.mode = \"sync\" or \"none\"");
    }
}

}  // namespace railyard
