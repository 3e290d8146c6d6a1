#pragma once
// Nodes for pods: what a job lacks, what is free, what fits.

#include <set>

#include "models/scheduler/world_scheduler.h"

namespace railyard {

constexpr std::uint32_t any_flavor = std::numeric_limits<std::uint32_t>::max();

// Pods of one job that want GPUs: so many of `size`, then, if `rest` is not 0, one of that.
struct PodRequest {
    std::uint32_t pool = 0;
    std::uint32_t flavor = any_flavor;  // a group of nodes
    std::int64_t size = 1;
    std::int64_t pods = 0;
    std::int64_t rest = 0;

    std::int64_t gpus() const { return size * pods + rest; }
};

// How many pods of a size there is room for on a pool's nodes.
std::int64_t pods_with(const WorldCluster& cluster, std::uint32_t pool, std::int64_t size);
// False if a pool's nodes have too few free, wherever they are. True promises nothing where pods differ.
bool may_place(const WorldCluster& cluster, const PodRequest& request);

// Those of a job that it does not hold.
PodRequest missing_pods(const WorldView& world, JobIndex job);

// GPUs of one device of the cluster, by node. Nodes that are not up have none.
using FreeGpus = std::vector<std::int64_t>;
FreeGpus free_gpus(const WorldCluster& cluster, std::size_t device = 0);
FreeGpus all_gpus(const WorldCluster& cluster, std::size_t device = 0);

// kube-scheduler's NodeResourcesFit, in thousandths of what the node has: what will be free, or will not.
std::int64_t pod_score(std::int64_t has, std::int64_t free_then, PodScoring scoring);

// All of them on nodes that are allowed, or nothing; `free` is of their pool's device. Pods may share a node.
// Where nodes score alike, the first.
std::optional<Allocation> place_pods(const WorldCluster& cluster, const PodRequest& request,
                                     const FreeGpus& free, const NodeSet& allowed,
                                     PodScoring scoring);

// What jobs ask for, and is known to fit into the empty nodes of its pool.
struct PodShape {
    std::uint32_t pool = 0;
    std::int64_t gpus = 0;
    std::int64_t gpus_per_pod = 0;
    auto operator<=>(const PodShape&) const = default;
};
using FittingShapes = std::set<PodShape>;

// Why a job would not even fit into its partition's empty nodes, or is beyond what the partition allows. Adds
// to the shapes that fit. `apart`: each of its pods is on a node of its own.
std::optional<std::string> never_fits(const WorldView& world, JobIndex job, FittingShapes& fitting,
                                      bool apart = false);

}  // namespace railyard
