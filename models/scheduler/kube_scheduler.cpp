#include "models/scheduler/kube_scheduler.h"

#include "models/scheduler/gang_deadlock.h"

namespace railyard {

void KubeScheduler::silent(NodeIndex node) {
    world_.note("not_ready", no_world_job, node);
    world_.drain(node);
    if (world_.cluster().node(node).state != NodeState::drained) return;  // it was empty
    const Instant at = world_.now() + spec_.evict_after;
    evictions_[node] = at;
    world_.wake_at(at);
}

void KubeScheduler::node_changed(NodeIndex node) {
    if (world_.cluster().node(node).state != NodeState::drained) evictions_.erase(node);
}

void KubeScheduler::evict_what_is_due() {
    std::vector<NodeIndex> due;
    for (const auto& [node, at] : evictions_) {
        if (at <= world_.now()) due.push_back(node);
    }
    for (const NodeIndex node : due) {
        evictions_.erase(node);
        for (const JobIndex job : world_.cluster().jobs_on(node)) {
            const WorldPhase phase = world_.status(job).phase;
            if (phase == WorldPhase::completing) continue;
            if (world_.runs_on(job, node)) world_.halt(job);
            world_.note("evicted", job, node);
            evicted(job, node);
        }
    }
}

std::string KubeScheduler::stuck() const {
    return describe_deadlock(world_, deadlocked(world_, pods_.holding()));
}

}  // namespace railyard
