// What a job does not notice: parts that slow it, and numbers that are wrong.

#include <algorithm>
#include <utility>

#include "models/training/job.h"

namespace railyard {

void FaultCounts::add(const FaultCounts& other) {
    slow_parts.slow += other.slow_parts.slow;
    slow_parts.found += other.slow_parts.found;
    storms += other.storms;
    corruptions_found += other.corruptions_found;
    nodes_blamed += other.nodes_blamed;
    network_outages += other.network_outages;
}

// ---- slow parts ----

Duration TrainingJob::slowed_by_parts() const {
    const Duration over_network = slowed_by_network().value_or(Duration{});
    if (conditions_ == 0) return over_network;
    return over_network + (size_ == 0 ? schedule_.level_at(done_).slowed
                                      : spec_.smaller[size_ - 1].slowed)[conditions_];
}

double TrainingJob::slowdown(std::uint32_t condition) const {
    const StageLevel& level = schedule_.level_at(done_);
    return seconds(level.slowed[1U << condition]) / seconds(level.step.duration());
}

void TrainingJob::pace_changed(std::size_t) {
    const std::uint32_t before = std::exchange(conditions_, slow_->conditions());
    if (conditions_ != before && phase_ == JobPhase::running) finish_step_under_way();
}

void TrainingJob::slow_part_found(std::size_t part) {
    found_slow_.push_back(part);
    change_pending_ = true;
    if (phase_ == JobPhase::running) finish_step_under_way();
}

// All that were found. Where nothing is broken the stop itself is the cure.
void TrainingJob::part_with_slow_nodes() {
    change_pending_ = false;
    for (const std::size_t number : std::vector<std::size_t>(found_slow_)) {
        const Strike strike = slow_->part(number).strike;
        if (!slow_->part(number).there) continue;
        if (causes_[strike.cause].remedy == Remedy::restart) {
            slow_->cure(number);
        } else if (pool_.node_in(strike.slot) >= 0) {
            part_with({strike, {strike.slot}});
            state_leaves(strike.slot);
        }
    }
    std::erase_if(found_slow_, [&](std::size_t number) { return !slow_->part(number).there; });
}

// ---- silent corruption ----

// One at a time: a second one before the first shows changes nothing.
void TrainingJob::corrupt(const Strike& strike) {
    if (corrupt_) return;
    corrupt_ = strike;
    corrupt_node_ = pool_.node_in(strike.slot);
    clean_steps_ = done_;
    if (phase_ == JobPhase::running) {
        clean_steps_ +=
            std::min(segment_steps_, (engine_.now() - segment_start_) / segment_.duration());
    }
    const Duration shows = causes_[strike.cause].detection;
    if (shows > Instant::max() - engine_.now()) return;
    corruption_shows_at_ = engine_.now() + shows;
    engine_.schedule(corruption_shows_at_, id_, corruption_shows);
}

// The job has gone back to a state. A part that corrupts goes on doing so; with its node gone, a state from
// before is clean.
void TrainingJob::reconsider_corruption() {
    if (!corrupt_) return;
    const bool node_left = pool_.node_in(corrupt_->slot) != corrupt_node_;
    if (node_left && done_ <= clean_steps_) {
        corrupt_.reset();
    } else {
        clean_steps_ = std::min(clean_steps_, done_);
        if (corruption_due_) corruption_found();
    }
}

void TrainingJob::corruption_found() {
    corruption_due_ = corrupt_ && !exposed();
    if (!corrupt_ || corruption_due_) return;
    NodePool::Struck struck{*std::exchange(corrupt_, std::nullopt), {}};
    if (pool_.node_in(struck.strike.slot) == corrupt_node_) {
        struck.slots.push_back(struck.strike.slot);
    }
    ++outcome_.corruptions_found;
    trusted_steps_ = clean_steps_;
    interrupt(struck, {});
}

}  // namespace railyard
