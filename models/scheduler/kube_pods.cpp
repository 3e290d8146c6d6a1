#include "models/scheduler/kube_pods.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "sim/check.h"

namespace railyard {

Instant KubePods::next_at(const Batch& batch) const {
    return batch.from + spec_.pod_interval * batch.bound;
}

KubePods::Batch& KubePods::next_batch(Gang& gang) const {
    return *std::ranges::min_element(
        gang.batches, [this](const Batch& a, const Batch& b) { return next_at(a) < next_at(b); });
}

KubePods::PodClass KubePods::class_of(JobIndex job) const {
    const PodRequest missing = missing_pods(world_, job);
    return {missing.pool, gangs_[job].flavor, missing.pods > 0 ? missing.size : missing.rest};
}

KubePods::Entry KubePods::entry(JobIndex job) {
    const Batch& batch = next_batch(gangs_[job]);
    return {world_.priority(job), next_at(batch), batch.bound, job};
}

void KubePods::create(JobIndex job, Instant from) {
    if (gangs_.size() <= job) gangs_.resize(job + std::size_t{1});
    unlist(job);
    const PodRequest missing = missing_pods(world_, job);
    Gang& gang = gangs_[job];
    const std::int64_t more = missing.pods + (missing.rest > 0 ? 1 : 0) - gang.waiting;
    RY_CHECK(more >= 0);
    if (more > 0) gang.batches.push_back({from, 0, more});
    gang.waiting += more;
    list_next(job);
}

void KubePods::remove(JobIndex job) {
    if (gangs_.size() <= job) return;
    unlist(job);
    gangs_[job].batches.clear();
    gangs_[job].waiting = 0;
}

void KubePods::set_flavor(JobIndex job, std::uint32_t flavor) {
    if (gangs_.size() <= job) gangs_.resize(job + std::size_t{1});
    gangs_[job].flavor = flavor;
}

// Its next pod waits in the queue, or for the instant at which it will be made.
void KubePods::list_next(JobIndex job) {
    if (gangs_[job].waiting == 0) return;
    gangs_[job].listed = true;
    if (!world_.status(job).held.empty()) holding_.insert(job);
    const Entry next = entry(job);
    if (next.since > world_.now()) {
        later_.emplace(next.since, job);
        world_.wake_at(next.since);
    } else {
        queues_[class_of(job)].insert(next);
    }
}

void KubePods::unlist(JobIndex job) {
    if (!std::exchange(gangs_[job].listed, false)) return;
    holding_.erase(job);
    const Entry next = entry(job);
    if (later_.erase({next.since, job}) > 0) return;
    for (auto& [pod, queue] : queues_) {  // its class follows from what it held when it was listed
        if (queue.erase(next) > 0) return;
    }
    RY_UNREACHABLE("a job whose pods wait");
}

NodeIndex KubePods::best_node(const PodClass& pod) const {
    const WorldCluster& cluster = world_.cluster();
    const NodeSet& members = cluster.members(pod.pool);
    const std::size_t device = cluster.device_of(pod.pool);
    const bool alike = world_.spec().groups.size() == 1;
    NodeIndex best = no_node;
    std::int64_t best_score = 0;
    for (std::int64_t free = pod.size; free <= cluster.device_max(device); ++free) {
        const NodeSet& nodes = cluster.with_free(free, device);
        bool enough = false;
        for (std::size_t w = 0; w < nodes.words() && !enough; ++w) {
            std::uint64_t word = nodes.word(w) & members.word(w);
            for (; word != 0 && !enough; word &= word - 1) {
                const auto bit = static_cast<std::size_t>(std::countr_zero(word));
                const auto node = static_cast<NodeIndex>(w * 64 + bit);
                if (pod.flavor != any_flavor && cluster.node(node).group != pod.flavor) continue;
                enough = alike;  // all others with as many free GPUs score likewise
                const std::int64_t s =
                    pod_score(cluster.capacity(node, device), free - pod.size, spec_.scoring);
                if (best != no_node && (s < best_score || (s == best_score && node > best)))
                    continue;
                best = node;
                best_score = s;
            }
        }
    }
    return best;
}

void KubePods::list_those_made() {
    while (!later_.empty() && later_.begin()->first <= world_.now()) {
        const JobIndex job = later_.begin()->second;
        later_.erase(later_.begin());
        list_next(job);
    }
}

const std::pair<const KubePods::PodClass, std::set<KubePods::Entry>>* KubePods::next_queue(
    const std::set<PodClass>& full) const {
    const std::pair<const PodClass, std::set<Entry>>* next = nullptr;
    for (const auto& queue : queues_) {
        if (queue.second.empty() || full.count(queue.first) > 0) continue;
        if (next == nullptr || *queue.second.begin() < *next->second.begin()) next = &queue;
    }
    return next;
}

bool KubePods::bind() {
    list_those_made();
    bool any = false;
    std::set<PodClass> full;
    std::vector<JobIndex> held_back;
    while (const auto* next = next_queue(full)) {
        const PodClass pod = next->first;
        const JobIndex job = next->second.begin()->job;
        if (!world_.power_for(job)) {
            unlist(job);
            held_back.push_back(job);
            continue;
        }
        const NodeIndex node = best_node(pod);
        if (node == no_node) {
            full.insert(pod);
            continue;
        }
        any = true;
        bind_next(job, node, pod.size);
    }
    for (const JobIndex job : held_back) list_next(job);
    return any;
}

void KubePods::bind_next(JobIndex job, NodeIndex node, std::int64_t gpus) {
    unlist(job);
    Gang& gang = gangs_[job];
    Batch& batch = next_batch(gang);
    if (++batch.bound == batch.pods) {
        gang.batches.erase(gang.batches.begin() + (&batch - gang.batches.data()));
    }
    --gang.waiting;
    world_.bind(job, Allocation(NodeShare{node, gpus}));
    list_next(job);
}

JobIndex KubePods::first(std::uint32_t partition) const {
    const Entry* best = nullptr;
    for (const auto& [pod, queue] : queues_) {
        if (world_.spec().partition_of_pool(pod.pool) != partition || queue.empty()) continue;
        if (best == nullptr || *queue.begin() < *best) best = &*queue.begin();
    }
    return best == nullptr ? no_world_job : best->job;
}

}  // namespace railyard
