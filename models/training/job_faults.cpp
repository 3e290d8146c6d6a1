// What strikes a job: failures, slow parts, wrong numbers, storms and a network whose parts break.

#include "models/training/job.h"

namespace railyard {

namespace {

// A save writes, all else reads.
Direction moved_in(JobPhase phase) {
    return phase == JobPhase::checkpointing ? Direction::write : Direction::read;
}

}  // namespace

void FaultCounts::add(const FaultCounts& other) {
    slow_parts.slow += other.slow_parts.slow;
    slow_parts.found += other.slow_parts.found;
    storms += other.storms;
    corruptions_found += other.corruptions_found;
    nodes_blamed += other.nodes_blamed;
    network_outages += other.network_outages;
}

// Failures without a memory break nothing while the job is down: what they would hit then is as good as
// new, unless it is slow only. Those of one burst belong together.
bool TrainingJob::strike(const Strike& strike) {
    if (strike.follows && pool_.node_in(strike.slot) < 0) return true;  // it falls on nothing
    if (strike.acceptance >= pool_.acceptance(strike.slot)) return false;
    const bool noticed = nodes_failed({strike, {strike.slot}});
    if (!noticed && strike.follows) pool_.stays_broken(strike);
    return true;
}

bool TrainingJob::nodes_failed(const NodePool::Struck& struck) {
    const FailureCause& cause = causes_[struck.strike.cause];
    if (!phases_.processes_run()) {
        if (phases_.now() == JobPhase::done) return true;
        // A part is slow whether anybody runs on it or not.
        const bool slow = cause.slow && pool_.node_in(struck.strike.slot) >= 0;
        if (slow) {
            nodes_.slow_down(struck.strike);
        } else {
            ++outcome_.strikes_while_down;
        }
        return slow;
    }
    if (cause.slow) {
        nodes_.slow_down(struck.strike);
    } else if (cause.silent) {
        const bool steps = phases_.now() == JobPhase::running;
        const std::int64_t clean = steps ? work_.done_by(engine_.now()) : work_.done();
        const std::optional<Instant> shows =
            corruption_.begin(struck.strike, clean, engine_.now(), cause.detection);
        if (shows) engine_.schedule(*shows, id_, corruption_shows);
    } else if (cause.storm && feels(*cause.storm)) {
        hold_up(struck.strike, *cause.storm);
    } else if (!cause.storm || cause.storm->fatal) {
        if (cause.storm) ++outcome_.storms;
        interrupt(struck, cause.detection);
    }
    return true;
}

void TrainingJob::corruption_found() {
    const std::optional<SilentCorruption::Found> found = corruption_.find(phases_.processes_run());
    if (!found) return;
    ++outcome_.corruptions_found;
    interrupt(found->struck, {}, found->clean_steps);
}

void TrainingJob::pace_changed(std::size_t) {
    if (nodes_.conditions_changed()) pace_changed();
}

void TrainingJob::slow_part_found(std::size_t part) {
    nodes_.found_slow(part);
    pace_changed();
}

// ---- what holds it up ----

// It steps, or what it waits for is bytes to or from a store on the network that storms.
bool TrainingJob::feels(const Storm& storm) const {
    if (phases_.now() == JobPhase::running) return true;
    if (!storm.stalls_storage) return false;
    if (phases_.now() == JobPhase::checkpointing) {
        return saver_.waits() != Saver::Waits::nothing || saver_.on_a_store();
    }
    if (phases_.now() == JobPhase::first_batch) return !spec_.data->alone;
    return phases_.now() == JobPhase::restore && (spec_.recovery.restore || saver_.on_a_store());
}

void TrainingJob::hold_up(const Strike& strike, const Storm& storm) {
    ++outcome_.storms;
    held_ = phases_.now();
    if (held_ == JobPhase::running) {
        engine_.cancel(ends_);
        work_.carry(work_.stop(engine_.now()));
    } else if (held_ == JobPhase::restore && spec_.recovery.restore) {
        engine_.cancel(ends_);
        held_left_ = ends_at_ - engine_.now();
    } else if (held_ == JobPhase::checkpointing) {
        saver_.count_wait();  // the storm's time is its own
    }
    record("storm", causes_[strike.cause].name, strike.slot, work_.done());
    failed_.strike = strike;
    enter(JobPhase::storm_stall);
    end_after(storm.stall);
    if (storm.stalls_storage) stores_.set_held(client_, true);
}

// A storm is over: what it held up goes on.
void TrainingJob::go_on() {
    stores_.set_held(client_, false);
    if (held_ == JobPhase::running || held_ == JobPhase::first_batch) return start_segment();
    enter(held_);
    if (held_ == JobPhase::checkpointing) {
        saver_.wait_for(saver_.waits());
        moved_on();
    } else if (spec_.recovery.restore) {
        end_after(held_left_);
    }
}

std::string TrainingJob::no_way() const {
    const std::string over = " over the compute network: ";
    if (waits_for_network_) {
        const NetworkParts& network = *work_.network();
        return "no way is left" + over + network.names(network.broken()) + " is out";
    }
    const JobPhase now = phases_.now();
    const bool moves = now == JobPhase::checkpointing || now == JobPhase::restore ||
                       (feed_ && (now == JobPhase::running || now == JobPhase::first_batch));
    if (!moves || !way_.now().closed(moved_in(now))) return "";
    return "no way is left to the store" + over + way_.parts() + " is out";
}

// It goes round what is broken, slower, or stands still until that is mended.
void TrainingJob::network_changed() {
    if (spec_.store_ways) {
        const Direction moved = moved_in(phases_.now());
        const bool was_closed = way_.now().closed(moved);
        way_.take(spec_.store_ways(work_.network()->broken()), *work_.network());
        if (!was_closed && way_.now().closed(moved) && saver_.on_a_store()) {
            record("no_path", way_.parts(), -1, work_.done());
        }
    }
    if (phases_.now() == JobPhase::running) {
        if (work_.has_way()) return pace_changed();
        // What is on its way goes no further: the step goes on when there is a way again.
        engine_.cancel(ends_);
        work_.carry(work_.stop(engine_.now()));
    } else if (!waits_for_network_ || !work_.has_way()) {
        return;
    }
    start_segment();
}

}  // namespace railyard
