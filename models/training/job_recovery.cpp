// How a job stops and comes back: what a failure takes, who replaces the nodes, how it starts again.

#include <utility>

#include "models/training/job.h"
#include "sim/check.h"

namespace railyard {

void TrainingJob::interrupt(const NodePool::Struck& struck, Duration detection,
                            std::optional<std::int64_t> trusted) {
    const FailureCause& cause = causes_[struck.strike.cause];
    ++outcome_.interruptions[struck.strike.cause];
    engine_.cancel(ends_);
    stores_.set_held(client_, false);
    stages_.forget_stop();
    const std::int64_t lost_before = work_.counts().steps_lost;
    Duration partial{};
    if (phases_.now() == JobPhase::running) partial = work_.stop(engine_.now());
    if (phases_.now() == JobPhase::checkpointing) saver_.count_wait();
    saver_.wait_for(Saver::Waits::nothing);
    enter(JobPhase::detection);
    failed_ = struck;
    if (cause.remedy == Remedy::restart) failed_.slots.clear();
    if (failed_.slots.empty()) work_.fail_copies({});
    for (const std::int64_t slot : failed_.slots) work_.fail_copies({StateLoss::Scope::node, slot});
    if (trusted && saver_.saves()) saver_.give_up_after(*trusted);
    work_.fall_back(partial);
    record("interruption", cause.name, struck.strike.slot, work_.counts().steps_lost - lost_before);
    end_after(detection);
}

// Files lie on all of a store, so any share of it that is gone takes something of every checkpoint there.
void TrainingJob::data_lost(std::size_t store, double /*fraction*/, StorePart /*last*/) {
    if (!saver_.saves()) return;
    saver_.lose_store(store);
    const JobPhase phase = phases_.now() == JobPhase::storm_stall ? held_ : phases_.now();
    const bool state_in_gpus = phase == JobPhase::running || phase == JobPhase::checkpointing ||
                               phase == JobPhase::first_batch || phase == JobPhase::pause;
    if (state_in_gpus || phase == JobPhase::done || !spec_.recovery.recompute) return;
    const std::int64_t lost_before = work_.counts().steps_lost;
    work_.fall_back({});
    record("data_lost", "storage", -1, work_.counts().steps_lost - lost_before);
    if (phase != JobPhase::restore || spec_.recovery.restore) return;
    work_.fail_copies({StateLoss::Scope::processes});  // what it was reading is gone
    saver_.restore();
}

void TrainingJob::node_available() {
    if (phases_.now() == JobPhase::requeue_wait && nodes_.count() < stages_.stage().nodes) {
        phases_.book(engine_.now(), nodes_.gpus());  // with the nodes still missing
        get_nodes();
    } else if (!stop_pending() && nodes_.plan_growth()) {
        pace_changed();
    }
}

void TrainingJob::get_nodes() {
    work_.states_leave(nodes_.keep_first(stages_.stage().nodes));
    if (!nodes_.fill(stages_.stage().nodes)) {
        const std::optional<JobNodes::Slots> unused = nodes_.shrink();
        if (!unused) return;
        work_.states_leave(*unused);
    }
    proceed();
}

void TrainingJob::proceed() {
    const RecoverySpec& recovery = spec_.recovery;
    JobPhase next = JobPhase::restart;
    switch (phases_.now()) {
        case JobPhase::storm_stall: {
            const FailureCause& cause = causes_[failed_.strike.cause];
            if (!cause.storm->fatal) return go_on();
            return interrupt({failed_.strike, {failed_.strike.slot}}, cause.detection);
        }
        case JobPhase::pause:
            return start_segment();
        case JobPhase::detection:
            if (!failed_.slots.empty() || nodes_.change_planned()) {
                // The clock of the phase that ends here must be booked before the job holds fewer nodes.
                enter(JobPhase::requeue_wait);
                work_.states_leave(nodes_.part_with(std::exchange(failed_, {failed_.strike, {}})));
                work_.states_leave(nodes_.part_with_slow());
                return get_nodes();
            }
            if (recovery.policy == RecoveryPolicy::requeue) next = JobPhase::replacement;
            break;
        case JobPhase::requeue_wait:
            next = JobPhase::replacement;
            break;
        case JobPhase::replacement:
            break;
        case JobPhase::maintenance:
            if (nodes_.change_planned()) return change_nodes();
            if (nodes_.count() != stages_.stage().nodes && nodes_.smaller() == nullptr) {
                enter(JobPhase::requeue_wait);
                return get_nodes();
            }
            break;
        case JobPhase::restart:
            enter(JobPhase::restore);
            if (saver_.saves() && !recovery.restore) {
                saver_.restore();
                if (way_.now().closed(Direction::read) && saver_.on_a_store()) {
                    record("no_path", way_.parts(), -1, work_.done());
                }
                return;
            }
            if (saver_.saves()) saver_.give_up_newer();
            return end_after(recovery.restore.value_or(Duration{}));
        case JobPhase::restore:
            return restored();
        default:
            RY_UNREACHABLE("a phase that ends by itself");
    }
    enter(next);
    end_after(next == JobPhase::replacement ? recovery.replacement : recovery.restart);
}

// It runs again.
void TrainingJob::restored() {
    enter(JobPhase::running);
    saver_.was_read(work_.done());
    record("resumed", "", -1, work_.done());
    if (feed_) feed_->resume_at(work_.done());
    nodes_.plan_growth();
    start_segment();
    if (!outcome_.finished && corruption_.went_back_to(work_.done())) corruption_found();
    // Nodes that failed while the job was down, or that nobody has found yet.
    while (phases_.processes_run() && !outcome_.finished) {
        const NodePool::Struck struck = pool_.still_broken();
        if (struck.slots.empty()) return;
        nodes_failed(struck);
    }
}

// ---- planned stops ----

void TrainingJob::begin_stop() {
    if (!stages_.stop_planned()) return change_nodes();
    // What is saved is on the store by now. The nodes stay until the stop is over.
    const JobStages::Stop stop = stages_.begin_stop(work_.done(), engine_.now());
    record(stop.kind, stop.pause, -1, work_.done());
    if (stop.enters_stage) record("stage", stages_.stage().name, -1, work_.done());
    if (!stop.goes_on) ++outcome_.planned_interruptions;
    enter(JobPhase::maintenance);
    work_.fail_copies({StateLoss::Scope::all_memory});  // all processes are gone
    work_.go_back();                                    // a job that never saves starts again
    end_after(stop.lasts);
}

// Slow nodes leave, or a job that has shrunk grows again.
void TrainingJob::change_nodes() {
    ++outcome_.nodes_changed;
    record("nodes_changed", "", -1, work_.done());
    enter(JobPhase::requeue_wait);
    work_.fail_copies({});
    if (!saver_.saves()) work_.fall_back({});  // it starts again
    work_.states_leave(nodes_.part_with_slow());
    get_nodes();
}

}  // namespace railyard
