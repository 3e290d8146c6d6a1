#include "models/scheduler/cluster_state.h"

#include <fmt/format.h>

#include <utility>

#include "sim/error.h"

namespace railyard {

Duration ClusterState::expected(std::size_t index) const {
    const StreamJob& j = job(index);
    if (stream_.rules.estimate == RuntimeEstimate::exact) return j.runtime();
    constexpr Duration without_limit = std::chrono::hours(24 * 365);
    return j.limit > Duration::zero() ? j.limit : without_limit;
}

void ClusterState::start(std::size_t index, Allocation allocation) {
    const Duration runtime = job(index).runtime();
    constexpr Duration end_max =
        time_max + time_max / 2;  // what is planned from there fits the clock
    if (runtime > end_max - now()) {
        throw ScenarioError(fmt::format(
            "job {} would end after 150 years: longer than a stream may last", job(index).id));
    }
    JobRun& outcome = stream_.schedule.jobs[index];
    outcome.start = now();
    outcome.end = now() + runtime;
    stream_.schedule.digest.add(std::uint64_t{index});
    stream_.schedule.digest.add(now());
    stream_.ends.push(outcome.end.count(), static_cast<std::uint32_t>(index));
    if (stream_.listener != nullptr) stream_.listener->started(index, now(), allocation);
    stream_.allocations[index] = std::move(allocation);
}

void ClusterState::end(std::size_t index) {
    placement_->release(std::exchange(stream_.allocations[index], {}));
    if (stream_.listener != nullptr) stream_.listener->ended(index, now());
}

void ClusterState::promise(std::size_t index, Duration start) const {
    if (stream_.listener != nullptr) stream_.listener->reserved(index, now(), start);
}

void ClusterState::book(std::size_t first) {
    const std::int64_t span = (now() - booked_until_).count();
    if (span == 0) return;
    booked_until_ = now();
    ClusterUse& use = stream_.schedule.use[index_];
    const auto over_span = [span](std::int64_t count) { return GpuNanoseconds{count} * span; };
    const std::int64_t free = placement_->free_gpus();
    use.busy += over_span(gpus_ - free);
    use.node_busy += over_span(placement_->busy_nodes());
    if (first != no_job && job(first).gpus <= free) use.fragmented += over_span(free);
}

}  // namespace railyard
