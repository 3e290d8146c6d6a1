#include "models/training/stages.h"

#include <algorithm>

#include "sim/check.h"

namespace railyard {

StepSchedule::StepSchedule(std::vector<StageSpec> stages)
    : stages_(std::move(stages)), ended_(stages_.size()) {
    RY_CHECK(!stages_.empty());
    lay_out();
}

void StepSchedule::lay_out() {
    places_.clear();
    std::int64_t first = 0;
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
        const std::int64_t last = ended_[stage].value_or(endless);
        for (std::size_t level = 0; level < stages_[stage].levels.size(); ++level) {
            places_.push_back({first, stage, level});
            const std::int64_t steps =
                std::min(stages_[stage].levels[level].steps, endless - first);
            first = std::min(first + steps, last);
        }
    }
    end_ = first;
}

// Levels of no steps share their first step with the one behind them.
std::size_t StepSchedule::place_among(std::int64_t steps) const {
    const auto after = std::ranges::upper_bound(places_, steps, {}, &LevelPlace::first);
    return static_cast<std::size_t>(after - places_.begin()) - 1;
}

std::int64_t StepSchedule::steps_left(std::int64_t steps) const {
    const std::size_t next = place_at(steps) + 1;
    const std::int64_t last = next < places_.size() ? places_[next].first : end_;
    return std::max<std::int64_t>(1, last - steps);
}

void StepSchedule::look_at_date(std::int64_t steps, Instant now) {
    for (std::size_t stage = stage_at(steps); stage < stages_.size(); ++stage) {
        const std::optional<Instant>& until = stages_[stage].until;
        if (!until || now < *until || ended_[stage]) return;
        ended_[stage] = steps;
        lay_out();
    }
}

void StepSchedule::back_to(std::int64_t steps) {
    bool moved = false;
    for (std::optional<std::int64_t>& ended : ended_) {
        if (!ended || *ended <= steps) continue;
        ended = steps;
        moved = true;
    }
    if (moved) lay_out();
}

std::vector<StepSchedule::Done> StepSchedule::done(std::int64_t steps) const {
    std::vector<Done> out(stages_.size());
    for (std::size_t i = 0; i < places_.size() && places_[i].first < steps; ++i) {
        const std::int64_t last = i + 1 < places_.size() ? places_[i + 1].first : end_;
        const std::int64_t count = std::min(last, steps) - places_[i].first;
        const StageLevel& each = level(places_[i]);
        Done& done = out[places_[i].stage];
        done.steps += count;
        done.tokens += real(count) * real(each.tokens);
        done.model_flops += real(count) * each.step.model_flops;
        done.time += count * each.step.duration();
    }
    return out;
}

Pauses::Pauses(const std::vector<PauseSpec>& specs) : specs_(specs), last_(specs.size(), never) {}

std::optional<std::size_t> Pauses::due(std::int64_t steps, Instant now) const {
    for (std::size_t i = 0; i < specs_.size(); ++i) {
        const PauseSpec& pause = specs_[i];
        const bool was_here = last_[i] == steps;
        const bool was = last_[i] != never || pause.over;
        const bool is_due =
            pause.every_steps > 0
                ? steps > 0 && !was_here && (pause.steps_before + steps) % pause.every_steps == 0
            : pause.at_step > 0 ? steps >= pause.at_step && !was
                                : now >= *pause.at && !was;
        if (is_due) return i;
    }
    return std::nullopt;
}

std::int64_t Pauses::steps_until_next(std::int64_t steps) const {
    std::int64_t next = endless;
    for (const PauseSpec& pause : specs_) {
        if (pause.every_steps > 0) {
            next = std::min(next,
                            pause.every_steps - (pause.steps_before + steps) % pause.every_steps);
        } else if (pause.at_step > steps) {
            next = std::min(next, pause.at_step - steps);
        }
    }
    return next;
}

void Pauses::begin_after(std::int64_t steps) {
    for (std::size_t i = 0; i < specs_.size(); ++i) {
        if (specs_[i].every_steps > 0 && steps > 0) last_[i] = steps;
    }
}

std::vector<bool> Pauses::had() const {
    std::vector<bool> out;
    for (const std::int64_t last : last_) out.push_back(last != never);
    return out;
}

void Pauses::back_to(std::int64_t steps) {
    for (std::size_t i = 0; i < specs_.size(); ++i) {
        if (specs_[i].every_steps > 0 && last_[i] > steps) last_[i] = never;
    }
}

}  // namespace railyard
