#include "models/training/job.h"

#include <algorithm>
#include <utility>

#include "sim/check.h"

namespace railyard {

TrainingJob::TrainingJob(CampaignEngine& engine, const JobSpec& spec,
                         const std::vector<FailureCause>& causes, NodePool& pool,
                         StoreService& stores, Ledger& ledger, std::vector<CampaignEvent>* events)
    : engine_(engine),
      spec_(spec),
      causes_(causes),
      pool_(pool),
      id_(engine.add(*this, "job")),
      phases_(ledger, events),
      stores_(stores),
      client_(stores.add_client(spec.network.read, spec.network.write)),
      way_(stores, client_),
      saver_(engine, stores, client_, spec.checkpoint, spec.nodes, *this),
      goes_back_far_(std::ranges::any_of(causes, &FailureCause::silent)),
      stages_(spec),
      nodes_(engine, spec, causes, pool, *this),
      work_(spec, stages_, nodes_, saver_, feed_, ledger),
      corruption_(pool) {
    RY_CHECK(spec.step.duration() > Duration{});
    outcome_.interruptions.resize(causes.size());
    for (std::size_t store = 0; store < spec.store_paths.size(); ++store) {
        const JobSpec::StorePath& path = spec.store_paths[store];
        stores.limit_path(client_, store, path.read, path.write);
    }
    if (spec.data) feed_.emplace(engine, stores, client_, *spec.data, *this);
}

void TrainingJob::begin() {
    began_ = engine_.now();
    stages_.begin(began_, spec_.at_risk.count());
    work_.states_leave(nodes_.keep_first(stages_.stage().nodes));
    work_.begin_with(spec_.at_risk);
    for (const Instant date : stages_.dates_after(began_)) engine_.schedule(date, id_, date_due);
    if (const MaintenanceSpec& m = spec_.maintenance; m.every > Duration{}) {
        engine_.schedule(engine_.now() + m.every - m.since % m.every, id_, maintenance_due);
    }
    if (feed_) feed_->begin(DataFeed::Use::loaders_only);
    restored();
    if (phases_.now() != JobPhase::running || work_.done() == 0) return;
    saver_.goes_on(work_.done(), work_.done(), spec_.at_risk.save_due_in, {});
    pace_changed();
}

void TrainingJob::handle(std::uint32_t kind) {
    switch (kind) {
        case segment_end:
            work_.complete();
            pass_undisturbed();
            start_segment();
            break;
        case phase_end:
            proceed();
            break;
        case maintenance_due:
            engine_.schedule(engine_.now() + spec_.maintenance.every, id_, maintenance_due);
            if (phases_.now() == JobPhase::maintenance) break;
            stages_.maintenance_due();
            pace_changed();
            break;
        case date_due:
            pace_changed();
            break;
        case corruption_shows:
            if (corruption_.shows(engine_.now())) corruption_found();
            break;
        default:
            RY_UNREACHABLE("a kind of event that the job schedules");
    }
}

void TrainingJob::enter(JobPhase phase) {
    waits_for_network_ = false;
    if (feed_) feed_->change(data_use(phase));
    saver_.steps_run(phase == JobPhase::running);
    phases_.enter(phase, engine_.now(), nodes_.gpus());
}

void TrainingJob::end_at(Instant at, Kind kind) {
    ends_at_ = at;
    ends_ = engine_.schedule_cancellable(at, id_, kind);
}

void TrainingJob::record(const char* kind, std::string cause, std::int64_t slot,
                         std::int64_t steps) {
    phases_.record({engine_.now(), kind, std::move(cause), slot, steps});
}

// ---- running ----

void TrainingJob::start_segment() {
    if (!work_.has_way()) {
        held_ = JobPhase::running;
        enter(JobPhase::storm_stall);
        waits_for_network_ = true;
        const NetworkParts& network = *work_.network();
        return record("no_path", network.names(network.broken()), -1, work_.done());
    }
    if (phases_.now() != JobPhase::running) enter(JobPhase::running);
    if (work_.carried() == Duration{} && stages_.look(work_.done(), engine_.now())) {
        record("stage", stages_.stage().name, -1, work_.done());
    }
    if (work_.all_done()) {
        // What is not saved yet counts: the job has done all that it was asked for.
        outcome_.finished = true;
        return engine_.stop();
    }
    if (feed_) feed_->look_at_epoch(work_.done());
    // The step that a storm stopped comes first.
    if (spec_.recovery.recompute && work_.carried() > Duration{}) {
        return end_at(work_.run_rest(engine_.now(), work_.take_carried()), segment_end);
    }
    if (work_.save_due() ||
        (stop_pending() && saver_.saves() && saver_.unsaved(work_.done()) > 0)) {
        return begin_checkpoint();
    }
    if (stop_pending()) return stall_over();
    if (const PauseSpec* const pause = stages_.begin_pause(work_.done(), engine_.now())) {
        record("pause", pause->name, -1, work_.done());
        enter(JobPhase::pause);
        return end_after(pause->duration);
    }
    if (feed_ && !feed_->ready()) return enter(JobPhase::first_batch);
    if (feed_) feed_->look_at_caches(work_.done());
    end_at(work_.run(engine_.now()), segment_end);
}

// A segment has ended. Saves and segments up to the next event of anybody else: each does what its events
// would do, without the queue between them. For a job that nobody follows, and to which but for events of
// others nothing comes between two saves.
void TrainingJob::pass_undisturbed() {
    if (phases_.followed() || feed_ || !stages_.none() || stop_pending() || !work_.has_way() ||
        !work_.save_due()) {
        return;
    }
    const std::optional<StoreService::Undisturbed> stall = saver_.undisturbed();
    if (!stall) return;
    work_
        .plan();  // all segments are alike: without stages a step depends on nothing that passes here
    while (work_.save_due() && !work_.all_done() &&
           engine_.nothing_else_until(engine_.now() + stall->lasts(), stall->count)) {
        enter(JobPhase::checkpointing);
        saver_.pass_save(work_.done(), *stall);
        enter(JobPhase::running);
        const std::int64_t steps = work_.steps_ahead(engine_.now());
        const Instant over = engine_.now() + steps * work_.each();
        if (!engine_.nothing_else_until(over, 1)) return;
        engine_.pass(over, id_, segment_end);
        work_.complete(steps);
    }
}

// The step under way is finished as things are now, and then it looks again at what comes next.
void TrainingJob::pace_changed() {
    if (phases_.now() != JobPhase::running) return;
    engine_.cancel(ends_);
    const Duration partial = work_.stop(engine_.now());
    if (partial == Duration{}) {
        start_segment();
    } else {
        end_at(work_.run_rest(engine_.now(), partial), segment_end);
    }
}

void TrainingJob::first_batch_there() {
    if (phases_.now() == JobPhase::first_batch) start_segment();
}

// ---- saving ----

void TrainingJob::begin_checkpoint() {
    enter(JobPhase::checkpointing);
    saver_.save(work_.done(), stop_pending());
    if (way_.now().closed(Direction::write) && saver_.on_a_store()) {
        record("no_path", way_.parts(), -1, work_.done());
    }
}

// What is due comes next.
void TrainingJob::stall_over() {
    if (!stop_pending()) {
        start_segment();
    } else if (saver_.idle()) {
        // The tier that outlasts the stop may have passed over what is saved elsewhere.
        if (saver_.saves() && saver_.lasting_steps() < work_.done()) {
            begin_checkpoint();
        } else {
            begin_stop();
        }
    } else {
        if (phases_.now() != JobPhase::checkpointing) enter(JobPhase::checkpointing);
        saver_.wait_for(Saver::Waits::upload);  // a planned stop waits until the state is safe
    }
}

void TrainingJob::moved_on() {
    if (phases_.now() != JobPhase::checkpointing) return;
    const Saver::Waits come = saver_.come();
    if (come == Saver::Waits::buffer) saver_.begin_stall(work_.done(), stop_pending());
    if (come == Saver::Waits::upload) stall_over();
}

void TrainingJob::safe(const SavedStates::State& state) {
    if (!goes_back_far_) work_.keep_stored();
    record("checkpoint_safe", "", -1, state.steps);
}

// ---- the end ----

void TrainingJob::end() {
    const JobPhase last = phases_.now();
    const bool steps = last == JobPhase::running && !outcome_.finished;
    const Duration partial = steps ? work_.stop(engine_.now()) : work_.carried();
    phases_.end(engine_.now(), nodes_.gpus());
    if (last == JobPhase::pause || last == JobPhase::maintenance) {
        outcome_.pause_left = ends_at_ - engine_.now();
        outcome_.pause_restarts = last == JobPhase::maintenance;
    }
    outcome_.at_risk = work_.at_risk();
    work_.end(partial);
    if (saver_.saves()) {
        if (last == JobPhase::checkpointing) saver_.count_wait();
        saver_.end();
        outcome_.checkpoint = saver_.outcome();
        RY_CHECK(outcome_.checkpoint.stall.total() == phases_.times().saving);
    }
    outcome_.job_time = engine_.now() - began_;
    record(outcome_.finished ? "finished" : "campaign_end", "", -1, work_.counts().steps_kept);
}

JobOutcome TrainingJob::outcome() const {
    JobOutcome out = outcome_;
    static_cast<StepCounts&>(out) = work_.counts();
    static_cast<PhaseTimes&>(out) = phases_.times();
    out.checkpoint_stall += out.saving;
    out.lost_work = work_.lost();
    out.stages =
        stages_.outcome(work_.done(), work_.done() - outcome_.at_risk.count(), engine_.now());
    out.pauses = stages_.pauses();
    out.had_pause = stages_.had_pause();
    out.slow_parts = nodes_.slow_parts();
    out.nodes_blamed = nodes_.blamed();
    out.shrinks = nodes_.shrinks();
    if (work_.network() != nullptr) out.network_outages = work_.network()->outages();
    if (feed_) out.data_starved = feed_->starved();
    return out;
}

}  // namespace railyard
