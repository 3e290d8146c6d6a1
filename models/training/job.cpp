#include "models/training/job.h"

#include <algorithm>
#include <utility>

#include "sim/check.h"
#include "sim/integers.h"

namespace railyard {

namespace {

struct PhaseTraits {
    std::string_view name;
    Category booked;                                 // all its time; of running, by a step's parts
    DataFeed::Use data = DataFeed::Use::no_loaders;  // loaders live in the job's processes
    Duration JobOutcome::*recovery = nullptr;        // where it counts after a failure
};

const PhaseTraits& traits_of(JobPhase phase) {
    using enum DataFeed::Use;
    using Out = JobOutcome;
    static constexpr PhaseTraits phases[] = {
        {"running", Category::productive, steps},
        {"checkpointing", Category::checkpoint_stall, loaders_only},
        {"storm_stall", Category::storm_stall, loaders_only},
        {"detection", Category::detection, no_loaders, &Out::detection},
        {"replacement", Category::replacement, no_loaders, &Out::replacement},
        {"requeue_wait", Category::requeue_wait, no_loaders, &Out::requeue_wait},
        {"restart", Category::restart, no_loaders, &Out::restart},
        {"restore", Category::restore, loaders_only, &Out::restore},
        {"maintenance", Category::planned_maintenance},
        {"first_batch", Category::data_wait, loaders_only},
        {"pause", Category::planned_maintenance, loaders_only},
        {"done", Category::productive},
    };
    return phases[static_cast<std::size_t>(phase)];
}

}  // namespace

std::string_view phase_name(JobPhase phase) {
    return traits_of(phase).name;
}

TrainingJob::TrainingJob(CampaignEngine& engine, const JobSpec& spec,
                         const std::vector<FailureCause>& causes, NodePool& pool,
                         StoreService& stores, Ledger& ledger, std::vector<CampaignEvent>* events)
    : engine_(engine),
      spec_(spec),
      causes_(causes),
      pool_(pool),
      ledger_(ledger),
      events_(events),
      id_(engine.add(*this, "job")),
      book_(ledger),
      stages_(spec),
      stores_(stores),
      client_(stores.add_client(spec.network.read, spec.network.write)),
      checkpointer_(engine, stores, client_, spec.checkpoint, spec.nodes, *this),
      nodes_(engine, spec, causes, pool, *this),
      corruption_(pool) {
    RY_CHECK(spec.step.duration() > Duration{});
    outcome_.interruptions.resize(causes.size());
    goes_back_far_ = std::ranges::any_of(causes, &FailureCause::silent);
    for (std::size_t store = 0; store < spec.store_paths.size(); ++store) {
        const JobSpec::StorePath& path = spec.store_paths[store];
        stores.limit_path(client_, store, path.read, path.write);
    }
    if (spec.data) feed_.emplace(engine, stores, client_, *spec.data, *this);
}

void TrainingJob::begin() {
    began_ = engine_.now();
    stages_.begin(began_);
    states_leave(nodes_.keep_first(stages_.stage().nodes));
    for (const Instant date : stages_.dates_after(began_)) engine_.schedule(date, id_, date_due);
    if (const MaintenanceSpec& m = spec_.maintenance; m.every > Duration{}) {
        engine_.schedule(engine_.now() + m.every - m.since % m.every, id_, maintenance_due);
    }
    if (feed_) feed_->begin(DataFeed::Use::loaders_only);
    resume();
}

void TrainingJob::handle(std::uint32_t kind) {
    switch (kind) {
        case segment_end:
            complete_steps(running_.steps());
            pass_undisturbed();
            start_segment();
            break;
        case phase_end:
            proceed_from(phase_);
            break;
        case maintenance_due:
            engine_.schedule(engine_.now() + spec_.maintenance.every, id_, maintenance_due);
            if (phase_ == JobPhase::maintenance) break;
            maintenance_pending_ = true;
            if (phase_ == JobPhase::running) finish_step_under_way();
            break;
        case date_due:
            if (phase_ == JobPhase::running) finish_step_under_way();
            break;
        case corruption_shows:
            if (corruption_.shows(engine_.now())) corruption_found();
            break;
        default:
            RY_UNREACHABLE("a kind of event that the job schedules");
    }
}

// ---- running ----

void TrainingJob::resume() {
    enter(JobPhase::running);
    recovering_from_failure_ = false;
    checkpointer_.was_read(done());
    record("resumed", "", -1, done());
    if (feed_) feed_->resume_at(done());
    if (nodes_.could_grow()) change_pending_ = true;
    start_segment();
    if (!outcome_.finished && corruption_.went_back_to(done())) corruption_found();
    meet_what_is_broken();
}

const StepTime& TrainingJob::step() const {
    const SmallerJob* const smaller = nodes_.smaller();
    return smaller == nullptr ? stages_.level_at(done()).step : smaller->step;
}

std::int64_t TrainingJob::replicas() const {
    const SmallerJob* const smaller = nodes_.smaller();
    return smaller == nullptr ? spec_.replicas : smaller->replicas;
}

// Batches of all replicas count, whoever computes them.
std::int64_t TrainingJob::steps_to_target() const {
    const std::int64_t left =
        (spec_.target_steps - done()) * spec_.replicas + book_.replica_steps_missing();
    return ceil_div(std::max<std::int64_t>(0, left), replicas());
}

StepTime TrainingJob::next_step() const {
    StepTime out = step();
    if (checkpointer_.uploading()) out.upload = spec_.checkpoint.upload_step_penalty;
    out.degraded += slowed_by_parts();
    out.data_wait += extra_wait();
    return out;
}

void TrainingJob::start_segment() {
    if (!slowed_by_network()) return stand_still();
    if (phase_ != JobPhase::running) enter(JobPhase::running);
    if (running_.carried() == Duration{} && stages_.look(done(), engine_.now())) {
        record("stage", stages_.stage().name, -1, done());
    }
    if (stages_.finished(done()) || (spec_.target_steps > 0 && steps_to_target() == 0)) {
        // What is not saved yet counts: the job has done all that it was asked for.
        outcome_.finished = true;
        engine_.stop();
        return;
    }
    if (feed_) feed_->look_at_epoch(done());
    // The step that a storm stopped comes first.
    if (spec_.recovery.recompute && running_.carried() > Duration{}) {
        resume_step(running_.take_carried());
        return;
    }
    if (checkpointer_.due(done(), stages_.checkpoint_steps()) ||
        (stop_pending() && saves() && checkpointer_.unsaved(done()) > 0)) {
        begin_checkpoint();
        return;
    }
    if (stop_pending()) {
        after_checkpoint();
        return;
    }
    if (const PauseSpec* const pause = stages_.begin_pause(done(), engine_.now())) {
        begin_pause(*pause);
        return;
    }
    if (feed_ && !feed_->ready()) {
        enter(JobPhase::first_batch);
        return;
    }
    if (feed_) feed_->look_at_caches(done());
    plan_segment();
    std::int64_t steps = steps_ahead();
    // One that has waited long for data is over.
    if (running_.carried() > running_.each().duration()) steps = 1;
    run_steps(steps, running_.take_carried());
}

void TrainingJob::plan_segment() {
    running_.plan(next_step(), checkpointer_.uploading(), slowed_by_parts());
}

std::int64_t TrainingJob::steps_ahead() const {
    // Far enough for any campaign, near enough for the clock.
    std::int64_t steps = (Instant::max() - engine_.now()) / running_.each().duration() / 2;
    RY_CHECK(steps > 0);
    steps = std::min(steps, stages_.steps_ahead(done()));
    if (saves()) {
        steps = std::min(
            steps, checkpointer_.steps_until_due(done(), stages_.checkpoint_steps(),
                                                 running_.each().duration(), running_.carried()));
    }
    if (feed_) steps = std::min(steps, feed_->steps_ahead(done()));
    if (spec_.target_steps > 0) steps = std::min(steps, steps_to_target());
    return steps;
}

// Nobody listens to what it does, and but for events of others nothing comes between two saves.
bool TrainingJob::only_steps_and_saves() const {
    return events_ == nullptr && watcher_ == nullptr && !feed_ && stages_.none() &&
           !stop_pending() && slowed_by_network();
}

// A segment has ended. Saves and segments up to the next event of anybody else: each does what its events
// would do, without the queue between them.
void TrainingJob::pass_undisturbed() {
    if (!only_steps_and_saves() || !checkpointer_.due(done(), stages_.checkpoint_steps())) return;
    const std::optional<StoreService::Undisturbed> stall = checkpointer_.undisturbed();
    if (!stall) return;
    plan_segment();  // all segments are alike: without stages a step depends on nothing that passes here
    while (checkpointer_.due(done(), stages_.checkpoint_steps()) &&
           !(spec_.target_steps > 0 && steps_to_target() == 0) &&
           engine_.nothing_else_until(engine_.now() + stall->lasts(), stall->count)) {
        enter(JobPhase::checkpointing);
        checkpointer_.pass_save(done(), *stall);
        enter(JobPhase::running);
        const std::int64_t steps = steps_ahead();
        const Instant over = engine_.now() + steps * running_.each().duration();
        if (!engine_.nothing_else_until(over, 1)) return;
        engine_.pass(over, id_, segment_end);
        complete_steps(steps);
    }
}

void TrainingJob::run_steps(std::int64_t steps, Duration already_done) {
    const Instant over =
        running_.begin(engine_.now(), steps, already_done, step().data_wait, extra_wait());
    phase_event_ = engine_.schedule_cancellable(over, id_, segment_end);
}

void TrainingJob::complete_steps(std::int64_t steps) {
    book_.add(steps, {gpus_of_steps(), spec_.replicas - replicas(), running_.slow()},
              running_.each());
}

Duration TrainingJob::stop_steps() {
    complete_steps(running_.whole(engine_.now()));
    return running_.into_next(engine_.now());
}

void TrainingJob::finish_step_under_way() {
    engine_.cancel(phase_event_);
    const Duration partial = stop_steps();
    if (partial == Duration{}) {
        start_segment();
    } else {
        resume_step(partial);
    }
}

// What is left of the step under way takes as long as things are now.
void TrainingJob::resume_step(Duration partial) {
    running_.look_at_upload(checkpointer_.uploading(), partial,
                            spec_.checkpoint.upload_step_penalty, step().data_wait);
    run_steps(1, partial);
}

// ---- saving ----

void TrainingJob::begin_checkpoint() {
    enter(JobPhase::checkpointing);
    checkpointer_.save(done(), stop_pending());
}

void TrainingJob::after_checkpoint() {
    if (!stop_pending()) {
        start_segment();
    } else if (checkpointer_.idle()) {
        // The tier that outlasts the stop may have passed over what is saved elsewhere.
        if (saves() && checkpointer_.lasting_steps() < done()) {
            begin_checkpoint();
        } else {
            begin_stop();
        }
    } else {
        if (phase_ != JobPhase::checkpointing) enter(JobPhase::checkpointing);
        checkpointer_.wait_for(
            Saver::Waits::upload);  // a planned stop waits until the state is safe
    }
}

void TrainingJob::uploads_changed() {
    if (phase_ == JobPhase::running) finish_step_under_way();
}

void TrainingJob::data_wait_changed() {
    if (phase_ == JobPhase::running) finish_step_under_way();
}

void TrainingJob::first_batch_there() {
    if (phase_ == JobPhase::first_batch) start_segment();
}

void TrainingJob::moved_on() {
    if (phase_ != JobPhase::checkpointing) return;
    const Saver::Waits come = checkpointer_.come();
    if (come == Saver::Waits::buffer) checkpointer_.begin_stall(done(), stop_pending());
    if (come == Saver::Waits::upload) after_checkpoint();
}

void TrainingJob::safe(const SavedStates::State& state) {
    if (!goes_back_far_) book_.keep(checkpointer_.stored_steps());
    record("checkpoint_safe", "", -1, state.steps);
}

// ---- booking ----

void TrainingJob::enter(JobPhase phase) {
    if (phase_ != JobPhase::running && phase_ != JobPhase::done) book_phase();
    phase_ = phase;
    waits_for_network_ = false;
    phase_since_ = engine_.now();
    if (phases_ != nullptr) phases_->push_back({engine_.now(), phase});
    if (feed_) feed_->change(traits_of(phase).data);
    checkpointer_.steps_run(phase == JobPhase::running);
    if (watcher_ != nullptr) watcher_->phase_changed(phase);
}

void TrainingJob::end_phase_after(Duration span, Kind kind) {
    phase_ends_ = engine_.now() + span;
    phase_event_ = engine_.schedule_cancellable(phase_ends_, id_, kind);
}

void TrainingJob::book_phase() {
    const Duration span = engine_.now() - phase_since_;
    phase_since_ = engine_.now();
    RY_CHECK(phase_ != JobPhase::running && phase_ != JobPhase::done);
    const PhaseTraits& phase = traits_of(phase_);
    ledger_.book(phase.booked, gpus(), span);
    if (phase_ == JobPhase::first_batch) {
        outcome_.first_batch += GpuNanoseconds{gpus()} * span.count();
    }
    if (phase_ == JobPhase::storm_stall) outcome_.storm_stall += span;
    if (phase_ == JobPhase::pause) outcome_.paused += span;
    if (phase_ == JobPhase::checkpointing) stalled_ += span;
    if (recovering_from_failure_ && phase.recovery != nullptr) outcome_.*phase.recovery += span;
}

bool TrainingJob::exposed() const {
    return phase_ == JobPhase::restart || traits_of(phase_).data != DataFeed::Use::no_loaders;
}

void TrainingJob::end() {
    Duration partial = running_.carried();
    if (phase_ == JobPhase::running && !outcome_.finished) {
        partial = stop_steps();
    } else if (phase_ != JobPhase::running && phase_ != JobPhase::done) {
        book_phase();
    }
    outcome_.had_pause = stages_.had_pause();
    outcome_.pauses = stages_.pauses();
    if (phase_ == JobPhase::pause || phase_ == JobPhase::maintenance) {
        outcome_.pause_left = phase_ends_ - engine_.now();
        outcome_.pause_restarts = phase_ == JobPhase::maintenance;
    }
    // The campaign's end loses nothing: what is done counts, saved or not.
    book_.keep(done());
    book_.cut_off(running_.each(), gpus_of_steps(), partial);
    static_cast<StepCounts&>(outcome_) = book_.counts();
    outcome_.checkpoint_stall += stalled_;
    if (!spec_.stages.empty()) outcome_.stepping += partial;
    outcome_.stages = stages_.outcome(done(), engine_.now());
    if (saves()) {
        if (phase_ == JobPhase::checkpointing) checkpointer_.count_wait();
        checkpointer_.end();
        outcome_.checkpoint = checkpointer_.outcome();
        RY_CHECK(outcome_.checkpoint.stall.total() == stalled_);
    }
    outcome_.slow_parts = nodes_.slow_parts();
    outcome_.nodes_blamed = nodes_.blamed();
    outcome_.shrinks = nodes_.shrinks();
    if (network_ != nullptr) outcome_.network_outages = network_->outages();
    if (feed_) outcome_.data_starved = feed_->starved();
    outcome_.job_time = engine_.now() - began_;
    record(outcome_.finished ? "finished" : "campaign_end", "", -1, outcome_.steps_kept);
    phase_ = JobPhase::done;
    if (phases_ != nullptr) phases_->push_back({engine_.now(), phase_});
}

void TrainingJob::record(const char* kind, std::string cause, std::int64_t slot,
                         std::int64_t steps) {
    if (events_ != nullptr)
        events_->push_back({engine_.now(), kind, std::move(cause), slot, steps});
}

}  // namespace railyard
