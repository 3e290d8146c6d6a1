#include "models/training/steps_done.h"

namespace railyard {

void upload_changes(StepTime& step, Duration partial, bool uploads, Duration penalty) {
    const Duration left = step.duration() - partial;
    if (left <= Duration{}) return;
    const Duration bare = step.duration() - step.upload;
    using Wide = __int128;
    const auto whole = [&](bool slowed) {
        return Wide{(bare + (slowed ? penalty : Duration{})).count()};
    };
    const Wide before = whole(!uploads);
    const Wide scaled = (Wide{left.count()} * whole(uploads) + before - 1) / before;
    step.upload += Duration(static_cast<std::int64_t>(scaled)) - left;
}

void StepBook::keep(std::int64_t steps) {
    RY_CHECK(steps <= done_);
    const std::int64_t kept = done_ - open_.count();
    open_.take_oldest(steps - kept, [&](const OpenSteps<Workers>::Done& done) {
        counts_.steps_kept += done.steps;
        counts_.replica_steps_missing += done.steps * done.by.replicas_missing;
        counts_.slow_time += done.steps * done.by.slowed;
        counts_.checkpoint_stall += done.steps * done.each.upload;
        counts_.stepping += done.time() - done.steps * done.each.upload;
        for (const auto& [category, part] : step_parts) {
            ledger_.book(category, done.by.gpus, done.each.*part * done.steps);
        }
    });
}

Duration StepBook::back_to(std::int64_t steps) {
    RY_CHECK(steps >= 0 && steps <= done_);
    const std::int64_t lost = done_ - steps;
    counts_.steps_lost += lost;
    Duration time{};
    open_.take_newest(lost, [&](const OpenSteps<Workers>::Done& done) {
        time += done.time();
        ledger_.book(Category::lost_work, done.by.gpus, done.time());
        replica_steps_missing_ -= done.steps * done.by.replicas_missing;
    });
    done_ = steps;
    return time;
}

// In the proportions of a step, rounded down, the rest productive.
void StepBook::cut_off(const StepTime& step, std::int64_t gpus, Duration partial) {
    if (partial == Duration{}) return;
    counts_.stepping += partial;
    using Wide = __int128;
    const Wide whole = step.duration().count();
    Duration rest = partial;
    for (const auto& [category, part] : step_parts) {
        if (category == Category::productive) continue;
        const Wide all = (step.*part).count();
        const Duration share(static_cast<std::int64_t>(all * partial.count() / whole));
        ledger_.book(category, gpus, share);
        if (category == Category::checkpoint_stall) counts_.checkpoint_stall += share;
        rest -= share;
    }
    ledger_.book(Category::productive, gpus, rest);
}

}  // namespace railyard
