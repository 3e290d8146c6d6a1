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
    return over_network + (size_ == 0 ? schedule_.level_at(done()).slowed
                                      : spec_.smaller[size_ - 1].slowed)[conditions_];
}

double TrainingJob::slowdown(std::uint32_t condition) const {
    const StageLevel& level = schedule_.level_at(done());
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

void TrainingJob::corrupt(const Strike& strike) {
    std::int64_t clean_steps = done();
    if (phase_ == JobPhase::running) {
        clean_steps += std::min(running_.steps(), running_.whole(engine_.now()));
    }
    const std::optional<Instant> shows =
        corruption_.begin(strike, clean_steps, engine_.now(), causes_[strike.cause].detection);
    if (shows) engine_.schedule(*shows, id_, corruption_shows);
}

void TrainingJob::corruption_found() {
    const std::optional<SilentCorruption::Found> found = corruption_.find(exposed());
    if (!found) return;
    ++outcome_.corruptions_found;
    interrupt(found->struck, {}, found->clean_steps);
}

}  // namespace railyard
