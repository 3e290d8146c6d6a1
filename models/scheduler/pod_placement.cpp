#include "models/scheduler/pod_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <tuple>

namespace railyard {

std::int64_t pod_score(std::int64_t has, std::int64_t free_then, PodScoring scoring) {
    const std::int64_t thousandths = free_then * 1000 / has;
    return scoring == PodScoring::least_allocated ? thousandths : -thousandths;
}

PodRequest missing_pods(const Fleet& fleet, JobIndex index) {
    const FleetJob& job = fleet.job(index);
    const std::int64_t gpus = job.gpus - fleet.status(index).gpus;
    return {.pool = fleet.spec().pool(job),
            .size = job.gpus_per_pod,
            .pods = gpus / job.gpus_per_pod,
            .rest = gpus % job.gpus_per_pod};
}

FreeGpus free_gpus(const FleetCluster& cluster, std::size_t device) {
    FreeGpus out;
    for (NodeIndex n = 0; n < cluster.nodes().size(); ++n) {
        out.push_back(cluster.node(n).state == NodeState::up ? cluster.free(n, device) : 0);
    }
    return out;
}

FreeGpus all_gpus(const FleetCluster& cluster, std::size_t device) {
    FreeGpus out;
    for (NodeIndex n = 0; n < cluster.nodes().size(); ++n) {
        out.push_back(cluster.capacity(n, device));
    }
    return out;
}

std::optional<Allocation> place_pods(const FleetCluster& cluster, const PodRequest& request,
                                     const FreeGpus& free, const NodeSet& allowed,
                                     PodScoring scoring) {
    struct Candidate {
        std::int64_t score = 0;
        NodeIndex node = no_node;
        bool operator<(const Candidate& other) const {
            return std::tuple(score, -std::int64_t{node}) <
                   std::tuple(other.score, -std::int64_t{other.node});
        }
    };
    Allocation out;
    FreeGpus left = free;
    const std::size_t device = cluster.device_of(request.pool);
    const auto place = [&](std::int64_t size, std::int64_t pods) {
        std::priority_queue<Candidate> candidates;
        const auto offer = [&](NodeIndex n) {
            if (left[n] < size) return;
            candidates.push({pod_score(cluster.capacity(n, device), left[n] - size, scoring), n});
        };
        for (NodeIndex n = 0; n < left.size() && pods > 0; ++n) {
            const bool flavored =
                request.flavor == any_flavor || cluster.node(n).group == request.flavor;
            if (flavored && allowed.has(n)) offer(n);
        }
        for (; pods > 0 && !candidates.empty(); --pods) {
            const NodeIndex node = candidates.top().node;
            candidates.pop();
            left[node] -= size;
            out.push_back({node, size});
            offer(node);
        }
        return pods == 0;
    };
    if (!place(request.size, request.pods)) return std::nullopt;
    if (request.rest > 0 && !place(request.rest, 1)) return std::nullopt;
    return out;
}

std::optional<std::string> never_fits(const Fleet& fleet, JobIndex index) {
    const FleetJob& job = fleet.job(index);
    const FleetCluster& cluster = fleet.cluster();
    const PartitionSpec& partition = fleet.spec().partitions[job.partition];
    const std::uint32_t pool = fleet.spec().pool(job);
    if (auto why = fleet.spec().why_empty(pool)) return why;
    if (cluster.device_of(pool) != 0) {
        if (job.gpus == 1) return std::nullopt;
        return fmt::format("wants {} slices; a job has one", job.gpus);
    }
    const NodeSet& members = cluster.members(pool);
    const FreeGpus empty = all_gpus(cluster);
    std::int64_t largest = 0;
    for (NodeIndex n = 0; n < empty.size(); ++n) {
        if (members.has(n)) largest = std::max(largest, empty[n]);
    }
    if (job.gpus_per_pod > largest) {
        return fmt::format("wants {} GPUs on a node; the nodes of partition {} have {}",
                           job.gpus_per_pod, partition.name, largest);
    }
    const PodRequest all{.pool = pool,
                         .size = job.gpus_per_pod,
                         .pods = job.gpus / job.gpus_per_pod,
                         .rest = job.gpus % job.gpus_per_pod};
    if (!place_pods(cluster, all, empty, members, PodScoring::most_allocated)) {
        return fmt::format(
            "wants {} GPUs in pods of {}; partition {} has no room for them even when empty",
            job.gpus, job.gpus_per_pod, partition.name);
    }
    if (partition.limit_max > Duration{} && job.limit > partition.limit_max) {
        return fmt::format("wants {}; a job of partition {} gets {} at most", to_text(job.limit),
                           partition.name, to_text(partition.limit_max));
    }
    if (partition.gpus_max > 0 && job.gpus > partition.gpus_max) {
        return fmt::format("wants {} GPUs; a job of partition {} gets {} at most", job.gpus,
                           partition.name, partition.gpus_max);
    }
    return std::nullopt;
}

}  // namespace railyard
