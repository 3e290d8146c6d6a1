#include "models/scheduler/slurm_preemption.h"

#include <algorithm>
#include <tuple>

namespace railyard {

const SlurmQos& SlurmPreemption::qos(JobIndex job) const {
    return fleet_.spec().slurm.qos[fleet_.job(job).qos];
}

bool SlurmPreemption::may_displace(JobIndex job, JobIndex victim) const {
    const SlurmQos& theirs = qos(victim);
    const std::vector<std::uint32_t>& preempts = qos(job).preempts;
    return theirs.mode != PreemptMode::off && !displacing(victim) &&
           fleet_.status(victim).phase == FleetPhase::running &&
           fleet_.now() - fleet_.status(victim).started >= theirs.exempt &&
           std::find(preempts.begin(), preempts.end(), fleet_.job(victim).qos) != preempts.end();
}

bool SlurmPreemption::enough(const FleetJob& job, const std::vector<std::int64_t>& free,
                             const NodeSet& allowed) const {
    const std::int64_t full = job.gpus / job.gpus_per_pod;
    const std::int64_t rest = job.gpus % job.gpus_per_pod;
    std::int64_t pods = 0;
    std::int64_t pods_or_rest = 0;
    for (NodeIndex node = 0; node < free.size(); ++node) {
        if (!allowed.has(node)) continue;
        pods += free[node] >= job.gpus_per_pod ? 1 : 0;
        pods_or_rest += rest > 0 && free[node] >= rest ? 1 : 0;
    }
    return pods >= full && (rest == 0 || pods_or_rest > full);
}

std::vector<JobIndex> SlurmPreemption::victims(JobIndex index, const std::vector<JobIndex>& running,
                                               const NodeSet& allowed) {
    if (qos(index).preempts.empty()) return {};
    std::vector<JobIndex> candidates;
    for (const JobIndex victim : running) {
        if (may_displace(index, victim)) candidates.push_back(victim);
    }
    std::sort(candidates.begin(), candidates.end(), [&](JobIndex a, JobIndex b) {
        return std::tuple(qos(a).priority, fleet_.status(b).started, b) <
               std::tuple(qos(b).priority, fleet_.status(a).started, a);
    });
    std::vector<std::int64_t> free;
    for (const FleetNode& node : fleet_.cluster().nodes()) {
        free.push_back(node.state == NodeState::up ? node.free : 0);
    }
    const auto shift = [&](JobIndex victim, std::int64_t sign) {
        for (const NodeShare& share : fleet_.status(victim).held) {
            if (fleet_.cluster().node(share.node).state != NodeState::up) continue;
            free[share.node] += sign * share.gpus;
        }
    };
    const FleetJob& job = fleet_.job(index);
    std::vector<JobIndex> out;
    for (const JobIndex victim : candidates) {
        shift(victim, 1);
        out.push_back(victim);
        if (!enough(job, free, allowed)) continue;
        // Those that turn out not to be needed stay, the last one chosen for certain is.
        for (std::size_t i = 0; i + 1 < out.size();) {
            shift(out[i], -1);
            if (enough(job, free, allowed)) {
                out.erase(out.begin() + static_cast<std::ptrdiff_t>(i));
            } else {
                shift(out[i], 1);
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
        leaving_[victim] = {job, fleet_.now() + grace};
        grace_ends_.emplace(fleet_.now() + grace, victim);
        fleet_.wake_at(fleet_.now() + grace);
        return false;
    }
    remove(victim);
    return true;
}

void SlurmPreemption::remove(JobIndex victim) {
    switch (qos(victim).mode) {
        case PreemptMode::suspend:
            fleet_.suspend(victim);
            break;
        case PreemptMode::cancel:
            fleet_.end(victim, JobEnd::preempted);
            break;
        case PreemptMode::requeue:
        case PreemptMode::off:
            fleet_.requeue(victim, fleet_.now(), JobEnd::preempted);
            break;
    }
}

std::vector<JobIndex> SlurmPreemption::schedule() {
    std::vector<JobIndex> out;
    while (!grace_ends_.empty() && grace_ends_.begin()->first <= fleet_.now()) {
        const auto [at, victim] = *grace_ends_.begin();
        grace_ends_.erase(grace_ends_.begin());
        const auto leaving = leaving_.find(victim);
        if (leaving == leaving_.end() || leaving->second.at != at)
            continue;  // it has left by itself
        const JobIndex job = leaving->second.for_whom;
        if (std::find(out.begin(), out.end(), job) == out.end()) out.push_back(job);
        leaving_.erase(leaving);
        remove(victim);
    }
    return out;
}

}  // namespace railyard
