#pragma once
// The keys of many jobs under Kubernetes, Volcano and Kueue: as schema_many_jobs.h.

#include "tests/models/schema_many_jobs.h"
#include "tests/scenario_text.h"

namespace railyard {

// Hosts die and jobs fail by themselves on six nodes with little room.
inline const std::string kubernetes_scenario = cluster_text(6, "4 day") + R"(
[scheduler]
kind = "kubernetes"
[scheduler.kubernetes]
backoff_limit = 9
[scheduler.health]
prolog = false
[[jobs.kind]]
name = "wide"
rate = "8 /day"
gpus = 16
work = "5 h"
restart = "1 min"
checkpoint_interval = "1 h"
own_failure_rate_per_gpu = "0.4 /day"
[[jobs.kind]]
name = "small"
rate = "60 /day"
gpus = 2
work = "2 h"
[[failures.cause]]
name = "host"
rate_per_node = "1 /day"
detection = "1 min"
remedy = "reset"
reset_time = "1 h"
silences = true
)";

// A job on all nodes, whose hosts die.
inline const std::string shrink_scenario = cluster_text(4, "8 day") + R"(
[scheduler]
kind = "kubernetes"
[scheduler.kubernetes]
backoff_limit = 1000
[[jobs.kind]]
name = "trains"
nodes = 4
length = "5 day"
model = "llama2_7b"
[jobs.kind.parallel]
tensor = 8
global_batch = 64
sequence_length = 4096
[jobs.kind.checkpoint]
interval = "1 h"
[jobs.kind.recovery]
policy = "shrink"
[[failures.cause]]
name = "host"
rate_per_node = "0.3 /day"
detection = "1 min"
remedy = "reset"
reset_time = "5 h"
)";

// Two queues that want more than there is.
inline const std::string volcano_scenario = cluster_text(4, "4 day") + R"(
[scheduler]
kind = "volcano"
[scheduler.volcano]
period = "1 s"
[[scheduler.qos]]
name = "normal"
[[scheduler.qos]]
name = "high"
priority = 5
[[scheduler.queue]]
name = "a"
weight = 3
[[scheduler.queue]]
name = "b"
[[jobs.kind]]
name = "of_a"
queue = "a"
rate = "30 /day"
gpus = 4
work = "4 h"
[[jobs.kind]]
name = "urgent"
queue = "a"
qos = "high"
rate = "5 /day"
gpus = 8
work = "2 h"
[[jobs.kind]]
name = "of_b"
queue = "b"
rate = "30 /day"
gpus = 8
gpus_per_pod = 2
work = "4 h"
)";

// Two queues of a cohort on six nodes under three leaves, and one of its own.
inline const std::string kueue_scenario = cluster_text(6, "6 day") + R"(
[scheduler]
kind = "kueue"
nodes_per_leaf = 2
[scheduler.kueue]
block_admission = false
[scheduler.health]
prolog = false
[[scheduler.qos]]
name = "normal"
[[scheduler.qos]]
name = "high"
priority = 5
[[scheduler.queue]]
name = "a"
cohort = "all"
[[scheduler.queue.quota]]
gpus = 32
[[scheduler.queue]]
name = "b"
cohort = "all"
[[scheduler.queue.quota]]
gpus = 16
borrowing_limit = 24
[[jobs.kind]]
name = "of_a"
queue = "a"
rate = "10 /day"
gpus = 16
work = "4 h"
[[jobs.kind]]
name = "urgent"
queue = "a"
qos = "high"
rate = "5 /day"
gpus = 16
work = "2 h"
topology = "required"
topology_level = "leaf"
[[jobs.kind]]
name = "of_b"
queue = "b"
rate = "20 /day"
gpus = 20
gpus_per_pod = 4
work = "4 h"
own_failure_rate_per_gpu = "0.1 /day"
topology = "preferred"
[[failures.cause]]
name = "host"
rate_per_node = "0.6 /day"
detection = "1 min"
remedy = "reset"
reset_time = "4 h"
silences = true
)";

// Groups of nodes are Kueue's flavours.
inline const std::string kueue_flavors = cluster_text(4, "2 day") + R"(
[scheduler]
kind = "kueue"
[[node_group]]
name = "new"
node = "dgx_h100"
nodes = 3
[[node_group]]
name = "old"
node = "dgx_h100"
nodes = 1
[[scheduler.queue]]
name = "a"
[[scheduler.queue.quota]]
group = "new"
gpus = 16
[[jobs.kind]]
name = "j"
gpus = 8
count = 4
work = "5 h"
)";

// A queue of jobs that want slices, which Volcano and Kueue count by profile.
inline std::string sliced_node(const std::string& scheduler, const std::string& queue) {
    return cluster_text(1, "4 day") + "[scheduler]\nkind = \"" + scheduler + "\"\n" + R"(
[[node_group]]
name = "cut"
node = "dgx_h100"
nodes = 1
mig = "static"
mig_layout = "4g.40gb,1g.10gb,1g.10gb,1g.10gb"
[[scheduler.queue]]
name = "a"
)" + queue +
           R"(
[[jobs.kind]]
name = "small"
rate = "100 /day"
work = "5 h"
[jobs.kind.requires]
slice = "1g.10gb"
[[jobs.kind]]
name = "large"
rate = "60 /day"
work = "5 h"
[jobs.kind.requires]
slice = "4g.40gb"
)";
}
inline const std::string slices_by_queue =
    sliced_node("volcano", "[[scheduler.queue.slices]]\nslice = \"1g.10gb\"\ncapability = 6");
inline const std::string slice_quotas =
    sliced_node("kueue", "[[scheduler.queue.quota]]\nslice = \"1g.10gb\"\ngpus = 6");

inline const std::map<std::string, WorldKnob> kube_knobs = {
    {"scheduler.kubernetes.not_ready_after",
     {"backoff_limit = 9", "not_ready_after = \"30 min\"", kubernetes_scenario}},
    {"scheduler.kubernetes.evict_after",
     {"backoff_limit = 9", "evict_after = \"0 s\"", kubernetes_scenario}},
    {"scheduler.kubernetes.retry_backoff",
     {"backoff_limit = 9", "backoff_limit = 9\nretry_backoff = \"1 min\"", kubernetes_scenario}},
    {"scheduler.kubernetes.retry_backoff_max",
     {"backoff_limit = 9", "backoff_limit = 9\nretry_backoff_max = \"5 s\"", kubernetes_scenario}},
    {"scheduler.kubernetes.backoff_limit",
     {"backoff_limit = 9", "backoff_limit = 0", kubernetes_scenario}},
    {"scheduler.kubernetes.pod_interval",
     {"backoff_limit = 9", "backoff_limit = 9\npod_interval = \"0 s\"", kubernetes_scenario}},
    {"scheduler.kubernetes.scoring",
     {"backoff_limit = 9", "backoff_limit = 9\nscoring = \"most_allocated\"", kubernetes_scenario}},
    {"scheduler.volcano.period", {"period = \"1 s\"", "period = \"1 min\"", volcano_scenario}},
    {"scheduler.volcano.overcommit_percent",
     {"period = \"1 s\"", "overcommit_percent = 100", volcano_scenario}},
    {"scheduler.volcano.preempt", {"period = \"1 s\"", "preempt = false", volcano_scenario}},
    {"scheduler.volcano.reclaim", {"period = \"1 s\"", "reclaim = false", volcano_scenario}},
    {"scheduler.queue",
     {"[[scheduler.queue]]\nname = \"a\"",
      "[[scheduler.queue]]\nname = \"c\"\ncohort = \"all\"\n[[scheduler.queue.quota]]\ngpus = "
      "8\n[[scheduler.queue]]\nname = \"a\"",
      kueue_scenario}},
    {"scheduler.queue.name", {"name = \"b\"", "name = \"c\"", volcano_scenario}},
    {"scheduler.queue.weight", {"weight = 3", "weight = 1", volcano_scenario}},
    {"scheduler.queue.capability", {"weight = 3", "weight = 3\ncapability = 16", volcano_scenario}},
    {"scheduler.queue.reclaimable",
     {"name = \"b\"\n", "name = \"b\"\nreclaimable = false\n", volcano_scenario}},
    {"scheduler.queue.cohort", {"name = \"b\"\ncohort = \"all\"", "name = \"b\"", kueue_scenario}},
    {"scheduler.queue.quota", {"[[scheduler.queue.quota]]\ngpus = 32", "", kueue_scenario}},
    {"scheduler.queue.quota.group", {"group = \"new\"", "group = \"old\"", kueue_flavors}},
    {"scheduler.queue.quota.gpus", {"gpus = 32", "gpus = 16", kueue_scenario}},
    {"scheduler.queue.quota.borrowing_limit",
     {"borrowing_limit = 24", "borrowing_limit = 4", kueue_scenario}},
    {"scheduler.queue.quota.slice",
     {"slice = \"1g.10gb\"\ngpus", "slice = \"4g.40gb\"\ngpus", slice_quotas}},
    {"scheduler.queue.slices",
     {"[[scheduler.queue.slices]]\nslice = \"1g.10gb\"\ncapability = 6", "", slices_by_queue}},
    {"scheduler.queue.slices.slice",
     {"slice = \"1g.10gb\"\ncapability", "slice = \"4g.40gb\"\ncapability", slices_by_queue}},
    {"scheduler.queue.slices.capability", {"capability = 6", "capability = 9", slices_by_queue}},
    {"scheduler.kueue.wait_for_pods_ready",
     {"block_admission = false", "wait_for_pods_ready = false", kueue_scenario}},
    {"scheduler.kueue.block_admission",
     {"block_admission = false", "block_admission = true", kueue_scenario}},
    {"scheduler.kueue.ready_timeout",
     {"block_admission = false", "block_admission = false\nready_timeout = \"2 h\"",
      kueue_scenario}},
    {"scheduler.kueue.recovery_timeout",
     {"block_admission = false", "block_admission = false\nrecovery_timeout = \"1 min\"",
      kueue_scenario}},
    {"scheduler.kueue.requeue_backoff",
     {"block_admission = false", "block_admission = false\nrequeue_backoff = \"10 min\"",
      kueue_scenario}},
    {"scheduler.kueue.requeue_backoff_max",
     {"block_admission = false", "block_admission = false\nrequeue_backoff_max = \"5 s\"",
      kueue_scenario}},
    {"scheduler.kueue.reclaim_within_cohort",
     {"block_admission = false", "block_admission = false\nreclaim_within_cohort = \"never\"",
      kueue_scenario}},
    {"scheduler.kueue.within_queue",
     {"block_admission = false", "block_admission = false\nwithin_queue = \"never\"",
      kueue_scenario}},
    {"jobs.kind.queue", {"queue = \"b\"", "queue = \"a\"", kueue_scenario}},
    {"jobs.kind.min_member",
     {"gpus_per_pod = 2", "gpus_per_pod = 2\nmin_member = 1", volcano_scenario}},
    {"jobs.kind.topology",
     {"topology = \"preferred\"", "topology = \"unconstrained\"", kueue_scenario}},
    {"jobs.kind.shrink_after",
     {"length = \"5 day\"", "length = \"5 day\"\nshrink_after = \"20 min\"", shrink_scenario}},
    {"jobs.kind.topology_level",
     {"topology_level = \"leaf\"", "topology_level = \"block\"", kueue_scenario}},
};

}  // namespace railyard
