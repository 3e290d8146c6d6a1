#pragma once
// How Kubernetes, Volcano and Kueue are set up. Defaults are their own (names in brackets).

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/units.h"

namespace railyard {

// Which of the nodes that fit a pod goes to: the emptiest, or the fullest.
enum class PodScoring : std::uint8_t { least_allocated, most_allocated };

// GPUs of one flavour, a group of nodes, that are a cluster queue's own.
struct KueueQuota {
    std::int64_t nominal = 0;
    std::optional<std::int64_t> borrowing_limit{};  // beyond it, of the cohort's; none: any number
};

// Slices of a MIG profile are a resource of their own (nvidia.com/mig-1g.10gb) beside whole GPUs.
struct SliceCapability {
    std::string slice;
    std::int64_t most = 0;
};
struct SliceQuota {
    std::string slice;
    std::vector<KueueQuota> quota{};  // by group of nodes
};

// Volcano's Queue, Kueue's ClusterQueue.
struct KubeQueue {
    std::string name;
    std::int64_t weight = 1;  // volcano: its part of each resource, in proportion to the others'
    std::int64_t capability = 0;                      // volcano: GPUs at most; 0: any number
    std::vector<SliceCapability> slice_capability{};  // volcano: likewise; of others any number
    bool reclaimable = true;           // volcano: others get back what it has beyond its part
    std::string cohort{};              // kueue: queues that lend each other; empty: none
    std::vector<KueueQuota> quota{};   // kueue: GPUs, by group of nodes
    std::vector<SliceQuota> slices{};  // kueue: likewise; without either all of everything
};

struct VolcanoSpec {
    Duration period = std::chrono::seconds(1);  // schedule-period
    std::int64_t overcommit_percent = 120;      // overcommit-factor, of the enqueue action
    bool preempt = true;                        // actions
    bool reclaim = true;
};

// Whose workloads make room.
enum class KueuePreemption : std::uint8_t { never, lower_priority, any };

struct KueueSpec {
    bool wait_for_pods_ready = true;
    bool block_admission = true;
    Duration ready_timeout = std::chrono::minutes(30);
    Duration recovery_timeout = std::chrono::minutes(30);
    Duration requeue_backoff = std::chrono::seconds(60);  // doubling
    Duration requeue_backoff_max = std::chrono::hours(1);
    KueuePreemption reclaim_within_cohort = KueuePreemption::any;
    KueuePreemption within_queue = KueuePreemption::lower_priority;
};

struct KubeSpec {
    Duration not_ready_after = std::chrono::seconds(40);  // node-monitor-grace-period
    Duration evict_after = std::chrono::seconds(300);     // tolerationSeconds of unreachable
    Duration retry_backoff = std::chrono::seconds(10);    // of a failed pod, doubling
    Duration retry_backoff_max = std::chrono::minutes(6);
    std::int64_t backoff_limit = 6;                         // failures of a job's pods
    Duration pod_interval = std::chrono::milliseconds(50);  // kube-api-qps 20
    PodScoring scoring = PodScoring::least_allocated;
    std::vector<KubeQueue> queues = {{.name = "default"}};  // at least one
    VolcanoSpec volcano{};
    KueueSpec kueue{};
};

// Where a workload's pods have to stand (Kueue's topology-aware scheduling).
enum class TopologyRequest : std::uint8_t { none, unconstrained, preferred, required };
enum class TopologyLevel : std::uint8_t { leaf, block };

struct KubeJobKind {
    std::int64_t min_member = 0;  // volcano: pods that get GPUs together or not at all; 0: all
    TopologyRequest topology = TopologyRequest::none;  // kueue
    TopologyLevel topology_level = TopologyLevel::leaf;
};

}  // namespace railyard
