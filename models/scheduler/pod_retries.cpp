#include "models/scheduler/pod_retries.h"

#include <algorithm>

namespace railyard {

void PodRetries::failed(JobIndex job, NodeIndex node) {
    const WorldJobStatus& status = world_.status(job);
    if (evicted_.erase(job) > 0) {
        if (status.gpus == world_.job(job).gpus) world_.bind(job, {});  // it has been made anew
    } else if (node == no_node) {
        lose(job, status.held.front().node);
    } else {
        lose_with_others(job, node);
    }
}

void PodRetries::prolog_failed(JobIndex job, NodeIndex node) {
    world_.halt(job);
    lose_with_others(job, node);
}

// The pods on broken nodes fail together. Nobody hears of one whose host is gone until it is evicted.
void PodRetries::lose_with_others(JobIndex job, NodeIndex node) {
    std::vector<NodeIndex> nodes = world_.failed_nodes(job);
    const bool listed = std::ranges::find(nodes, node) != nodes.end();
    if (!listed && world_.answers(node)) nodes.insert(nodes.begin(), node);
    for (const NodeIndex each : nodes) {
        const WorldPhase phase = world_.status(job).phase;
        const bool gathers = phase == WorldPhase::gathering;
        if (gathers || (phase == WorldPhase::running && !world_.runs_on(job, each)))
            lose(job, each);
    }
}

void PodRetries::evicted(JobIndex job, NodeIndex node) {
    if (world_.status(job).phase == WorldPhase::stalled) evicted_.insert(job);
    lose(job, node);
}

void PodRetries::released(JobIndex job) {
    evicted_.erase(job);
    if (job < failures_.size()) failures_[job] = {};
}

void PodRetries::lose(JobIndex job, NodeIndex node) {
    const KubeSpec& spec = world_.spec().kube;
    const WorldJobKind& kind = world_.spec().kinds[world_.job(job).kind];
    if (failures_.size() <= job) failures_.resize(job + std::size_t{1});
    world_.unbind(job, node);
    if (world_.status(job).held.empty()) evicted_.erase(job);  // there are no others
    Failures& so_far = failures_[job];
    if (so_far.count == 0 || so_far.last != world_.now()) ++so_far.count;
    so_far.last = world_.now();
    const std::int64_t failures = so_far.count;
    if (!kind.requeue || failures > std::min(spec.backoff_limit, kind.restarts_max)) {
        world_.end(job, JobEnd::failed);
        return;
    }
    Duration wait = spec.retry_backoff;
    for (std::int64_t i = 1; i < failures && wait < spec.retry_backoff_max; ++i) wait *= 2;
    world_.note("pod_failed", job, node);
    pods_.create(job, world_.now() + std::min(wait, spec.retry_backoff_max));
}

}  // namespace railyard
