#include "models/scheduler/pod_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>

namespace railyard {

std::int64_t pod_score(std::int64_t has, std::int64_t free_then, PodScoring scoring) {
    const std::int64_t thousandths = free_then * 1000 / has;
    return scoring == PodScoring::least_allocated ? thousandths : -thousandths;
}

PodRequest missing_pods(const WorldView& world, JobIndex index) {
    const WorldJob& job = world.job(index);
    const std::int64_t gpus = job.gpus - world.status(index).gpus;
    return {.pool = world.spec().pool(job),
            .size = job.gpus_per_pod,
            .pods = gpus / job.gpus_per_pod,
            .rest = gpus % job.gpus_per_pod};
}

std::int64_t pods_with(const WorldCluster& cluster, std::uint32_t pool, std::int64_t size) {
    const NodeSet& members = cluster.members(pool);
    const std::size_t device = cluster.device_of(pool);
    std::int64_t sum = 0;
    for (std::int64_t free = size; free <= cluster.device_max(device); ++free) {
        const NodeSet& nodes = cluster.with_free(free, device);
        std::int64_t count = 0;
        for (std::size_t w = 0; w < nodes.words(); ++w) {
            count += std::popcount(nodes.word(w) & members.word(w));
        }
        sum += count * (free / size);
    }
    return sum;
}

bool may_place(const WorldCluster& cluster, const PodRequest& request) {
    return cluster.free_gpus(request.pool) >= request.gpus() &&
           (request.pods == 0 || pods_with(cluster, request.pool, request.size) >= request.pods) &&
           (request.rest == 0 || cluster.nodes_with(request.pool, request.rest) > 0);
}

FreeGpus free_gpus(const WorldCluster& cluster, std::size_t device) {
    FreeGpus out(cluster.nodes().size());
    for (NodeIndex n = 0; n < out.size(); ++n) {
        out[n] = cluster.node(n).state == NodeState::up ? cluster.free(n, device) : 0;
    }
    return out;
}

FreeGpus all_gpus(const WorldCluster& cluster, std::size_t device) {
    FreeGpus out(cluster.nodes().size());
    for (NodeIndex n = 0; n < out.size(); ++n) out[n] = cluster.capacity(n, device);
    return out;
}

namespace {

// Nodes for pods of one size: the best score first, and of equal scores the node with the lowest number.
class BestNodes {
  public:
    BestNodes(std::size_t nodes, PodScoring scoring) : nodes_(nodes), scoring_(scoring) {}

    // A node with `has` GPUs, of which `free_then` are free once it holds one more pod.
    void offer(NodeIndex node, std::int64_t has, std::int64_t free_then) {
        Alike& alike = alike_of(has, free_then);
        alike.nodes.add(node);
        alike.first_word = std::min(alike.first_word, std::size_t{node / 64});
        ++alike.count;
    }
    NodeIndex take() {
        for (auto& [score, alike] : by_score_) {
            if (alike.count == 0) continue;
            while (alike.nodes.word(alike.first_word) == 0) ++alike.first_word;
            const std::size_t w = alike.first_word;
            const auto bit = static_cast<std::size_t>(std::countr_zero(alike.nodes.word(w)));
            const auto node = static_cast<NodeIndex>(w * 64 + bit);
            alike.nodes.remove(node);
            --alike.count;
            return node;
        }
        return no_node;
    }

  private:
    struct Alike {
        NodeSet nodes;
        std::size_t first_word = 0;  // none before has any
        std::int64_t count = 0;
    };
    Alike& alike_of(std::int64_t has, std::int64_t free_then) {
        if (has != has_) {
            has_ = has;
            known_.assign(static_cast<std::size_t>(has) + 1, nullptr);
        }
        Alike*& known = known_[free_then];
        if (known == nullptr) {
            const std::int64_t score = pod_score(has, free_then, scoring_);
            known = &by_score_.try_emplace(score, Alike{NodeSet(nodes_)}).first->second;
        }
        return *known;
    }

    std::size_t nodes_;
    PodScoring scoring_;
    std::map<std::int64_t, Alike, std::greater<>> by_score_;
    std::int64_t has_ = 0;         // nodes that are offered next mostly have as many
    std::vector<Alike*> known_{};  // of these, by free_then
};

}  // namespace

std::optional<Allocation> place_pods(const WorldCluster& cluster, const PodRequest& request,
                                     const FreeGpus& free, const NodeSet& allowed,
                                     PodScoring scoring) {
    Allocation out;
    FreeGpus left = free;
    const std::size_t device = cluster.device_of(request.pool);
    const auto place = [&](std::int64_t size, std::int64_t pods) {
        BestNodes nodes(left.size(), scoring);
        const auto offer = [&](NodeIndex n) {
            if (left[n] >= size) nodes.offer(n, cluster.capacity(n, device), left[n] - size);
        };
        for (std::size_t w = 0; w < allowed.words() && pods > 0; ++w) {
            for (std::uint64_t word = allowed.word(w); word != 0; word &= word - 1) {
                const auto bit = static_cast<std::size_t>(std::countr_zero(word));
                const auto n = static_cast<NodeIndex>(w * 64 + bit);
                const bool flavored =
                    request.flavor == any_flavor || cluster.node(n).group == request.flavor;
                if (flavored) offer(n);
            }
        }
        for (; pods > 0; --pods) {
            const NodeIndex node = nodes.take();
            if (node == no_node) return false;
            left[node] -= size;
            out.push_back(NodeShare{node, size});
            offer(node);
        }
        return true;
    };
    if (!place(request.size, request.pods)) return std::nullopt;
    if (request.rest > 0 && !place(request.rest, 1)) return std::nullopt;
    return out;
}

namespace {

std::optional<std::string> never_on_nodes(const WorldView& world, JobIndex index, bool apart) {
    const WorldJob& job = world.job(index);
    const WorldCluster& cluster = world.cluster();
    const std::string& partition = world.spec().partitions[job.partition].name;
    const std::uint32_t pool = world.spec().pool(job);
    if (auto why = world.spec().why_empty(pool)) return why;
    const std::size_t device = cluster.device_of(pool);
    if (device != 0 && job.gpus > 1) return fmt::format("wants {} slices; a job has one", job.gpus);
    const NodeSet& members = cluster.members(pool);
    const FreeGpus empty = all_gpus(cluster, device);
    std::int64_t largest = 0;
    std::int64_t nodes = 0;  // that hold a pod
    for (NodeIndex n = 0; n < empty.size(); ++n) {
        if (!members.has(n)) continue;
        largest = std::max(largest, empty[n]);
        nodes += empty[n] >= job.gpus_per_pod ? 1 : 0;
    }
    if (nodes == 0) {
        return fmt::format("wants {} GPUs on a node; the nodes of partition {} have {}",
                           job.gpus_per_pod, partition, largest);
    }
    if (apart && job.pods() > nodes) {
        return fmt::format("wants {} GPUs on {} nodes; partition {} has {} such nodes", job.gpus,
                           job.pods(), partition, nodes);
    }
    const PodRequest all{.pool = pool,
                         .size = job.gpus_per_pod,
                         .pods = job.gpus / job.gpus_per_pod,
                         .rest = job.gpus % job.gpus_per_pod};
    if (apart || place_pods(cluster, all, empty, members, PodScoring::most_allocated)) return {};
    return fmt::format(
        "wants {} GPUs in pods of {}; partition {} has no room for them even when empty", job.gpus,
        job.gpus_per_pod, partition);
}

}  // namespace

std::optional<std::string> never_fits(const WorldView& world, JobIndex index,
                                      FittingShapes& fitting, bool apart) {
    const WorldJob& job = world.job(index);
    const PodShape shape{world.spec().pool(job), job.gpus, job.gpus_per_pod};
    if (!fitting.contains(shape)) {
        if (auto why = never_on_nodes(world, index, apart)) return why;
        fitting.insert(shape);
    }
    const PartitionSpec& partition = world.spec().partitions[job.partition];
    if (partition.gpus_max > 0 && job.gpus > partition.gpus_max) {
        return fmt::format("wants {} GPUs; a job of partition {} gets {} at most", job.gpus,
                           partition.name, partition.gpus_max);
    }
    if (partition.limit_max > Duration{} && job.limit > partition.limit_max) {
        return fmt::format("wants {}; a job of partition {} gets {} at most", to_text(job.limit),
                           partition.name, to_text(partition.limit_max));
    }
    return std::nullopt;
}

}  // namespace railyard
