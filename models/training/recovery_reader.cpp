#include "models/training/recovery_reader.h"

namespace railyard {

const std::vector<std::string> recovery_policy_names = {"spare", "requeue", "in_process", "shrink"};

RecoveryKeys read_recovery(Section& recovery, RecoveryPolicy usual) {
    RecoveryKeys out;
    out.policy = usual;
    recovery.choose("policy", out.policy, recovery_policy_names,
                    "What the job does about a failure: 'railyard list kinds' has a line on each");
    recovery.read("replicas_min", out.replicas_min,
                  "With policy = \"shrink\": data-parallel replicas that the job needs to go on",
                  {Bound::count, "half of job.parallel.data"});
    recovery.read("replacement", out.replacement, "Draining a broken node and swapping in a spare",
                  {Bound::non_negative, "a hot spare's, or a requeue's, from the catalogue"});
    recovery.read("restart", out.restart, "Launch, imports, communicator set-up and warm-up",
                  {Bound::non_negative, "the sum of their catalogue values at this size"});
    recovery.read(
        "restore", out.restore, "Reading the checkpoint back",
        {Bound::non_negative,
         "what the tier that has it takes, at the share of its read bandwidth that a load gets"});
    recovery.read("image", out.image,
                  "Container image that each node reads from [storage] as it starts",
                  {Bound::non_negative, "every node has it"});
    recovery.read("dataset_index", out.dataset_index,
                  "Index of the data that each rank reads as it starts", {Bound::non_negative});
    recovery.read("recompute", out.recompute,
                  "Steps since the last safe checkpoint are lost and done again; false charges "
                  "only the time to come back");
    recovery.finish();
    if (out.policy != RecoveryPolicy::shrink) {
        warn_of_keys(recovery, {"replicas_min"}, "has no effect without policy = \"shrink\"");
    }
    return out;
}

namespace {

// Set up in order, groups wait for each other once: the time grows with the ranks, not with their square.
Duration communicators_set_up(Catalogue& c, std::int64_t gpus) {
    const char* measured = "nccl_init_2048_tuned";
    const double share = real(gpus) / c.number("restart", measured, "gpus");
    return from_seconds(seconds(c.time("restart", measured, "time")) * share);
}

}  // namespace

RecoveryTimes recovery_times(Catalogue& c, const RecoveryKeys& keys, std::int64_t nodes,
                             std::int64_t gpus) {
    std::optional<Duration> replacement = keys.replacement;
    std::optional<Duration> restart = keys.restart;
    const bool requeue = keys.policy == RecoveryPolicy::requeue;
    if (!replacement) {
        replacement = c.time("restart", requeue ? "job_requeue_cold" : "hot_spare_swap", "time");
    }
    if (!restart) {
        restart = c.time("restart", "python_import", "time") +
                  c.time("restart", "framework_init", "time") + communicators_set_up(c, gpus) +
                  c.time("restart", "first_step_warmup", "time");
        if (keys.policy != RecoveryPolicy::in_process) {
            *restart += c.time("restart", "slurm_launch", "time") +
                        c.time("restart", "slurm_launch", "time_per_node") * nodes +
                        c.time("restart", "container_pull", requeue ? "time" : "warm_time");
        }
    }
    return {*replacement, *restart};
}

}  // namespace railyard
