#include "models/scheduler/world_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/check.h"

namespace railyard {

namespace {

std::unique_ptr<WorldScheduler> make_scheduler(const std::string& name, WorldView& world) {
    for (const WorldSchedulerKind& kind : world_scheduler_kinds()) {
        if (name == kind.name) return kind.make(world);
    }
    RY_UNREACHABLE("a scheduler that the scenario's reader lets pass");
}

}  // namespace

WorldSimulation::WorldSimulation(CampaignEngine& engine, const WorldRun& run, WorldLedger& ledger)
    : WorldView(engine, run.spec, run.jobs.jobs),
      run_(run),
      ledger_(ledger),
      clock_{engine, engine.add(*this, "world")},
      power_(run.spec, run.jobs.jobs),
      repair_(engine, run.spec, run.causes, cluster_, *this, runs_, run.seed, run.replica),
      books_(run.spec, cluster_, ledger),
      windows_(clock_, run.spec.reservations, books_),
      scheduler_(make_scheduler(run.spec.scheduler, *this)),
      jobs_(run.jobs.jobs.size()),
      holdings_(*this, cluster_, books_, jobs_, outcome_),
      needs_(run.spec.partitions.size()),
      sizes_(clock_, run, cluster_, jobs_, outcome_),
      runs_(clock_, *this, run, repair_, jobs_, sizes_, submitted_, outcome_, *this),
      border_(*this, *this, *scheduler_, run, cluster_, power_, jobs_, sizes_, holdings_, runs_) {
    RY_CHECK(jobs_.size() < UINT32_MAX / WorldClock::kinds);
    held_.resize(run.spec.partitions.size());
    for (JobIndex i = 0; i < jobs_.size(); ++i) {
        RY_CHECK(run.spec.steps_of(job(i)) > job(i).done || job(i).work == Duration{});
        RY_CHECK(i == 0 || job(i - 1).goes_on || job(i - 1).submit <= job(i).submit);
    }
    outcome_.runs.resize(jobs_.size());
    outcome_.contention_by = ContentionByKind(run.spec.kinds.size());
    outcome_.interruptions.resize(run.causes.size());
}

const WorldJobStatus& WorldSimulation::status(JobIndex job) const {
    static const WorldJobStatus over{.phase = WorldPhase::over, .held = {}};
    static const WorldJobStatus not_yet;
    return jobs_.live(job) ? jobs_[job].status : job < submitted_ ? over : not_yet;
}

void WorldSimulation::start() {
    if (jobs_.size() > 0)
        clock_.schedule(std::max(job(0).submit, Instant{}), WorldClock::submission, 0);
    windows_.start();
    repair_.start(scheduler_->heartbeat());
    runs_.start_clock();
    for (WorldListener* each : run_.listeners) each->begins(clock_.engine, repair_);
}

void WorldSimulation::decide_soon() {
    if (deciding_) return;
    deciding_ = true;
    clock_.schedule(now(), WorldClock::decision, 0);
}

void WorldSimulation::handle(std::uint32_t event) {
    book_free();
    const std::uint32_t index = event / WorldClock::kinds;
    const auto kind = static_cast<WorldClock::Kind>(event % WorldClock::kinds);
    switch (kind) {
        case WorldClock::submission:
            submit_next();
            break;
        case WorldClock::eligible:
            wait(index, now());
            break;
        case WorldClock::prolog_fails:
            if (const NodeIndex found = repair_.diagnose_first(jobs_[index].status.held);
                found != no_node) {
                scheduler_->prolog_failed(index, found);
            }
            decide_soon();
            break;
        case WorldClock::notices:
            holdings_.book_phase(index);
            jobs_[index].status.phase = WorldPhase::gathering;
            scheduler_->failed(index, jobs_[index].failed_node);
            if (jobs_.live(index)) sizes_.expect_smaller(index);
            decide_soon();
            break;
        case WorldClock::waited_enough:
            if (!sizes_.enough(index)) break;
            holdings_.book_phase(index);
            runs_.start(index);
            break;
        case WorldClock::epilog_ends:
            after_epilog(index);
            break;
        case WorldClock::decision:
            deciding_ = false;
            scheduler_->schedule();
            break;
        case WorldClock::window_begins:
            windows_.begin(index);
            decide_soon();
            break;
        case WorldClock::window_ends:
            windows_.end(index);
            decide_soon();
            break;
        default:
            runs_.handle(kind, index);
    }
}

// ---- waiting ----

// Those that run come first; the others when all of these have their GPUs.
void WorldSimulation::submit_next() {
    const auto runs_on = [this] {
        return submitted_ < jobs_.size() && job(submitted_).goes_on.has_value();
    };
    const bool first = runs_on();
    if (!first) border_.settle();
    while (submitted_ < jobs_.size() && job(submitted_).submit <= now() && runs_on() == first) {
        if (!first) border_.submit_stopped(job(submitted_).id);
        const JobIndex index = submitted_++;
        submit(index, first);
    }
    if (!first) border_.submit_stopped(INT64_MAX);
    const Instant next = now() + Duration(first ? 1 : 0);
    if (border_.is_open()) {
        clock_.schedule(next, WorldClock::submission, 0);
    } else if (submitted_ < jobs_.size()) {
        clock_.schedule(std::max(job(submitted_).submit, next), WorldClock::submission, 0);
    }
}

void WorldSimulation::submit(JobIndex index, bool runs_on) {
    const WorldJob& it = job(index);
    WorldWork work(ledger_, it.kind, outcome_.runs[index], spec().steps_of(it), it.done,
                   spec().kinds[it.kind].replicas);
    if (it.carried) work.bring(*it.carried, runs_on);
    jobs_.begin(index, {it, spec().kinds[it.kind], std::move(work)});
    if (runs_on) {
        jobs_[index].goes_on = true;
        jobs_[index].came_with = it.carried.get();
    }
    auto why = scheduler_->never(index);
    if (!why) why = power_.never(index);
    const std::int64_t most = spec().partitions[it.partition].submitted_max;
    if (!why && most > 0 && held_[it.partition] >= most) {
        why = fmt::format("{} jobs are submitted already", most);
    }
    if (why) {
        if (runs_on) border_.lose_run(index);
        outcome_.refused.push_back({index, std::move(*why)});
        jobs_[index].next = {.how = JobEnd::refused};
        jobs_[index].status.phase = WorldPhase::completing;
        after_epilog(index);
        return;
    }
    ++held_[it.partition];
    if (!runs_on) return wait(index, std::min(it.submit, now()));
    border_.submitted(index);
    if (jobs_.live(index) && jobs_[index].goes_on) decide_soon();
}

void WorldSimulation::wait(JobIndex index, Instant since) {
    jobs_[index].status.phase = WorldPhase::waiting;
    jobs_[index].status.eligible = since;
    scheduler_->submitted(index);
    decide_soon();
}

// ---- getting GPUs, giving them back ----

void WorldSimulation::bind(JobIndex index, const Allocation& gpus) {
    LiveJob& j = jobs_[index];
    const bool stalled = j.status.phase == WorldPhase::stalled;
    RY_CHECK(stalled || (j.runs() && j.smaller() != nullptr) ||
             j.status.phase == WorldPhase::waiting || j.status.phase == WorldPhase::gathering);
    j.runs() ? sizes_.book_unused(index) : holdings_.book_phase(index);
    power_.take(index);
    holdings_.take(index, gpus);
    if (stalled) return;  // its other processes have yet to notice
    if (j.runs()) {
        if (!sizes_.could_grow(index)) return;
        j.grows = true;
        return runs_.change_pace_soon(index);
    }
    j.status.phase = WorldPhase::gathering;
    if (j.status.gpus < job(index).gpus) return sizes_.expect_smaller(index);
    clock_.engine.cancel(j.event);
    runs_.start(index);
}

void WorldSimulation::unbind(JobIndex index, NodeIndex node) {
    LiveJob& j = jobs_[index];
    RY_CHECK(j.status.phase == WorldPhase::gathering || j.status.phase == WorldPhase::stalled ||
             (j.runs() && !runs_on(index, node)));
    j.runs() ? sizes_.book_unused(index) : holdings_.book_phase(index);
    j.lose_copies(j.loss_of(node));
    holdings_.give_back(index, node);
    if (j.status.held.empty()) {
        clock_.engine.cancel(j.event);
        j.status.phase = WorldPhase::waiting;
        power_.give_back(index);
    }
    sizes_.expect_smaller(index);
    if (spec().health.epilog) repair_.check(node);
    repair_.settle(node);
    decide_soon();
}

bool WorldSimulation::runs_on(JobIndex index, NodeIndex node) const {
    return jobs_.runs(index) && jobs_[index].working().has(node);
}

void WorldSimulation::release(JobIndex index) {
    const Allocation held = holdings_.give_back_all(index);
    for (const NodeIndex node : cluster_.ailing(held)) repair_.settle(node);
    power_.give_back(index);
    decide_soon();
}

// ---- stopping ----

void WorldSimulation::run_over(JobIndex index, bool at_limit) {
    LiveJob& j = jobs_[index];
    const bool again = at_limit && j.kind.resubmit && j.status.restarts < j.kind.restarts_max;
    if (again) j.status.submitted = now();
    stop(index, at_limit ? Unsaved::lost : Unsaved::kept);
    leave(index, {again, now(), at_limit ? JobEnd::timeout : JobEnd::completed});
    decide_soon();
}

void WorldSimulation::run_failed(JobIndex index, NodeIndex node) {
    jobs_[index].status.phase = WorldPhase::gathering;
    scheduler_->failed(index, node);
    if (jobs_.live(index)) sizes_.expect_smaller(index);
    decide_soon();
}

void WorldSimulation::run_grows(JobIndex index) {
    record("nodes_changed", index);
    runs_.start(index);
}

void WorldSimulation::stop(JobIndex index, Unsaved unsaved) {
    LiveJob& j = jobs_[index];
    if (j.status.phase == WorldPhase::running) {
        runs_.stop(index, unsaved);
    } else {
        holdings_.book_phase(index);
        clock_.engine.cancel(j.event);
        j.lose_unsaved({});  // it was suspended, and is not to go on
        std::erase(suspended_, index);
    }
}

void WorldSimulation::halt(JobIndex index) {
    RY_CHECK(jobs_[index].status.phase == WorldPhase::running);
    runs_.stop(index, Unsaved::lost);
    jobs_[index].status.phase = WorldPhase::gathering;
}

void WorldSimulation::requeue(JobIndex index, Instant eligible_at, JobEnd otherwise) {
    const WorldJobKind& kind = spec().kinds[job(index).kind];
    LiveJob& j = jobs_[index];
    stop(index, Unsaved::lost);
    if (otherwise == JobEnd::preempted) ++outcome_.preemptions;
    const bool again = kind.requeue && j.status.restarts < kind.restarts_max;
    leave(index, {.waits = again, .eligible = std::max(eligible_at, now()), .how = otherwise});
}

void WorldSimulation::end(JobIndex index, JobEnd how) {
    stop(index, Unsaved::lost);
    if (how == JobEnd::preempted) ++outcome_.preemptions;
    leave(index, {.how = how});
}

void WorldSimulation::leave(JobIndex index, const LiveJob::Next& next) {
    LiveJob& j = jobs_[index];
    j.next = next;
    const bool ran = !j.status.held.empty();
    j.status.phase = WorldPhase::completing;
    j.phase_since = now();
    if (next.how != JobEnd::refused) scheduler_->leaving(index);
    if (ran && spec().health.epilog_time > Duration{}) {
        clock_.schedule_end(j, now() + spec().health.epilog_time, WorldClock::epilog_ends, index);
    } else {
        after_epilog(index);
    }
}

void WorldSimulation::after_epilog(JobIndex index) {
    LiveJob& j = jobs_[index];
    holdings_.book_phase(index);
    if (spec().health.epilog) {
        const Allocation held = j.status.held;
        for (const NodeIndex node : cluster_.ailing(held)) repair_.diagnose(node, held);
    }
    if (j.next.waits) j.lose_copies({StateLoss::Scope::all_nodes});
    release(index);
    if (j.next.how != JobEnd::refused) scheduler_->released(index);
    if (!j.next.waits) return close(index, j.next.how);
    ++j.status.restarts;
    j.status.phase = WorldPhase::pending;
    record("requeued", index, job_end_name(j.next.how));
    if (j.next.eligible > now()) {
        clock_.schedule(j.next.eligible, WorldClock::eligible, index);
    } else {
        wait(index, now());
    }
}

void WorldSimulation::close(JobIndex index, JobEnd how) {
    LiveJob& j = jobs_[index];
    j.status.phase = WorldPhase::over;
    WorldJobRun& result = outcome_.runs[index];
    result.over = true;
    result.end = now();
    result.how = how;
    j.work.keep_until(j.work.done());
    runs_.forget(index);
    if (j.work.accept_suspect() && how == JobEnd::completed) ++outcome_.corrupted_results;
    if (how != JobEnd::refused) --held_[j.job.partition];
    record("over", index, job_end_name(how));
    jobs_.end(index);
    if (++over_ == jobs_.size() && run_.end == Instant::max()) clock_.engine.stop();
}

// ---- suspension ----

void WorldSimulation::suspend(JobIndex index) {
    LiveJob& j = jobs_[index];
    RY_CHECK(j.status.phase == WorldPhase::running);
    runs_.suspend(index);
    ++outcome_.preemptions;
    const Allocation held = j.status.held;
    release(index);
    j.status.held = held;  // what it comes back to
    j.status.phase = WorldPhase::suspended;
    suspended_.push_back(index);
    record("suspended", index);
    scheduler_->released(index);
}

void WorldSimulation::resume(JobIndex index) {
    LiveJob& j = jobs_[index];
    RY_CHECK(j.status.phase == WorldPhase::suspended);
    std::erase(suspended_, index);
    power_.take(index);
    holdings_.take(index, std::exchange(j.status.held, {}));
    runs_.resume(index);
}

// ---- failures ----

void WorldSimulation::before_node_changes(NodeIndex node) {
    book_free();
    books_.before_change(node);
}

void WorldSimulation::struck(NodeIndex node, const Strike& strike) {
    book_free();
    const FailureCause& cause = run_.causes[strike.cause];
    bool idle = true;
    for (const JobIndex index : cluster_.jobs_on(node)) {
        LiveJob& j = jobs_[index];
        if (cause.remedy == Remedy::restart && strike.job.value_or(index) != index) continue;
        if (j.status.phase == WorldPhase::stalled) idle = false;  // by another node, or this one
        const StateLoss loss = cause.remedy == Remedy::restart ? StateLoss{} : j.loss_of(node);
        if (!runs_on(index, node)) {
            j.lose_copies(loss);
            // A pod that an elastic job does without, or that it waits with for others.
            const bool gathers = j.status.phase == WorldPhase::gathering;
            if (j.runs() || (j.elastic && gathers)) scheduler_->failed(index, node);
            continue;
        }
        idle = false;
        ++outcome_.interruptions[strike.cause];
        ++outcome_.runs[index].interruptions;
        runs_.stop(index, Unsaved::lost, loss);
        record("interruption", index, cause.name, node);
        runs_.stall(index, node, cause.detection);
    }
    if (idle) ++outcome_.strikes_on_idle;
    if (cause.remedy != Remedy::restart) memory_lost(node);
}

// What they have in memory is on a node that leaves.
void WorldSimulation::memory_lost(NodeIndex node) {
    for (const JobIndex index : std::vector<JobIndex>(suspended_)) {
        if (!jobs_[index].status.held.has(node)) continue;
        jobs_[index].status.held.clear();
        scheduler_->failed(index, node);
    }
    decide_soon();
}

void WorldSimulation::silent(NodeIndex node) {
    book_free();
    scheduler_->silent(node);
    decide_soon();
}

void WorldSimulation::after_node_changed(NodeIndex node) {
    books_.after_change(node);
    scheduler_->node_changed(node);
    decide_soon();
}

void WorldSimulation::corruption_found(std::size_t corruption, NodeIndex node,
                                       const Strike& strike) {
    book_free();
    std::vector<JobIndex> affected;
    for (JobIndex index = 0; index < submitted_; ++index) {
        const auto has = jobs_.live(index) ? jobs_[index].work.corruption() : std::nullopt;
        const bool on_it = has && jobs_[index].status.held.has(node);
        if (has == corruption || on_it) affected.push_back(index);
    }
    for (const JobIndex index : affected) go_back(index, node, strike.cause);
    if (node != no_node && run_.causes[strike.cause].remedy != Remedy::restart) memory_lost(node);
    decide_soon();
}

// To the newest checkpoint from before. A job that is done does not.
void WorldSimulation::go_back(JobIndex index, NodeIndex node, std::size_t cause) {
    LiveJob& j = jobs_[index];
    const bool running = j.status.phase == WorldPhase::running;
    const bool done = j.status.phase == WorldPhase::completing && !j.next.waits;
    if (done || !j.work.corruption()) return;
    if (running) {
        ++outcome_.interruptions[cause];
        ++outcome_.runs[index].interruptions;
        runs_.stop(index, Unsaved::lost);
    } else {
        j.lose_unsaved({});
    }
    if (!j.lose_suspect() && !running) return;
    ++outcome_.corruptions_found;
    record("corruption_found", index, run_.causes[cause].name, node);
    if (!running) return;
    j.status.phase = WorldPhase::gathering;
    scheduler_->failed(index, j.status.held.has(node) ? node : no_node);
}

// ---- the books ----

void WorldSimulation::book_free() {
    if (booked_until_ == now()) return;
    booked_until_ = now();
    for (std::uint32_t p = 0; p < needs_.size(); ++p) {
        const JobIndex first = scheduler_->first(p);
        needs_[p] = {};
        if (first == no_world_job || !power_.fits(first)) continue;
        needs_[p] = {(job(first).gpus - status(first).gpus) * spec().parts_of(job(first)),
                     spec().pool(job(first))};
    }
    books_.book(now(), needs_);
}

WorldOutcome WorldSimulation::end_campaign() {
    book_free();
    for (JobIndex index = 0; index < submitted_; ++index) {
        if (!jobs_.live(index)) continue;
        LiveJob& j = jobs_[index];
        const StateLoss off{StateLoss::Scope::all_nodes};
        const WorldPhase phase = j.status.phase;
        const bool waits = j.waits();
        ++(waits ? outcome_.waiting : outcome_.running);
        outcome_.runs[index].waits = waits;
        CarriedJob left;
        if (phase == WorldPhase::running) {
            outcome_.runs[index].runs_since = j.status.started;
            left = j.run_left(now());
            left.slice = cluster_.place_of_slice(j.status.held.front().node, index);
            runs_.stop(index, run_.off_at_end ? Unsaved::lost : Unsaved::held_in_memory, off);
        } else {
            holdings_.book_phase(index);
            if (run_.off_at_end && phase == WorldPhase::suspended) j.lose_unsaved(off);
        }
        if (run_.followed) j.leave(std::move(left), outcome_.runs[index]);
        j.work.keep_held();
        j.work.keep_until(j.work.done());
        j.work.accept_suspect();
    }
    outcome_.submitted = submitted_;
    outcome_.ended = over_ - std::ssize(outcome_.refused);
    outcome_.node_busy_of = books_.node_busy();
    for (const GpuNanoseconds each : outcome_.node_busy_of) outcome_.node_busy += each;
    outcome_.stranded = books_.stranded();
    outcome_.stuck = scheduler_->stuck();
    runs_.end_campaign();
    outcome_.nodes = repair_.counts();
    outcome_.repairs = repair_.repairs();
    outcome_.nodes_blamed = repair_.nodes_blamed();
    outcome_.slow_parts = repair_.slow_part_counts();
    return std::move(outcome_);
}

void WorldSimulation::promise(JobIndex index, Instant start) {
    for (WorldListener* each : run_.listeners) each->promised(index, now(), start);
}

void WorldSimulation::note(const char* what, JobIndex index, NodeIndex node) {
    run_.record(now(), what, index, "", node, index == no_world_job ? 0 : jobs_[index].work.left());
}

}  // namespace railyard
