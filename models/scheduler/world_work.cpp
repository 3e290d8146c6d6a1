#include "models/scheduler/world_work.h"

#include <algorithm>
#include <utility>

namespace railyard {

void WorldWork::book(const Parts& parts, Category category, Duration time) {
    for (std::size_t g = 0; g < parts.size(); ++g) {
        ledger_.book(g, kind_, category, parts[g], time);
    }
}

void WorldWork::book_steps(const Done& done) {
    for (const auto& [category, part] : step_parts) {
        book(done.by.gpus, category, done.each.*part * done.steps);
    }
}

void WorldWork::book_partial(const Parts& parts, const StepTime& step, Duration partial) {
    for (const auto& [category, part] : step_parts) {
        const Duration spent = std::min(step.*part, partial);
        partial -= spent;
        book(parts, category, spent);
    }
}

void WorldWork::add(std::int64_t steps, const Parts& parts, const StepTime& each) {
    open_.add(steps, {parts, replicas_ - replicas_now_}, each);
    done_ += steps;
    missing_ += steps * (replicas_ - replicas_now_);
}

void WorldWork::keep_until(std::int64_t steps) {
    std::int64_t before = kept();
    const std::int64_t sound = suspect_ ? suspect_->clean : INT64_MAX;
    open_.take_oldest(steps - before, [&](const Done& done) {
        const std::int64_t clean = std::clamp(sound - before, std::int64_t{0}, done.steps);
        keep({clean, done.by, done.each}, true);
        keep({done.steps - clean, done.by, done.each}, false);
        before += done.steps;
    });
}

void WorldWork::keep(const Done& done, bool clean) {
    if (done.steps == 0) return;
    run_.kept += done.time();
    run_.kept_steps += done.steps;
    run_.replica_steps_missing += done.steps * done.by.replicas_missing;
    clean ? book_steps(done) : suspect_->kept.push_back(done);
}

void WorldWork::hold(const Parts& parts, const StepTime& step, Duration partial) {
    if (partial > Duration{}) held_ = std::make_unique<Held>(Held{parts, step, partial});
}

Duration WorldWork::take_held() {
    const std::unique_ptr<Held> held = std::move(held_);
    return held ? held->time : Duration{};
}

void WorldWork::keep_held() {
    const std::unique_ptr<Held> held = std::move(held_);
    if (!held) return;
    run_.held += held->time;
    book_partial(held->by, held->step, held->time);
}

void WorldWork::lose_after(std::int64_t steps) {
    if (const std::unique_ptr<Held> held = std::move(held_)) {
        run_.held += held->time;
        book(held->by, Category::lost_work, held->time);
    }
    open_.take_newest(done_ - steps, [&](const Done& done) {
        book(done.by.gpus, Category::lost_work, done.time());
        run_.lost_steps += done.steps;
        done_ -= done.steps;
        missing_ -= done.steps * done.by.replicas_missing;
    });
}

void WorldWork::suspect(std::size_t corruption, std::int64_t clean) {
    if (!suspect_) suspect_ = std::make_unique<Suspect>(Suspect{corruption, clean});
}

std::optional<std::size_t> WorldWork::corruption() const {
    return suspect_ ? std::optional(suspect_->corruption) : std::nullopt;
}

void WorldWork::forget_if_clean() {
    if (suspect_ && suspect_->kept.empty() && done_ <= suspect_->clean) suspect_.reset();
}

std::optional<std::int64_t> WorldWork::lose_suspect() {
    const std::unique_ptr<Suspect> found = std::move(suspect_);
    if (!found) return std::nullopt;
    for (const Done& done : found->kept) {
        book(done.by.gpus, Category::lost_work, done.time());
        done_ -= done.steps;
        missing_ -= done.steps * done.by.replicas_missing;
        run_.kept -= done.time();
        run_.kept_steps -= done.steps;
        run_.replica_steps_missing -= done.steps * done.by.replicas_missing;
    }
    return found->clean;
}

bool WorldWork::accept_suspect() {
    const std::unique_ptr<Suspect> found = std::move(suspect_);
    if (!found) return false;
    for (const Done& done : found->kept) book_steps(done);
    return !found->kept.empty();
}

}  // namespace railyard
