// How a job fails and comes back: what a failure takes, who replaces the nodes, how it starts again.

#include <algorithm>
#include <utility>

#include "models/training/job.h"
#include "sim/check.h"

namespace railyard {

// ---- failing and coming back ----

void TrainingJob::strike(const Strike& strike) {
    if (strike.acceptance >= pool_.acceptance(strike.slot)) return;
    nodes_failed({strike, {strike.slot}});
}

bool TrainingJob::nodes_failed(const NodePool::Struck& struck) {
    if (!exposed()) {
        if (phase_ != JobPhase::done) ++outcome_.strikes_while_down;
        return phase_ == JobPhase::done;
    }
    feel(struck);
    return true;
}

void TrainingJob::feel(const NodePool::Struck& struck) {
    const FailureCause& cause = causes_[struck.strike.cause];
    if (cause.slow) return nodes_.slow_down(struck.strike);
    if (cause.silent) return corrupt(struck.strike);
    const std::optional<Storm>& storm = cause.storm;
    if (!storm) return interrupt(struck, cause.detection);
    const bool felt = phase_ == JobPhase::running || (storm->stalls_storage && on_the_store());
    if (!felt && !storm->fatal) return;
    ++outcome_.storms;
    if (felt) {
        hold_up(struck.strike, *storm);
    } else {
        interrupt(struck, cause.detection);
    }
}

// Nodes that failed while the job was down, or that nobody has found yet.
void TrainingJob::meet_what_is_broken() {
    while (exposed() && !outcome_.finished) {
        const NodePool::Struck struck = pool_.still_broken();
        if (struck.slots.empty()) return;
        feel(struck);
    }
}

bool TrainingJob::on_the_store() const {
    if (phase_ == JobPhase::checkpointing) {
        return checkpointer_.waits() != Saver::Waits::nothing || checkpointer_.on_a_store();
    }
    if (phase_ == JobPhase::first_batch) return !spec_.data->alone;
    return phase_ == JobPhase::restore && (spec_.recovery.restore || checkpointer_.on_a_store());
}

void TrainingJob::hold_up(const Strike& strike, const Storm& storm) {
    if (phase_ == JobPhase::running) {
        engine_.cancel(phase_event_);
        running_.carry(stop_steps());
    } else if (phase_ == JobPhase::restore && spec_.recovery.restore) {
        engine_.cancel(phase_event_);
        held_left_ = phase_ends_ - engine_.now();
    } else if (phase_ == JobPhase::checkpointing) {
        checkpointer_.count_wait();  // the storm's time is its own
    }
    record("storm", causes_[strike.cause].name, strike.slot, done());
    failure_ = strike;
    held_ = phase_;
    enter(JobPhase::storm_stall);
    end_phase_after(storm.stall, phase_end);
    if (storm.stalls_storage) {
        network_held_ = true;
        stores_.set_held(client_, true);
    }
}

void TrainingJob::release_network() {
    if (std::exchange(network_held_, false)) stores_.set_held(client_, false);
}

// A storm is over: what it held up goes on.
void TrainingJob::go_on() {
    release_network();
    if (held_ == JobPhase::running) return start_segment();
    if (held_ == JobPhase::first_batch) return start_segment();
    enter(held_);
    if (held_ == JobPhase::checkpointing) {
        checkpointer_.wait_for(checkpointer_.waits());
        moved_on();
    } else if (spec_.recovery.restore) {
        end_phase_after(held_left_, phase_end);
    }
}

void TrainingJob::interrupt(const NodePool::Struck& struck, Duration detection,
                            std::optional<std::int64_t> trusted) {
    const FailureCause& cause = causes_[struck.strike.cause];
    ++outcome_.interruptions[struck.strike.cause];
    engine_.cancel(phase_event_);
    release_network();
    stages_.forget_stop();
    const std::int64_t lost_before = book_.counts().steps_lost;
    Duration partial{};
    if (phase_ == JobPhase::running) partial = stop_steps();
    if (phase_ == JobPhase::checkpointing) checkpointer_.count_wait();
    checkpointer_.wait_for(Saver::Waits::nothing);
    enter(JobPhase::detection);
    failed_slots_.clear();
    if (cause.remedy != Remedy::restart) failed_slots_ = struck.slots;
    if (failed_slots_.empty()) fail_checkpoints({});
    for (const std::int64_t slot : failed_slots_) {
        fail_checkpoints({StateLoss::Scope::node, slot});
    }
    if (trusted && saves()) checkpointer_.give_up_after(*trusted);
    if (spec_.recovery.recompute) {
        lose_work(partial + running_.take_carried());
    } else {
        running_.carry(partial);
    }
    record("interruption", cause.name, struck.strike.slot, book_.counts().steps_lost - lost_before);
    failure_ = struck.strike;
    recovering_from_failure_ = true;
    end_phase_after(detection, phase_end);
}

void TrainingJob::fail_checkpoints(const StateLoss& loss) {
    if (saves()) checkpointer_.fail(loss);
}

// Goes back to the newest state that is left.
Duration TrainingJob::lose_what_is_not_saved() {
    const Duration lost = book_.back_to(saves() ? checkpointer_.newest().steps : 0);
    outcome_.steps_lost = book_.counts().steps_lost;
    stages_.back_to(done());
    return lost;
}

void TrainingJob::lose_work(Duration partial) {
    outcome_.lost_work += lose_what_is_not_saved() + partial;
    ledger_.book(Category::lost_work, gpus(), partial);
}

// Files lie on all of a store, so any share of it that is gone takes something of every checkpoint there.
void TrainingJob::data_lost(std::size_t store, double /*fraction*/, StorePart /*last*/) {
    if (!saves()) return;
    checkpointer_.lose_store(store);
    const JobPhase phase = phase_ == JobPhase::storm_stall ? held_ : phase_;
    const bool state_in_gpus = phase == JobPhase::running || phase == JobPhase::checkpointing ||
                               phase == JobPhase::first_batch || phase == JobPhase::pause;
    if (state_in_gpus || phase == JobPhase::done || !spec_.recovery.recompute) return;
    const std::int64_t lost_before = book_.counts().steps_lost;
    lose_work({});
    record("data_lost", "storage", -1, book_.counts().steps_lost - lost_before);
    if (phase != JobPhase::restore || spec_.recovery.restore) return;
    fail_checkpoints({StateLoss::Scope::processes});  // what it was reading is gone
    checkpointer_.restore();
}

void TrainingJob::drain() {
    if (failed_slots_.empty() && !change_pending_) {
        if (spec_.recovery.policy != RecoveryPolicy::requeue) {
            proceed_from(JobPhase::replacement);
        } else {
            proceed_from(JobPhase::requeue_wait);
        }
        return;
    }
    // The clock of the phase that ends here must be booked before the job holds fewer nodes.
    enter(JobPhase::requeue_wait);
    states_leave(nodes_.part_with({failure_, std::exchange(failed_slots_, {})}));
    part_with_slow_nodes();
    get_nodes();
}

void TrainingJob::node_available() {
    if (phase_ == JobPhase::requeue_wait && nodes_.count() < stages_.stage().nodes) {
        book_phase();  // with the nodes still missing
        get_nodes();
    } else if (!stop_pending() && nodes_.could_grow()) {
        change_pending_ = true;
        if (phase_ == JobPhase::running) finish_step_under_way();
    }
}

Duration TrainingJob::span_of(JobPhase phase) const {
    switch (phase) {
        case JobPhase::replacement:
            return spec_.recovery.replacement;
        case JobPhase::restart:
            return spec_.recovery.restart;
        case JobPhase::restore:
            return spec_.recovery.restore.value_or(Duration{});
        default:
            return {};
    }
}

void TrainingJob::proceed_from(JobPhase phase) {
    JobPhase next = JobPhase::restart;
    switch (phase) {
        case JobPhase::storm_stall:
            if (causes_[failure_.cause].storm->fatal) {
                interrupt({failure_, {failure_.slot}}, causes_[failure_.cause].detection);
            } else {
                go_on();
            }
            return;
        case JobPhase::detection:
            drain();
            return;
        case JobPhase::requeue_wait:
            next = JobPhase::replacement;
            break;
        case JobPhase::replacement:
            next = JobPhase::restart;
            break;
        case JobPhase::pause:
            return start_segment();
        case JobPhase::maintenance:
            if (change_pending_) return change_nodes();
            if (nodes_.count() != stages_.stage().nodes && nodes_.smaller() == nullptr) {
                enter(JobPhase::requeue_wait);
                return get_nodes();
            }
            next = JobPhase::restart;
            break;
        case JobPhase::restart:
            begin_restore();
            return;
        case JobPhase::restore:
            resume();
            return;
        default:
            RY_UNREACHABLE("a phase that ends by itself");
    }
    enter(next);
    end_phase_after(span_of(next), phase_end);
}

void TrainingJob::begin_restore() {
    enter(JobPhase::restore);
    if (saves() && !spec_.recovery.restore) {
        checkpointer_.restore();
    } else {
        if (saves()) checkpointer_.give_up_newer();
        end_phase_after(span_of(JobPhase::restore), phase_end);
    }
}

// ---- nodes come and go ----

// Nodes that work leave, and what only they had goes with them.
void TrainingJob::states_leave(const JobNodes::Slots& slots) {
    for (const std::int64_t slot : slots) {
        fail_checkpoints({StateLoss::Scope::node, slot});
        const std::int64_t kept = saves() ? checkpointer_.newest().steps : 0;
        if (spec_.recovery.recompute && kept < done()) lose_work({});
    }
}

void TrainingJob::get_nodes() {
    states_leave(nodes_.keep_first(stages_.stage().nodes));
    if (!nodes_.fill(stages_.stage().nodes)) {
        const std::optional<JobNodes::Slots> unused = nodes_.shrink();
        if (!unused) return;
        states_leave(*unused);
    }
    proceed_from(JobPhase::requeue_wait);
}

// ---- planned stops ----

void TrainingJob::begin_stop() {
    if (maintenance_pending_) {
        begin_maintenance();
    } else if (stages_.stop_planned()) {
        begin_planned_stop();
    } else {
        change_nodes();
    }
}

// Slow nodes leave, or a job that has shrunk grows again.
void TrainingJob::change_nodes() {
    ++outcome_.nodes_changed;
    record("nodes_changed", "", -1, done());
    enter(JobPhase::requeue_wait);
    fail_checkpoints({});
    if (spec_.recovery.recompute && !saves()) lose_work({});  // it starts again
    part_with_slow_nodes();
    get_nodes();
}

void TrainingJob::begin_maintenance() {
    maintenance_pending_ = false;
    record("maintenance", "", -1, done());
    stop_for(spec_.maintenance.duration);
}

// What is saved is on the store by now. The nodes stay until the stop is over.
void TrainingJob::begin_planned_stop() {
    const JobStages::Stop stop = stages_.begin_stop(done(), engine_.now());
    if (stop.pause != nullptr && stop.pause->goes_on) --outcome_.planned_interruptions;
    record("planned_stop", stop.pause != nullptr ? stop.pause->name : std::string(), -1, done());
    if (stop.enters_stage) record("stage", stages_.stage().name, -1, done());
    stop_for(stop.lasts);
}

void TrainingJob::begin_pause(const PauseSpec& pause) {
    record("pause", pause.name, -1, done());
    enter(JobPhase::pause);
    end_phase_after(pause.duration, phase_end);
}

void TrainingJob::stop_for(Duration span) {
    ++outcome_.planned_interruptions;
    enter(JobPhase::maintenance);
    fail_checkpoints({StateLoss::Scope::all_memory});
    if (spec_.recovery.recompute) lose_what_is_not_saved();  // a job that never saves starts again
    end_phase_after(span, phase_end);
}

}  // namespace railyard
