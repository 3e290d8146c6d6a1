#include "models/training/job_phases.h"

namespace railyard {

namespace {

struct PhaseTraits {
    std::string_view name;
    Category booked;  // all its time; of running, by a step's parts
    DataFeed::Use data = DataFeed::Use::no_loaders;
    Duration PhaseTimes::*counted = nullptr;
    bool recovery = false;  // counted after a failure only
};

const PhaseTraits& traits_of(JobPhase phase) {
    using enum DataFeed::Use;
    using Times = PhaseTimes;
    static constexpr PhaseTraits phases[] = {
        {"running", Category::productive, steps},
        {"checkpointing", Category::checkpoint_stall, loaders_only, &Times::saving},
        {"storm_stall", Category::storm_stall, loaders_only, &Times::storm_stall},
        {"detection", Category::detection, no_loaders, &Times::detection, true},
        {"replacement", Category::replacement, no_loaders, &Times::replacement, true},
        {"requeue_wait", Category::requeue_wait, no_loaders, &Times::requeue_wait, true},
        {"restart", Category::restart, no_loaders, &Times::restart, true},
        {"restore", Category::restore, loaders_only, &Times::restore, true},
        {"maintenance", Category::planned_maintenance},
        {"first_batch", Category::data_wait, loaders_only},
        {"pause", Category::planned_maintenance, loaders_only, &Times::paused},
        {"done", Category::productive},
    };
    return phases[static_cast<std::size_t>(phase)];
}

}  // namespace

std::string_view phase_name(JobPhase phase) {
    return traits_of(phase).name;
}

DataFeed::Use data_use(JobPhase phase) {
    return traits_of(phase).data;
}

bool JobPhases::processes_run() const {
    return now_ == JobPhase::restart || data_use(now_) != DataFeed::Use::no_loaders;
}

void JobPhases::book(Instant until, std::int64_t gpus) {
    if (now_ == JobPhase::done) return;
    const Duration span = until - std::exchange(since_, until);
    const PhaseTraits& phase = traits_of(now_);
    ledger_.book(phase.booked, gpus, span);
    recovering_ = recovering_ || now_ == JobPhase::detection;
    if (phase.counted != nullptr && (recovering_ || !phase.recovery)) times_.*phase.counted += span;
    if (now_ == JobPhase::first_batch) times_.first_batch += GpuNanoseconds{gpus} * span.count();
}

void JobPhases::tell(Instant at) {
    if (log_ != nullptr) log_->push_back({at, now_});
    if (watcher_ != nullptr) watcher_->phase_changed(now_);
}

}  // namespace railyard
