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

void JobPhases::enter(JobPhase phase, Instant at, std::int64_t gpus) {
    book(at, gpus);
    if (phase == JobPhase::detection) recovering_ = true;
    if (phase == JobPhase::running) recovering_ = false;
    change(phase, at);
    if (watcher_ != nullptr) watcher_->phase_changed(phase);
}

void JobPhases::end(Instant at, std::int64_t gpus) {
    book(at, gpus);
    change(JobPhase::done, at);
}

void JobPhases::change(JobPhase phase, Instant at) {
    now_ = phase;
    if (log_ != nullptr) log_->push_back({at, phase});
}

// Steps are booked by their parts, once it is known what becomes of them.
void JobPhases::book(Instant until, std::int64_t gpus) {
    const Duration span = until - std::exchange(since_, until);
    if (now_ == JobPhase::running || now_ == JobPhase::done) return;
    const PhaseTraits& phase = traits_of(now_);
    ledger_.book(phase.booked, gpus, span);
    if (phase.counted != nullptr && (recovering_ || !phase.recovery)) times_.*phase.counted += span;
    if (now_ == JobPhase::first_batch) times_.first_batch += GpuNanoseconds{gpus} * span.count();
}

}  // namespace railyard
