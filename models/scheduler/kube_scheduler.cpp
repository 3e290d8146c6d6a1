#include "models/scheduler/kube_scheduler.h"

#include "models/scheduler/gang_deadlock.h"

namespace railyard {

void KubeScheduler::silent(NodeIndex node) {
    fleet_.note("not_ready", no_fleet_job, node);
    fleet_.drain(node);
    if (fleet_.cluster().node(node).state != NodeState::drained) return;  // it was empty
    const Instant at = fleet_.now() + spec_.evict_after;
    evictions_[node] = at;
    fleet_.wake_at(at);
}

void KubeScheduler::node_changed(NodeIndex node) {
    if (fleet_.cluster().node(node).state != NodeState::drained) evictions_.erase(node);
}

void KubeScheduler::evict_what_is_due() {
    std::vector<NodeIndex> due;
    for (const auto& [node, at] : evictions_) {
        if (at <= fleet_.now()) due.push_back(node);
    }
    for (const NodeIndex node : due) {
        evictions_.erase(node);
        for (const JobIndex job : fleet_.cluster().jobs_on(node)) {
            const FleetPhase phase = fleet_.status(job).phase;
            if (phase == FleetPhase::completing) continue;
            if (phase == FleetPhase::running) fleet_.halt(job);
            fleet_.note("evicted", job, node);
            evicted(job, node);
        }
    }
}

std::string KubeScheduler::stuck() const {
    return describe_deadlock(fleet_, deadlocked(fleet_, pods_.holding()));
}

JobIndex first_waiting(const std::vector<WaitingQueue>& queues, std::uint32_t partition) {
    const WaitingJob* best = nullptr;
    for (const WaitingQueue& queue : queues) {
        const WaitingJob* first = queue.first(partition);
        if (first != nullptr && (best == nullptr || *first < *best)) best = first;
    }
    return best == nullptr ? no_fleet_job : best->job;
}

}  // namespace railyard
