#include "models/training/saver.h"

#include <algorithm>

#include "sim/integers.h"

namespace railyard {

void Saver::was_read(std::int64_t steps) {
    saved_ = steps;
    due_ = clock_.now() + spec_.interval_wall - spec_.stall_alone;
}

void Saver::goes_on(std::int64_t done, std::int64_t since_save, Duration due_in,
                    const std::vector<std::int64_t>& offered) {
    saved_ = done - since_save;
    due_ = clock_.now() + due_in;
    if (offered.size() == reached_.size()) reached_ = offered;
}

bool Saver::due(std::int64_t done, std::int64_t every) const {
    if (!saves() || unsaved(done) == 0) return false;
    return every > 0 ? unsaved(done) >= every : clock_.now() >= due_;
}

std::int64_t Saver::steps_until_due(std::int64_t done, std::int64_t every, Duration each,
                                    Duration into) const {
    if (every > 0) return every - unsaved(done);
    return std::max<std::int64_t>(1, ceil_div((due_ - clock_.now() + into).count(), each.count()));
}

void Saver::begin_interval() {
    const Duration interval = spec_.interval_wall;
    if (interval == Duration{}) return;
    const Duration late = clock_.now() - due_;
    if (late >= Duration{}) due_ += (late / interval + 1) * interval;
}

bool Saver::save(std::int64_t done, bool before_stop) {
    begin_interval();
    const bool begins = can_begin();
    begins ? begin_stall(done, before_stop) : wait_for(Waits::buffer);  // back-pressure
    return begins;
}

void Saver::begin_stall(std::int64_t done, bool before_stop) {
    saved_ = done;
    begin(done, before_stop);
}

void Saver::pass_save(std::int64_t done, const StoreService::Undisturbed& stall) {
    begin_interval();
    saved_ = done;
    pass(done, stall);
}

void Saver::wait_for(Waits what) {
    waits_ = what;
    waits_since_ = clock_.now();
}

void Saver::count_wait() {
    const Duration time = clock_.now() - waits_since_;
    if (waits_ == Waits::buffer) waited(time, Wall::back_pressure);
    if (waits_ == Waits::upload) waited(time, Wall::planned_stop);
}

Saver::Waits Saver::come() {
    const Waits what = waits_;
    const bool there = what == Waits::buffer ? can_begin() : what == Waits::upload && idle();
    if (!there) return Waits::nothing;
    count_wait();
    waits_ = Waits::nothing;
    return what;
}

}  // namespace railyard
