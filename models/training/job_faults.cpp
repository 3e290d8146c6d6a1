// What a job does not notice: parts that slow it, and numbers that are wrong.

#include <algorithm>
#include <utility>

#include "models/training/job.h"
#include "sim/check.h"

namespace railyard {

// ---- slow parts ----

Duration TrainingJob::slowed_by_parts() const {
    const Duration over_network = slowed_by_network().value_or(Duration{});
    if (conditions_ == 0) return over_network;
    return over_network + (size_ == 0 ? schedule_.level_at(done_).slowed
                                      : spec_.smaller[size_ - 1].slowed)[conditions_];
}

void TrainingJob::slow_down(const NodeSupply::Struck& struck) {
    const Strike& strike = struck.strike;
    const SlowPart& part = *causes_[strike.cause].slow;
    const std::uint32_t number = slow_parts_++;
    ++outcome_.slow_parts;
    slow_.push_back({number, struck, false});
    const auto after = [&](Duration span, std::uint32_t event) {
        if (span > Instant::max() - engine_.now()) return;
        engine_.schedule(engine_.now() + span, id_, first_slow_part + 2 * number + event);
    };
    const StageLevel& level = schedule_.level_at(done_);
    const Duration alone = level.slowed[1U << part.condition];
    const double slowdown = seconds(alone) / seconds(level.step.duration());
    const Duration found = spec_.recovery.search.found_after(strike, engine_.now(), slowdown);
    const bool ends = part.lasts > Duration{};
    if (!ends || found < part.lasts) after(found, 0);
    if (ends) after(part.lasts, 1);
    count_slow_parts();
}

void TrainingJob::slow_part_changes(std::uint32_t event) {
    const auto part = std::ranges::find(slow_, event / 2, &SlowNode::number);
    if (part == slow_.end()) return;  // its node has left
    const bool over = event % 2 == 1;
    if (over) {
        slow_.erase(part);
        count_slow_parts();
        return;
    }
    part->found = true;
    ++outcome_.slow_parts_found;
    change_pending_ = true;
    if (phase_ == JobPhase::running) finish_step_under_way();
}

void TrainingJob::forget_slow_parts_in(std::int64_t slot) {
    std::erase_if(slow_, [&](const SlowNode& node) { return node.struck.strike.slot == slot; });
    count_slow_parts();
}

// All that were found. Where nothing is broken the stop itself is the cure.
void TrainingJob::part_with_slow_nodes() {
    change_pending_ = false;
    std::vector<SlowNode> found;
    std::ranges::copy_if(slow_, std::back_inserter(found), &SlowNode::found);
    for (const SlowNode& node : found) {
        if (causes_[node.struck.strike.cause].remedy == Remedy::restart) {
            std::erase_if(slow_, [&](const SlowNode& s) { return s.number == node.number; });
            count_slow_parts();
        } else if (supply_.node_in(node.struck.strike.slot) >= 0) {
            part_with(node.struck);
            state_leaves(node.struck.strike.slot);
        }
    }
}

void TrainingJob::count_slow_parts() {
    const std::uint32_t before = conditions_;
    conditions_ = 0;
    for (const SlowNode& node : slow_) {
        conditions_ |= 1U << causes_[node.struck.strike.cause].slow->condition;
    }
    if (conditions_ != before && phase_ == JobPhase::running) finish_step_under_way();
}

// ---- silent corruption ----

// One at a time: a second one before the first shows changes nothing.
void TrainingJob::corrupt(const Strike& strike) {
    if (corrupt_) return;
    corrupt_ = strike;
    corrupt_node_ = supply_.node_in(strike.slot);
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
    const bool node_left = supply_.node_in(corrupt_->slot) != corrupt_node_;
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
    NodeSupply::Struck struck{*std::exchange(corrupt_, std::nullopt), {}};
    if (supply_.node_in(struck.strike.slot) == corrupt_node_) {
        struck.slots.push_back(struck.strike.slot);
    }
    ++outcome_.corruptions_found;
    trusted_steps_ = clean_steps_;
    interrupt(struck, {});
}

}  // namespace railyard
