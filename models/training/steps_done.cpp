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

// With -1: it was booked as kept, and is not.
void StepBook::count_kept(const OpenSteps<Workers>::Done& done, std::int64_t sign) {
    const std::int64_t steps = sign * done.steps;
    counts_.steps_kept += steps;
    counts_.replica_steps_missing += steps * done.by.replicas_missing;
    counts_.slow_time += steps * done.by.slowed;
    counts_.checkpoint_stall += steps * done.each.upload;
    counts_.stepping += steps * (done.each.duration() - done.each.upload);
    for (const auto& [category, part] : step_parts) {
        ledger_.book(category, done.by.gpus, done.each.*part * steps);
    }
}

void StepBook::keep(std::int64_t steps) {
    RY_CHECK(steps <= done_);
    const std::int64_t kept = done_ - open_.count();
    open_.take_oldest(steps - kept, [&](const OpenSteps<Workers>::Done& done) {
        if (!done.by.earlier) count_kept(done, 1);
    });
}

std::vector<OpenSteps<Workers>::Done> StepBook::after(std::int64_t steps) const {
    std::vector<OpenSteps<Workers>::Done> out;
    OpenSteps<Workers> open = open_;
    open.take_newest(std::min(done_ - steps, open.count()),
                     [&](const OpenSteps<Workers>::Done& done) { out.push_back(done); });
    std::ranges::reverse(out);
    return out;
}

Duration StepBook::back_to(std::int64_t steps) {
    RY_CHECK(steps >= 0 && steps <= done_);
    const std::int64_t lost = done_ - steps;
    counts_.steps_lost += lost;
    Duration time{};
    open_.take_newest(lost, [&](const OpenSteps<Workers>::Done& done) {
        time += done.time();
        if (done.by.earlier) count_kept(done, -1);
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
