#include "models/training/job.h"

#include <algorithm>
#include <utility>

#include "sim/check.h"
#include "sim/integers.h"

namespace railyard {

namespace {

Category category_of(JobPhase phase) {
    switch (phase) {
        case JobPhase::checkpointing:
            return Category::checkpoint_stall;
        case JobPhase::storm_stall:
            return Category::storm_stall;
        case JobPhase::detection:
            return Category::detection;
        case JobPhase::replacement:
            return Category::replacement;
        case JobPhase::requeue_wait:
            return Category::requeue_wait;
        case JobPhase::restart:
            return Category::restart;
        case JobPhase::restore:
            return Category::restore;
        case JobPhase::maintenance:
            return Category::planned_maintenance;
        case JobPhase::running:
        case JobPhase::done:
            break;
    }
    RY_UNREACHABLE("a phase that is not booked as a whole");
}

// Loaders live in the job's processes.
DataFeed::Use use_of_data(JobPhase phase) {
    switch (phase) {
        case JobPhase::running:
            return DataFeed::Use::steps;
        case JobPhase::checkpointing:
        case JobPhase::storm_stall:
        case JobPhase::restore:
            return DataFeed::Use::loaders_only;
        default:
            return DataFeed::Use::no_loaders;
    }
}

}  // namespace

std::string_view phase_name(JobPhase phase) {
    constexpr std::string_view names[] = {
        "running",      "checkpointing", "storm_stall", "detection",   "replacement",
        "requeue_wait", "restart",       "restore",     "maintenance", "done"};
    return names[static_cast<std::size_t>(phase)];
}

TrainingJob::TrainingJob(CampaignEngine& engine, const JobSpec& spec,
                         const std::vector<FailureCause>& causes, NodeSupply& supply,
                         StoreService& stores, Ledger& ledger, std::vector<CampaignEvent>* events)
    : engine_(engine),
      spec_(spec),
      causes_(causes),
      supply_(supply),
      ledger_(ledger),
      events_(events),
      id_(engine.add(*this, "job")),
      client_(stores.add_client(spec.network.read, spec.network.write)),
      checkpointer_(engine, stores, client_, spec.checkpoint, spec.nodes, *this) {
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
    if (spec_.maintenance.every > Duration{}) {
        engine_.schedule(engine_.now() + spec_.maintenance.every, id_, maintenance_due);
    }
    if (feed_) feed_->begin(DataFeed::Use::loaders_only);
    resume();
}

void TrainingJob::handle(std::uint32_t kind) {
    switch (kind) {
        case segment_end:
            complete_steps(segment_steps_);
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
        default:
            RY_UNREACHABLE("a kind of event that the job schedules");
    }
}

// ---- running ----

void TrainingJob::resume() {
    enter(JobPhase::running);
    recovering_from_failure_ = false;
    steps_since_checkpoint_ = 0;
    saved_steps_ = done_.steps;
    // The state that was just read counts as a checkpoint that ends now, so the next one starts one
    // interval after that one's start.
    if (spec_.checkpoint.interval_wall > Duration{}) {
        checkpoint_due_ =
            engine_.now() + spec_.checkpoint.interval_wall - spec_.checkpoint.stall_alone;
    }
    record("resumed", "", -1, done_.steps);
    start_segment();
}

Duration TrainingJob::step_duration(bool slowed) const {
    return spec_.step.duration() + (slowed ? spec_.checkpoint.upload_step_penalty : Duration{});
}

Duration TrainingJob::next_step_duration() const {
    return step_duration(checkpointer_.uploading()) + (feed_ ? feed_->extra_wait() : Duration{});
}

Duration TrainingJob::segment_step() const {
    return spec_.step.duration() + segment_penalty_ + segment_wait_;
}

bool TrainingJob::checkpoint_due() const {
    if (!saves() || steps_since_checkpoint_ == 0) return false;
    if (spec_.checkpoint.interval_steps > 0) {
        return steps_since_checkpoint_ >= spec_.checkpoint.interval_steps;
    }
    return engine_.now() >= checkpoint_due_;
}

std::int64_t TrainingJob::steps_until_due() const {
    if (spec_.checkpoint.interval_steps > 0) {
        return spec_.checkpoint.interval_steps - steps_since_checkpoint_;
    }
    const Duration wait = checkpoint_due_ - engine_.now() + carried_;
    return std::max<std::int64_t>(1, ceil_div(wait.count(), next_step_duration().count()));
}

void TrainingJob::start_segment() {
    if (phase_ != JobPhase::running) enter(JobPhase::running);
    if (spec_.target_steps > 0 && done_.steps == spec_.target_steps) {
        // What is not saved yet counts: the job has done all that it was asked for.
        outcome_.finished = true;
        engine_.stop();
        return;
    }
    // The step that a storm stopped comes first.
    if (spec_.recovery.recompute && carried_ > Duration{}) {
        resume_step(std::exchange(carried_, {}));
        return;
    }
    if (checkpoint_due() || (maintenance_pending_ && saves() && unsaved())) {
        begin_checkpoint();
        return;
    }
    if (maintenance_pending_) {
        after_checkpoint();
        return;
    }
    if (feed_ && feed_->cold() && done_.steps >= spec_.data->cold_steps) feed_->warm_up();
    const Duration step = next_step_duration();
    // Far enough for any campaign, near enough for the clock.
    std::int64_t steps = (Instant::max() - engine_.now()) / step / 2;
    RY_CHECK(steps > 0);
    if (saves()) steps = std::min(steps, steps_until_due());
    if (feed_ && feed_->cold()) steps = std::min(steps, spec_.data->cold_steps - done_.steps);
    if (carried_ > step) steps = 1;  // it waited long for data, and is over
    if (spec_.target_steps > 0) steps = std::min(steps, spec_.target_steps - done_.steps);
    segment_slowed_ = checkpointer_.uploading();
    segment_penalty_ = segment_slowed_ ? spec_.checkpoint.upload_step_penalty : Duration{};
    run_steps(steps, std::exchange(carried_, {}));
}

void TrainingJob::run_steps(std::int64_t steps, Duration already_done) {
    segment_start_ = engine_.now() - already_done;
    segment_steps_ = steps;
    // A step that has waited long enough, as things are now, is over.
    segment_wait_ = std::max(feed_ ? feed_->extra_wait() : Duration{},
                             already_done - spec_.step.duration() - segment_penalty_);
    phase_event_ =
        engine_.schedule_cancellable(segment_start_ + steps * segment_step(), id_, segment_end);
}

void TrainingJob::complete_steps(std::int64_t steps) {
    done_.steps += steps;
    done_.upload_penalty += steps * segment_penalty_;
    done_.data_wait += steps * segment_wait_;
    steps_since_checkpoint_ += steps;
}

Duration TrainingJob::stop_segment() {
    const Duration elapsed = engine_.now() - segment_start_;
    const Duration step = segment_step();
    complete_steps(elapsed / step);
    return elapsed % step;
}

void TrainingJob::finish_step_under_way() {
    engine_.cancel(phase_event_);
    const Duration partial = stop_segment();
    if (partial == Duration{}) {
        start_segment();
    } else {
        resume_step(partial);
    }
}

// What is left of the step under way takes as long as things are now.
void TrainingJob::resume_step(Duration partial) {
    const bool slowed = checkpointer_.uploading();
    const Duration left = spec_.step.duration() + segment_penalty_ - partial;
    if (slowed != segment_slowed_ && left > Duration{}) {
        using Wide = __int128;
        const Wide before = step_duration(segment_slowed_).count();
        const Wide scaled =
            (Wide{left.count()} * step_duration(slowed).count() + before - 1) / before;
        segment_penalty_ += Duration(static_cast<std::int64_t>(scaled)) - left;
    }
    segment_slowed_ = slowed;
    run_steps(1, partial);
}

void TrainingJob::keep(const Work& work) {
    outcome_.steps_kept += work.steps;
    const std::int64_t g = spec_.gpus();
    ledger_.book(Category::productive, g, work.steps * spec_.step.compute);
    ledger_.book(Category::exposed_communication, g, work.steps * spec_.step.exposed_communication);
    ledger_.book(Category::pipeline_bubble, g, work.steps * spec_.step.bubble);
    ledger_.book(Category::straggler_wait, g, work.steps * spec_.step.straggler_wait);
    ledger_.book(Category::degraded, g, work.steps * spec_.step.degraded);
    ledger_.book(Category::throttled, g, work.steps * spec_.step.throttled);
    ledger_.book(Category::data_wait, g, work.steps * spec_.step.data_wait + work.data_wait);
    ledger_.book(Category::checkpoint_stall, g, work.upload_penalty);
}

// ---- saving ----

void TrainingJob::begin_checkpoint() {
    enter(JobPhase::checkpointing);
    if (spec_.checkpoint.interval_wall > Duration{}) {
        // The grid of start times stands; what a late checkpoint missed of it is not made up for.
        const Duration interval = spec_.checkpoint.interval_wall;
        const Duration late = engine_.now() - checkpoint_due_;
        if (late >= Duration{}) checkpoint_due_ += (late / interval + 1) * interval;
    }
    if (checkpointer_.can_begin()) {
        begin_stall();
    } else {
        wait_for(Saving::buffer);  // back-pressure
    }
}

void TrainingJob::wait_for(Saving what) {
    saving_ = what;
    waiting_since_ = engine_.now();
}

void TrainingJob::stop_waiting() {
    const Duration waited = engine_.now() - waiting_since_;
    if (saving_ == Saving::buffer) checkpointer_.waited(waited, Wall::back_pressure);
    if (saving_ == Saving::upload) checkpointer_.waited(waited, Wall::planned_stop);
    saving_ = Saving::nothing;
}

void TrainingJob::begin_stall() {
    saving_ = Saving::stall;
    saved_steps_ = done_.steps;
    checkpointer_.begin(done_, maintenance_pending_);
}

void TrainingJob::stall_over() {
    saving_ = Saving::nothing;
    steps_since_checkpoint_ = 0;
    after_checkpoint();
}

void TrainingJob::after_checkpoint() {
    if (!maintenance_pending_) {
        start_segment();
    } else if (checkpointer_.idle()) {
        // The tier that outlasts the stop may have passed over what is saved elsewhere.
        if (saves() && checkpointer_.lasting_steps() < done_.steps) {
            begin_checkpoint();
        } else {
            begin_maintenance();
        }
    } else {
        if (phase_ != JobPhase::checkpointing) enter(JobPhase::checkpointing);
        wait_for(Saving::upload);  // a planned stop waits until the state is safe
    }
}

void TrainingJob::uploads_changed() {
    if (phase_ == JobPhase::running) finish_step_under_way();
}

void TrainingJob::data_wait_changed() {
    if (phase_ == JobPhase::running) finish_step_under_way();
}

void TrainingJob::moved_on() {
    if (phase_ != JobPhase::checkpointing) return;
    if (saving_ == Saving::buffer && checkpointer_.can_begin()) {
        stop_waiting();
        begin_stall();
    } else if (saving_ == Saving::upload && checkpointer_.idle()) {
        stop_waiting();
        after_checkpoint();
    }
}

void TrainingJob::safe(const SavedStates::State& state) {
    record("checkpoint_safe", "", -1, state.work.steps);
}

void TrainingJob::begin_maintenance() {
    maintenance_pending_ = false;
    ++outcome_.planned_interruptions;
    record("maintenance", "", -1, done_.steps);
    enter(JobPhase::maintenance);
    fail_checkpoints({StateLoss::Scope::all_memory});
    if (spec_.recovery.recompute) {  // a job that never saves starts again
        ledger_.book(Category::lost_work, spec_.gpus(), lose_what_is_not_saved());
    }
    end_phase_after(spec_.maintenance.duration, phase_end);
}

// ---- failing and coming back ----

void TrainingJob::strike(const Strike& strike) {
    if (strike.acceptance >= supply_.acceptance(strike.slot)) return;
    const bool exposed = phase_ == JobPhase::running || phase_ == JobPhase::checkpointing ||
                         phase_ == JobPhase::storm_stall || phase_ == JobPhase::restart ||
                         phase_ == JobPhase::restore;
    if (!exposed) {
        if (phase_ != JobPhase::done) ++outcome_.strikes_while_down;
        return;
    }
    const std::optional<Storm>& storm = causes_[strike.cause].storm;
    if (!storm) return interrupt(strike);
    const bool felt = phase_ == JobPhase::running || (storm->stalls_storage && on_the_store());
    if (!felt && !storm->fatal) return;
    ++outcome_.storms;
    if (felt) {
        hold_up(strike, *storm);
    } else {
        interrupt(strike);
    }
}

bool TrainingJob::on_the_store() const {
    if (phase_ == JobPhase::checkpointing) {
        return saving_ != Saving::stall || checkpointer_.on_a_store();
    }
    return phase_ == JobPhase::restore && (spec_.recovery.restore || checkpointer_.on_a_store());
}

void TrainingJob::hold_up(const Strike& strike, const Storm& storm) {
    if (phase_ == JobPhase::running) {
        engine_.cancel(phase_event_);
        carried_ += stop_segment();
    } else if (phase_ == JobPhase::restore && spec_.recovery.restore) {
        engine_.cancel(phase_event_);
        held_left_ = phase_ends_ - engine_.now();
    } else if (phase_ == JobPhase::checkpointing) {
        const Saving waiting = saving_;
        stop_waiting();  // the storm's time is its own
        saving_ = waiting;
    }
    record("storm", causes_[strike.cause].name, strike.slot, done_.steps);
    failure_ = strike;
    held_ = phase_;
    enter(JobPhase::storm_stall);
    end_phase_after(storm.stall, phase_end);
    if (storm.stalls_storage) {
        network_held_ = true;
        checkpointer_.hold(true);
    }
}

void TrainingJob::release_network() {
    if (std::exchange(network_held_, false)) checkpointer_.hold(false);
}

// A storm is over: what it held up goes on.
void TrainingJob::go_on() {
    release_network();
    if (held_ == JobPhase::running) return start_segment();
    enter(held_);
    if (held_ == JobPhase::checkpointing) {
        waiting_since_ = engine_.now();
        moved_on();
    } else if (spec_.recovery.restore) {
        end_phase_after(held_left_, phase_end);
    }
}

void TrainingJob::interrupt(const Strike& strike) {
    const FailureCause& cause = causes_[strike.cause];
    ++outcome_.interruptions[strike.cause];
    engine_.cancel(phase_event_);
    release_network();
    const std::int64_t lost_before = outcome_.steps_lost;
    Duration partial{};
    if (phase_ == JobPhase::running) partial = stop_segment();
    if (phase_ == JobPhase::checkpointing) stop_waiting();
    saving_ = Saving::nothing;
    const bool node_gone = cause.remedy != Remedy::restart;
    enter(JobPhase::detection);
    fail_checkpoints(
        {node_gone ? StateLoss::Scope::node : StateLoss::Scope::processes, strike.slot});
    if (spec_.recovery.recompute) {
        lose_work(partial + std::exchange(carried_, {}));
    } else {
        carried_ += partial;
    }
    record("interruption", cause.name, strike.slot, outcome_.steps_lost - lost_before);
    failure_ = strike;
    recovering_from_failure_ = true;
    end_phase_after(cause.detection, phase_end);
}

void TrainingJob::fail_checkpoints(const StateLoss& loss) {
    if (saves()) checkpointer_.fail(loss);
}

// Goes back to the newest state that is left. What the steps since have taken.
Duration TrainingJob::lose_what_is_not_saved() {
    const Work left = saves() ? checkpointer_.newest().work : Work{};
    const Work lost = done_ - left;
    done_ = left;
    outcome_.steps_lost += lost.steps;
    return lost.steps * spec_.step.duration() + lost.upload_penalty + lost.data_wait;
}

void TrainingJob::lose_work(Duration partial) {
    const Duration lost = partial + lose_what_is_not_saved();
    outcome_.lost_work += lost;
    ledger_.book(Category::lost_work, spec_.gpus(), lost);
}

// Files lie on all of a store, so any share of it that is gone takes something of every checkpoint there.
void TrainingJob::data_lost(std::size_t store, double /*fraction*/, StorePart /*last*/) {
    if (!saves()) return;
    checkpointer_.lose_store(store);
    const JobPhase phase = phase_ == JobPhase::storm_stall ? held_ : phase_;
    const bool state_in_gpus = phase == JobPhase::running || phase == JobPhase::checkpointing;
    if (state_in_gpus || phase == JobPhase::done || !spec_.recovery.recompute) return;
    const std::int64_t lost_before = outcome_.steps_lost;
    lose_work({});
    record("data_lost", "storage", -1, outcome_.steps_lost - lost_before);
    if (phase != JobPhase::restore || spec_.recovery.restore) return;
    fail_checkpoints({StateLoss::Scope::processes});  // what it was reading is gone
    checkpointer_.restore();
}

void TrainingJob::drain() {
    const FailureCause& cause = causes_[failure_.cause];
    if (cause.remedy == Remedy::restart) {
        proceed_from(JobPhase::replacement);
        return;
    }
    // The clock of the phase that ends here must be booked before the job holds fewer nodes.
    enter(JobPhase::requeue_wait);
    supply_.remove(failure_, cause);
    nodes_missing_ = 1;
    if (supply_.fill(failure_.slot)) proceed_from(JobPhase::requeue_wait);
}

void TrainingJob::node_available() {
    if (phase_ != JobPhase::requeue_wait || nodes_missing_ == 0) return;
    book_phase();  // with the node still missing
    if (supply_.fill(failure_.slot)) proceed_from(JobPhase::requeue_wait);
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
                interrupt(failure_);
            } else {
                go_on();
            }
            return;
        case JobPhase::detection:
            drain();
            return;
        case JobPhase::requeue_wait:
            nodes_missing_ = 0;
            next = JobPhase::replacement;
            break;
        case JobPhase::replacement:
        case JobPhase::maintenance:
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

void TrainingJob::restored() {
    resume();
}

// ---- booking ----

void TrainingJob::enter(JobPhase phase) {
    if (phase_ != JobPhase::running && phase_ != JobPhase::done) book_phase();
    phase_ = phase;
    phase_since_ = engine_.now();
    if (phases_ != nullptr) phases_->push_back({engine_.now(), phase});
    if (feed_) feed_->change(use_of_data(phase));
    if (watcher_ != nullptr) watcher_->phase_changed(phase);
}

void TrainingJob::end_phase_after(Duration span, Kind kind) {
    phase_ends_ = engine_.now() + span;
    phase_event_ = engine_.schedule_cancellable(phase_ends_, id_, kind);
}

void TrainingJob::book_phase() {
    const Duration span = engine_.now() - phase_since_;
    phase_since_ = engine_.now();
    ledger_.book(category_of(phase_), (spec_.nodes - nodes_missing_) * spec_.gpus_per_node, span);
    if (phase_ == JobPhase::storm_stall) outcome_.storm_stall += span;
    if (phase_ == JobPhase::checkpointing) stalled_ += span;
    if (!recovering_from_failure_) return;
    switch (phase_) {
        case JobPhase::detection:
            outcome_.detection += span;
            break;
        case JobPhase::replacement:
            outcome_.replacement += span;
            break;
        case JobPhase::requeue_wait:
            outcome_.requeue_wait += span;
            break;
        case JobPhase::restart:
            outcome_.restart += span;
            break;
        case JobPhase::restore:
            outcome_.restore += span;
            break;
        default:
            break;
    }
}

void TrainingJob::end() {
    Duration partial = carried_;
    if (phase_ == JobPhase::running && !outcome_.finished) {
        partial = stop_segment();
    } else if (phase_ != JobPhase::running && phase_ != JobPhase::done) {
        book_phase();
    }
    // The campaign's end loses nothing: what is done counts, saved or not.
    keep(done_);
    if (partial > Duration{}) {
        // A step cut off: its time in the proportions of a step, rounded down, the rest productive.
        using Wide = __int128;
        const Wide whole = segment_step().count();
        const auto share = [&](Duration part) {
            return Duration(
                static_cast<std::int64_t>(Wide{part.count()} * partial.count() / whole));
        };
        const Duration communication = share(spec_.step.exposed_communication);
        const Duration bubble = share(spec_.step.bubble);
        const Duration straggling = share(spec_.step.straggler_wait);
        const Duration held_up = share(spec_.step.degraded);
        const Duration throttled = share(spec_.step.throttled);
        const Duration starved = share(spec_.step.data_wait + segment_wait_);
        const Duration penalty = share(segment_penalty_);
        ledger_.book(Category::exposed_communication, spec_.gpus(), communication);
        ledger_.book(Category::pipeline_bubble, spec_.gpus(), bubble);
        ledger_.book(Category::straggler_wait, spec_.gpus(), straggling);
        ledger_.book(Category::degraded, spec_.gpus(), held_up);
        ledger_.book(Category::throttled, spec_.gpus(), throttled);
        ledger_.book(Category::data_wait, spec_.gpus(), starved);
        ledger_.book(Category::checkpoint_stall, spec_.gpus(), penalty);
        ledger_.book(Category::productive, spec_.gpus(),
                     partial - communication - bubble - straggling - held_up - throttled - starved -
                         penalty);
    }
    if (saves()) {
        if (phase_ == JobPhase::checkpointing) stop_waiting();
        checkpointer_.end();
        outcome_.checkpoint = checkpointer_.outcome();
        RY_CHECK(outcome_.checkpoint.stall.total() == stalled_);
    }
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
