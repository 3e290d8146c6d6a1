#include "models/scheduler/job_sizes.h"

#include <algorithm>

namespace railyard {

// Those that are up and hold its processes: one that is broken has left the others, whoever knows of it.
Allocation JobSizes::sound_nodes(const LiveJob& j) const {
    Allocation out = j.status.held;
    for (const NodeIndex node : cluster_.ailing(j.status.held)) {
        if (cluster_.node(node).broken) out.erase(node);
    }
    return out;
}

bool JobSizes::whole(const LiveJob& j, const Allocation& sound) {
    return j.status.gpus == j.job.gpus && sound.size() == j.status.held.size();
}

const SmallerWorldJob* JobSizes::largest_on(const LiveJob& j, std::size_t nodes) const {
    const auto fits = std::ranges::find_if(j.kind.smaller, [nodes](const SmallerWorldJob& size) {
        return size.nodes <= static_cast<std::int64_t>(nodes);
    });
    return fits == j.kind.smaller.end() ? nullptr : &*fits;
}

bool JobSizes::enough(JobIndex index) const {
    const LiveJob& j = jobs_[index];
    return largest_on(j, sound_nodes(j).size()) != nullptr;
}

void JobSizes::expect_smaller(JobIndex index) {
    LiveJob& j = jobs_[index];
    const bool gathers = j.status.phase == WorldPhase::gathering;
    if (j.kind.smaller.empty() || !gathers || outcome_.runs[index].starts == 0) return;
    if (!j.elastic) j.elastic = std::make_unique<LiveJob::Elastic>();
    if (j.elastic->lacks_since == Instant::max()) j.elastic->lacks_since = clock_.now();
    clock_.engine.cancel(j.event);
    if (!enough(index)) return;
    const Instant at = std::max(clock_.now(), j.elastic->lacks_since + j.kind.shrink_after);
    clock_.schedule_end(j, at, WorldClock::waited_enough, index);
}

void JobSizes::settle(JobIndex index) {
    LiveJob& j = jobs_[index];
    if (!j.elastic) return;
    LiveJob::Elastic& it = *j.elastic;
    const SmallerWorldJob* const before = it.smaller;
    it.lacks_since = Instant::max();
    it.unused_since = clock_.now();
    const Allocation sound = sound_nodes(j);
    it.smaller = whole(j, sound) ? nullptr : largest_on(j, sound.size());
    j.work.set_replicas(it.smaller != nullptr ? it.smaller->replicas : j.kind.replicas);
    it.used.clear();
    if (it.smaller == nullptr) return;
    for (std::int64_t i = 0; i < it.smaller->nodes; ++i) it.used.push_back(sound[i]);
    if (before == nullptr || it.smaller->nodes < before->nodes) ++outcome_.shrinks;
}

bool JobSizes::could_grow(JobIndex index) const {
    const LiveJob& j = jobs_[index];
    if (j.smaller() == nullptr || j.kind.checkpoint_interval == Duration{}) return false;
    const Allocation sound = sound_nodes(j);
    if (whole(j, sound)) return true;
    const SmallerWorldJob* const size = largest_on(j, sound.size());
    return size != nullptr && size->nodes > j.smaller()->nodes;
}

void JobSizes::book_unused(JobIndex index) {
    LiveJob& j = jobs_[index];
    if (j.smaller() == nullptr) return;
    const Duration span = clock_.now() - std::exchange(j.elastic->unused_since, clock_.now());
    Allocation unused = j.status.held;
    for (const NodeShare& share : j.elastic->used) unused.erase(share.node);
    if (unused.empty()) return;
    j.work.book(cluster_.parts_by_group(unused, run_.spec.parts_of(j.job)), Category::partial_hold,
                span);
}

}  // namespace railyard
