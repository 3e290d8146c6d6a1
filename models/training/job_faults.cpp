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
    if (nodes_.conditions() == 0) return over_network;
    const SmallerJob* const smaller = nodes_.smaller();
    const std::vector<Duration>& slowed =
        smaller == nullptr ? stages_.level_at(done()).slowed : smaller->slowed;
    return over_network + slowed[nodes_.conditions()];
}

double TrainingJob::slowdown(std::uint32_t condition) const {
    const StageLevel& level = stages_.level_at(done());
    return seconds(level.slowed[1U << condition]) / seconds(level.step.duration());
}

void TrainingJob::pace_changed(std::size_t) {
    if (nodes_.conditions_changed() && phase_ == JobPhase::running) finish_step_under_way();
}

void TrainingJob::slow_part_found(std::size_t part) {
    nodes_.found_slow(part);
    change_pending_ = true;
    if (phase_ == JobPhase::running) finish_step_under_way();
}

void TrainingJob::part_with_slow_nodes() {
    change_pending_ = false;
    states_leave(nodes_.part_with_slow());
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
