#include "models/scheduler/world_work.h"

#include <utility>

#include "sim/check.h"

namespace railyard {

namespace {

// An upload beside them is none of it.
Duration training_time(const StepTime& each, std::int64_t steps) {
    return (each.duration() - each.upload) * steps;
}

Duration training_time(const std::vector<BookedSteps>& booked) {
    Duration sum{};
    for (const BookedSteps& b : booked) sum += training_time(b.each, b.steps);
    return sum;
}

}  // namespace

void WorldWork::book(const Parts& parts, Category category, Duration time) {
    for (std::size_t g = 0; g < parts.size(); ++g) ledger_.book(g, kind_, category, parts[g], time);
}

void WorldWork::book_steps(const Done& done) {
    for (const auto& [category, part] : step_parts) {
        book(done.by.gpus, category, done.each.*part * done.steps);
    }
}

void WorldWork::book_partial(const Parts& parts, const StepTime& step, Duration partial) {
    const StepTime before = take_begun(false);
    const StepTime now = first_of(rest_of(step, before), partial - before.duration());
    for (const auto& [category, part] : step_parts) book(parts, category, now.*part);
}

void WorldWork::lose_partial(const Parts& parts, Duration partial) {
    const Duration before = take_begun(true).duration();
    book(parts, Category::lost_work, partial - before);
}

void WorldWork::add(std::int64_t steps, const Parts& parts, const StepTime& each) {
    const std::int64_t missing = replicas_ - replicas_now_;
    done_ += steps;
    missing_ += steps * missing;
    if (steps > 0 && earlier_ && !earlier_->begun.empty()) {
        earlier_->open.push_back({{1, earlier_->begun}, false});
        const auto place = static_cast<std::uint32_t>(earlier_->open.size());
        open_.add(1, {parts, missing, place}, rest_of(each, take_begun(false)));
        --steps;
    }
    open_.add(steps, {parts, missing}, each);
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

void WorldWork::keep(Done done, bool clean) {
    if (done.steps == 0) return;
    Earlier::Open earlier = take_earlier(done);
    if (!earlier.counted) {
        run_.kept += training_time(done.each, done.steps) + training_time(earlier.of.booked);
        run_.kept_steps += done.steps;
        run_.replica_steps_missing += done.steps * done.by.replicas_missing;
    }
    if (clean) return book_steps(done);
    if (done.by.earlier != 0) {
        earlier_->open.push_back(std::move(earlier));
        done.by.earlier = static_cast<std::uint32_t>(earlier_->open.size());
    }
    suspect_->kept.push_back(std::move(done));
}

// `kept`: they have been counted so, here or earlier.
void WorldWork::lose(const Done& done, bool kept) {
    const Earlier::Open earlier = take_earlier(done);
    book(done.by.gpus, Category::lost_work, done.time());
    done_ -= done.steps;
    missing_ -= done.steps * done.by.replicas_missing;
    if (kept || earlier.counted) {
        run_.kept -= training_time(done.each, done.steps) + training_time(earlier.of.booked);
        run_.kept_steps -= done.steps;
        run_.replica_steps_missing -= done.steps * done.by.replicas_missing;
    }
    run_.lose_booked(earlier.of.booked);
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
    RY_CHECK(steps <= done_);
    if (const std::unique_ptr<Held> held = std::move(held_)) {
        run_.held += held->time;
        lose_partial(held->by, held->time);
    }
    open_.take_newest(done_ - steps, [&](const Done& done) {
        run_.lost_steps += done.steps;
        lose(done, false);
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
    for (const Done& done : found->kept) lose(done, true);
    return found->clean;
}

bool WorldWork::accept_suspect() {
    const std::unique_ptr<Suspect> found = std::move(suspect_);
    if (!found) return false;
    for (const Done& done : found->kept) book_steps(done);
    return !found->kept.empty();
}

// ---- from campaign to campaign ----

void WorldWork::bring(const CarriedJob& from, bool goes_on) {
    const bool in_a_step = goes_on && !from.begun.empty();
    if (from.open.empty() && !in_a_step) return;
    earlier_ = std::make_unique<Earlier>();
    for (const CarriedSteps& each : from.open) {
        earlier_->open.push_back({each, true});
        const auto place = static_cast<std::uint32_t>(earlier_->open.size());
        open_.add(each.steps, {{}, 0, place}, {});
    }
    if (!in_a_step) return;
    earlier_->begun = from.begun;
    held_ = std::make_unique<Held>(Held{{}, from.step, time_of(from.begun)});
}

void WorldWork::leave(std::int64_t saved, CarriedJob& to) const {
    std::int64_t before = kept();
    for (const Done& done : open_.all()) {
        const std::int64_t out = std::clamp(saved - before, std::int64_t{0}, done.steps);
        before += done.steps;
        const std::int64_t left = done.steps - out;
        if (left == 0) continue;
        CarriedSteps each;
        if (done.by.earlier != 0) {
            each = earlier_->open[done.by.earlier - 1].of;
            each.take(out);
        }
        if (!done.by.gpus.empty())
            each.booked.push_back({.gpus = done.by.gpus, .each = done.each, .steps = left});
        each.steps = left * (replicas_ - done.by.replicas_missing) / replicas_;
        to.open.push_back(std::move(each));
    }
    if (!held_) return;
    to.step = held_->step;
    if (earlier_) to.begun = earlier_->begun;
    const StepTime here = begun();
    const StepTime now = first_of(rest_of(held_->step, here), held_->time - here.duration());
    if (now.duration() > Duration{})
        to.begun.push_back({.gpus = held_->by, .each = now, .steps = 1});
}

void WorldWork::begin_step_anew() {
    held_.reset();
    if (earlier_) earlier_->begun.clear();
}

WorldWork::Earlier::Open WorldWork::take_earlier(const Done& done) {
    if (done.by.earlier == 0) return {};
    Earlier::Open& from = earlier_->open[done.by.earlier - 1];
    Earlier::Open out;
    out.counted = from.counted;
    out.of.booked = from.of.take(done.steps);
    out.of.steps = done.steps;
    return out;
}

StepTime WorldWork::begun() const {
    StepTime sum;
    if (!earlier_) return sum;
    for (const BookedSteps& each : earlier_->begun) {
        for (const auto& [category, part] : step_parts) sum.*part += each.each.*part;
    }
    return sum;
}

StepTime WorldWork::take_begun(bool lost) {
    const StepTime sum = held_ ? StepTime{} : begun();  // what is held is not of the run under way
    if (sum.duration() == Duration{}) return sum;
    run_.held -= sum.duration();
    if (lost) run_.lose_booked(earlier_->begun);
    earlier_->begun.clear();
    return sum;
}

}  // namespace railyard
