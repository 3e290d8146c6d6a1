// Reads what Kubernetes, Volcano and Kueue take.

#include <fmt/format.h>

#include <set>

#include "models/scheduler/reader_names.h"
#include "models/scheduler/scheduler_reader.h"

namespace railyard {

namespace {

void read_kubernetes(Section& scheduler, const WorldSpec& spec, KubeSpec& kube) {
    Section section = scheduler.section("kubernetes");
    section.read("not_ready_after", kube.not_ready_after,
                 "How long a node may be silent until it is NotReady (node-monitor-grace-period)",
                 {Bound::positive});
    section.read("evict_after", kube.evict_after,
                 "From then until its pods are evicted (tolerationSeconds of unreachable)",
                 {Bound::non_negative});
    section.no_effect(unless_under({"kubernetes", "kueue"}, spec));  // who retries single pods
    section.read("retry_backoff", kube.retry_backoff,
                 "From a pod's first failure to the pod that takes its place; doubles each time",
                 {Bound::non_negative});
    section.read("retry_backoff_max", kube.retry_backoff_max, "At most", {Bound::non_negative});
    section.read("backoff_limit", kube.backoff_limit,
                 "Failures of a job's pods that it outlives (backoffLimit)", {Bound::non_negative});
    section.read("pod_interval", kube.pod_interval,
                 "From one pod of a job to the next, as they are made (kube-api-qps 20)",
                 {Bound::non_negative});
    section.no_effect("");
    section.choose("scoring", kube.scoring, {"least_allocated", "most_allocated"},
                   "Pods go to the emptiest node, or to the fullest that has room");
    section.finish();
}

void read_volcano(Section& scheduler, VolcanoSpec& volcano) {
    Section section = scheduler.section("volcano");
    section.read("period", volcano.period, "From one look at the queues to the next",
                 {Bound::positive});
    section.read("overcommit_percent", volcano.overcommit_percent,
                 "How much is let in, running or not, of what there is (overcommit-factor)",
                 {Bound::count});
    section.read("preempt", volcano.preempt,
                 "Jobs of lower priority make room in their queue (an action that Volcano as it is "
                 "installed does not take)");
    section.read("reclaim", volcano.reclaim,
                 "Queues that have more than they deserve give it back (likewise)");
    section.finish();
}

void read_kueue(Section& scheduler, KueueSpec& kueue) {
    Section section = scheduler.section("kueue");
    section.read("wait_for_pods_ready", kueue.wait_for_pods_ready,
                 "A workload whose pods don't all run in time is evicted (waitForPodsReady: off in "
                 "Kueue as it is installed)");
    section.read("block_admission", kueue.block_admission,
                 "Nobody is admitted while pods of one that is admitted do not run");
    section.read("ready_timeout", kueue.ready_timeout, "From its admission (timeout)",
                 {Bound::positive});
    section.read("recovery_timeout", kueue.recovery_timeout, "From the loss of a pod",
                 {Bound::positive});
    section.read("requeue_backoff", kueue.requeue_backoff,
                 "From its eviction until it waits again; doubles each time",
                 {Bound::non_negative});
    section.read("requeue_backoff_max", kueue.requeue_backoff_max, "At most",
                 {Bound::non_negative});
    section.choose("reclaim_within_cohort", kueue.reclaim_within_cohort,
                   {"never", "lower_priority", "any"},
                   "Which workloads that have borrowed are evicted when the owner needs its quota "
                   "(Kueue's own default is never)");
    section.choose("within_queue", kueue.within_queue, {"never", "lower_priority"},
                   "Which workloads of the same queue make room (Kueue's own default is never)");
    section.finish();
    if (kueue.wait_for_pods_ready) return;
    warn_of_keys(section, {"block_admission", "ready_timeout", "recovery_timeout"},
                 "has no effect without wait_for_pods_ready");
}

// The resource that a queue has a part of: whole GPUs, unless it names a slice.
std::string read_slice(Section& section, const WorldSpec& spec, bool required) {
    std::string slice;
    section.name("slice", slice, own_names(section, slices_of(spec)),
                 "a slice of the cluster's GPUs",
                 "MIG profile whose slices it is about: they are a resource of their own",
                 required ? KeyRules{.required = true} : KeyRules{.otherwise = "whole GPUs"});
    return slice;
}

std::vector<KueueQuota>& quota_of(KubeQueue& queue, const std::string& slice) {
    if (slice.empty()) return queue.quota;
    for (SliceQuota& of : queue.slices) {
        if (of.slice == slice) return of.quota;
    }
    return queue.slices.emplace_back(SliceQuota{slice}).quota;
}

void read_quota(Section& section, const WorldSpec& spec, KubeQueue& queue) {
    const std::vector<std::string> groups = names_of(spec.groups);
    std::set<std::pair<std::uint32_t, std::string>> given;
    for (Section& one : section.sections(
             "quota", "Kueue: GPUs, or slices, of a group of nodes that are its own")) {
        std::string group = groups[0];
        one.name("group", group, own_names(one, groups), "a [[node_group]]",
                 "Which nodes (flavour)", {.otherwise = "the first"});
        KueueQuota quota;
        const std::string slice = read_slice(one, spec, false);
        one.read("gpus", quota.nominal, "How many, of these or of those (nominalQuota)",
                 {.bound = Bound::non_negative, .required = true});
        one.read("borrowing_limit", quota.borrowing_limit,
                 "How many more it may have of its cohort's",
                 {Bound::non_negative, "as many as the others leave"});
        one.finish();
        if (quota.borrowing_limit && queue.cohort.empty() && spec.scheduler == "kueue") {
            one.error("borrowing_limit", "the queue has no cohort to borrow from");
        }
        const std::uint32_t index = index_of(groups, group);
        if (!given.insert({index, slice}).second) {
            one.error("group", fmt::format("the queue has a quota of '{}'{} already", group,
                                           slice.empty() ? "" : " in slices " + slice));
        }
        std::vector<KueueQuota>& by_group = quota_of(queue, slice);
        by_group.resize(groups.size());
        by_group[index] = quota;
    }
}

void read_slice_capability(Section& section, const WorldSpec& spec, KubeQueue& queue) {
    for (Section& one :
         section.sections("slices", "Volcano: slices of a profile that all its jobs get at most")) {
        SliceCapability slices{.slice = read_slice(one, spec, true)};
        one.read("capability", slices.most, "How many",
                 {.bound = Bound::positive, .required = true});
        one.finish();
        for (const SliceCapability& other : queue.slice_capability) {
            if (other.slice != slices.slice) continue;
            one.error("slice",
                      fmt::format("the queue has a capability of '{}' already", other.slice));
        }
        queue.slice_capability.push_back(slices);
    }
}

KubeQueue read_queue(Section& section, const WorldSpec& spec) {
    KubeQueue queue;
    section.read("name", queue.name, "What it is called", {.required = true});
    section.no_effect(unless_under({"volcano"}, spec));
    section.read("weight", queue.weight,
                 "Volcano: its part of the cluster, in proportion to the others'",
                 {Bound::non_negative});
    section.read("capability", queue.capability, "Volcano: GPUs of all its jobs at most",
                 {Bound::positive, "any number"});
    section.read("reclaimable", queue.reclaimable,
                 "Volcano: others take back what it has beyond its part");
    section.no_effect(unless_under({"kueue"}, spec));
    section.read("cohort", queue.cohort, "Kueue: queues that lend each other what they leave",
                 {.otherwise = "none"});
    section.no_effect(unless_under({"volcano"}, spec));
    read_slice_capability(section, spec, queue);
    section.no_effect(unless_under({"kueue"}, spec));
    read_quota(section, spec, queue);
    section.finish();
    constexpr std::int64_t weight_max = 1'000'000;
    if (queue.weight > weight_max) {
        section.error("weight",
                      fmt::format("expected at most {}, found {}", weight_max, queue.weight));
        queue.weight = weight_max;
    }
    return queue;
}

// Nobody lends to a queue that is alone in its cohort.
void check_cohorts(std::vector<Section>& sections, const std::vector<KubeQueue>& queues) {
    for (std::size_t q = 0; q < queues.size(); ++q) {
        std::vector<std::string> others;
        bool alone = !queues[q].cohort.empty();
        for (std::size_t other = 0; other < queues.size(); ++other) {
            if (other == q) continue;
            if (!queues[other].cohort.empty()) others.push_back(queues[other].cohort);
            if (queues[other].cohort == queues[q].cohort) alone = false;
        }
        if (!alone) continue;
        sections[q].error("cohort",
                          fmt::format("no other queue is in the cohort '{}'", queues[q].cohort),
                          suggest(queues[q].cohort, others));
    }
}

}  // namespace

void read_kube_scheduler(Section& scheduler, WorldSpec& spec) {
    scheduler.no_effect(unless_under({"kubernetes", "volcano", "kueue"}, spec));
    read_kubernetes(scheduler, spec, spec.kube);
    scheduler.no_effect(unless_under({"volcano"}, spec));
    read_volcano(scheduler, spec.kube.volcano);
    scheduler.no_effect(unless_under({"kueue"}, spec));
    read_kueue(scheduler, spec.kube.kueue);
    std::int64_t weights = 0;
    std::vector<KubeQueue> queues;
    scheduler.no_effect(unless_under({"volcano", "kueue"}, spec));
    std::vector<Section> sections =
        scheduler.sections("queue", "Volcano's queue, Kueue's cluster queue");
    scheduler.no_effect("");
    for (Section& section : sections) {
        const std::vector<std::string> before = names_of(queues);
        queues.push_back(read_queue(section, spec));
        refuse_same_name(section, queues.back().name, before, "queue");
        weights += queues.back().weight;
    }
    if (queues.empty() || scheduler.describing()) return;
    spec.kube.queues = queues;
    check_cohorts(sections, queues);
    if (weights == 0) {
        scheduler.error("queue", "the weights of all queues sum to zero: nobody has any part");
    }
}

void read_kube_jobs(Section& section, const WorldSpec& spec, WorldJobKind& kind,
                    JobSource& source) {
    const std::vector<std::string> queues = names_of(spec.kube.queues);
    std::string queue = queues[0];
    section.no_effect(unless_under({"volcano", "kueue"}, spec));
    section.name("queue", queue, own_names(section, queues), "a [[scheduler.queue]]",
                 "Where they wait under Volcano and Kueue", {.otherwise = "the first"});
    source.like.queue = index_of(queues, queue);
    KubeJobKind& kube = kind.kube;
    section.no_effect(unless_under({"volcano"}, spec));
    section.read("min_member", kube.min_member,
                 "Volcano: pods that get their GPUs together or not at all (minMember)",
                 {Bound::positive, "all of them"});
    section.no_effect(unless_under({"kueue"}, spec));
    section.choose("topology", kube.topology, {"none", "unconstrained", "preferred", "required"},
                   "Kueue: whether the pods are to be in one domain of topology_level");
    section.choose("topology_level", kube.topology_level, {"leaf", "block"},
                   "Kueue: the domain meant");
    const std::string unused = unless_under({"kubernetes", "kueue"}, spec);
    section.no_effect(unused);
    section.read("shrink_after", kind.shrink_after,
                 "With recovery.policy = \"shrink\": how long it waits for another node before it "
                 "goes on without one (torchrun's last_call_timeout)",
                 {Bound::non_negative});
    section.no_effect("");
    if (unused.empty() && kind.smaller.empty()) {
        warn_of_keys(section, {"shrink_after"},
                     "has no effect without recovery.policy = \"shrink\"");
    }
    if (kube.topology == TopologyRequest::none) {
        warn_of_keys(section, {"topology_level"}, "has no effect without topology");
    }
    std::int64_t size = source.like.gpus_per_pod;
    if (size == 0) size = spec.gpus_of_pool_node(spec.pool(source.like.partition, kind.request));
    for (const JobSource::Size& job : source.sizes) {
        const std::int64_t pods = (job.gpus + size - 1) / size;
        if (kube.min_member <= pods) continue;
        section.error("min_member",
                      fmt::format("a job of {} GPUs in pods of {} has {} pods, found {}", job.gpus,
                                  size, pods, kube.min_member));
        break;
    }
}

}  // namespace railyard
