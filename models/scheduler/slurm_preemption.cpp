#include "models/scheduler/slurm_preemption.h"

#include <tuple>

namespace railyard {

namespace {

// What would be free for a job's pods on the nodes that it may have, if some that run were gone.
class Room {
  public:
    Room(const WorldView& world, const WorldJob& job, const NodeSet& allowed,
         const SlurmPreemption::Suits& suits)
        : suits_(suits), pod_(job.gpus_per_pod), full_(job.gpus / pod_), rest_(job.gpus % pod_) {
        const WorldCluster& cluster = world.cluster();
        const std::size_t device = cluster.device_of(world.spec().pool(job));
        for (NodeIndex node = 0; node < cluster.nodes().size(); ++node) {
            const bool open = cluster.node(node).state == NodeState::up && allowed.has(node);
            free_.push_back(open ? cluster.free(node, device) : closed);
            count(node, 1);
        }
    }
    void shift(const Allocation& held, std::int64_t sign) {
        for (const NodeShare& share : held) {
            if (free_[share.node] == closed) continue;
            count(share.node, -1);
            free_[share.node] += sign * share.gpus;
            count(share.node, 1);
        }
    }
    bool enough() const {
        if (pods_ < full_ || (rest_ > 0 && pods_or_rest_ <= full_)) return false;
        return !suits_ || suits_(with(pod_), with(std::max<std::int64_t>(rest_, 1)));
    }

  private:
    static constexpr std::int64_t closed = -1;
    NodeSet with(std::int64_t gpus) const {
        NodeSet out(free_.size());
        for (std::size_t node = 0; node < free_.size(); ++node) {
            if (free_[node] >= gpus) out.add(static_cast<NodeIndex>(node));
        }
        return out;
    }
    void count(NodeIndex node, std::int64_t sign) {
        pods_ += free_[node] >= pod_ ? sign : 0;
        pods_or_rest_ += rest_ > 0 && free_[node] >= rest_ ? sign : 0;
    }

    const SlurmPreemption::Suits& suits_;
    std::int64_t pod_, full_, rest_;  // GPUs of a pod, full pods, GPUs of the last one
    std::vector<std::int64_t> free_;  // by node
    std::int64_t pods_ = 0;           // nodes with room for a full one
    std::int64_t pods_or_rest_ = 0;
};

}  // namespace

const SlurmQos& SlurmPreemption::qos(JobIndex job) const {
    return world_.spec().slurm.qos[world_.job(job).qos];
}

void SlurmPreemption::left(JobIndex job) {
    const auto leaving = leaving_.find(job);
    if (leaving != leaving_.end()) {
        if (leaving->second.at == Instant::max()) made_way_[job] = leaving->second.for_whom;
        leaving_.erase(leaving);
    }
    std::vector<JobIndex>& running = running_[world_.job(job).qos];
    const auto found = std::ranges::find(running, job);
    if (found == running.end()) return;  // it never started
    *found = running.back();
    running.pop_back();
}

bool SlurmPreemption::may_be_displaced(JobIndex victim) const {
    return world_.status(victim).phase == WorldPhase::running && !displacing(victim) &&
           world_.now() - world_.status(victim).started >= qos(victim).exempt;
}

std::vector<JobIndex> SlurmPreemption::victims(JobIndex index, const NodeSet& allowed,
                                               const Suits& suits) const {
    const WorldJob& job = world_.job(index);
    std::vector<JobIndex> candidates;
    std::int64_t gpus = world_.cluster().free_gpus(world_.spec().pool(job));
    for (const std::uint32_t theirs : qos(index).preempts) {
        if (world_.spec().slurm.qos[theirs].mode == PreemptMode::off) continue;
        for (const JobIndex victim : running_[theirs]) {
            if (!may_be_displaced(victim) || world_.device_of(victim) != world_.device_of(index))
                continue;
            candidates.push_back(victim);
            gpus += world_.job(victim).gpus;
        }
    }
    if (candidates.empty() || gpus < job.gpus) return {};
    std::ranges::sort(candidates, [&](JobIndex a, JobIndex b) {
        return std::tuple(qos(a).priority, world_.status(b).started, b) <
               std::tuple(qos(b).priority, world_.status(a).started, a);
    });
    Room room(world_, job, allowed, suits);
    std::vector<JobIndex> out;
    for (const JobIndex victim : candidates) {
        room.shift(world_.status(victim).held, 1);
        out.push_back(victim);
        if (!room.enough()) continue;
        // Those that turn out not to be needed stay, the last one chosen for certain is.
        for (std::size_t i = 0; i + 1 < out.size();) {
            room.shift(world_.status(out[i]).held, -1);
            if (room.enough()) {
                out.erase(out.begin() + i);
            } else {
                room.shift(world_.status(out[i]).held, 1);
                ++i;
            }
        }
        return out;
    }
    return {};
}

bool SlurmPreemption::displace(JobIndex victim, JobIndex job) {
    const Duration grace = qos(victim).grace;
    if (grace > Duration{} && qos(victim).mode != PreemptMode::suspend) {
        leaving_[victim] = {job, world_.now() + grace};
        grace_ends_.emplace(world_.now() + grace, victim);
        world_.wake_at(world_.now() + grace);
        return false;
    }
    return remove(victim, job);
}

// True when its GPUs are free.
bool SlurmPreemption::remove(JobIndex victim, JobIndex job) {
    leaving_.erase(victim);
    switch (qos(victim).mode) {
        case PreemptMode::suspend:
            world_.suspend(victim);
            break;
        case PreemptMode::cancel:
            world_.end(victim, JobEnd::preempted);
            break;
        case PreemptMode::requeue:
        case PreemptMode::off:
            world_.requeue(victim, world_.now(), JobEnd::preempted);
            break;
    }
    const bool gone = world_.status(victim).phase != WorldPhase::completing;
    if (!gone) leaving_[victim] = {job, Instant::max()};  // until its epilog is over
    return gone;
}

std::vector<JobIndex> SlurmPreemption::schedule() {
    std::vector<JobIndex> out;
    while (!grace_ends_.empty() && grace_ends_.begin()->first <= world_.now()) {
        const auto [at, victim] = *grace_ends_.begin();
        grace_ends_.erase(grace_ends_.begin());
        const auto leaving = leaving_.find(victim);
        if (leaving == leaving_.end() || leaving->second.at != at)
            continue;  // it has left by itself
        if (world_.status(victim).phase == WorldPhase::completing) continue;  // nearly so
        const JobIndex job = leaving->second.for_whom;
        if (std::ranges::find(out, job) == out.end()) out.push_back(job);
        remove(victim, job);
    }
    for (auto it = made_way_.begin(); it != made_way_.end();) {
        const JobIndex job = it->second;
        const bool all_left = !any_leaving_for(job);
        if (all_left && std::ranges::find(out, job) == out.end()) out.push_back(job);
        it = all_left ? made_way_.erase(it) : std::next(it);
    }
    return out;
}

}  // namespace railyard
