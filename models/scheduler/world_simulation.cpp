#include "models/scheduler/world_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/check.h"
#include "sim/integers.h"

namespace railyard {

namespace {

std::unique_ptr<WorldScheduler> make_scheduler(const std::string& name, WorldView& world) {
    for (const WorldSchedulerKind& kind : world_scheduler_kinds()) {
        if (name == kind.name) return kind.make(world);
    }
    RY_UNREACHABLE("a scheduler that the scenario's reader lets pass");
}

bool has_time_limit(const WorldSpec& spec, const WorldJob& job) {
    const PartitionSpec& partition = spec.partitions[job.partition];
    return std::max({job.limit, partition.limit_default, partition.limit_max}) > Duration{};
}

}  // namespace

WorldSimulation::WorldSimulation(CampaignEngine& engine, const WorldRun& run, WorldLedger& ledger)
    : engine_(engine),
      run_(run),
      ledger_(ledger),
      id_(engine.add(*this, "world")),
      cluster_(run.spec),
      power_(run.spec, run.jobs.jobs),
      repair_(engine, run.spec, run.causes, cluster_, *this, run.seed, run.replica),
      books_(run.spec, cluster_, ledger),
      scheduler_(make_scheduler(run.spec.scheduler, *this)),
      jobs_(run.jobs.jobs.size()),
      needs_(run.spec.partitions.size()) {
    RY_CHECK(jobs_.size() < UINT32_MAX / kinds);
    for (JobIndex i = 0; i < jobs_.size(); ++i) {
        RY_CHECK(run.spec.steps_of(job(i)) > job(i).done);
        RY_CHECK(i == 0 || job(i - 1).goes_on || job(i - 1).submit <= job(i).submit);
    }
    if (WorldJobStrikes::any(run.causes)) {
        job_strikes_.emplace(engine, *this, run.causes, repair_, run.seed, run.replica);
    }
    if (std::ranges::any_of(run.spec.kinds, &WorldJobKind::has_parts)) {
        parts_.emplace(engine, run, *this);
    }
    goes_back_far_ = run.store || std::ranges::any_of(run.causes, &FailureCause::silent);
    if (run.network != nullptr && run.network->any()) {
        network_.emplace(engine, *run.network, *this, run.seed, run.replica);
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
    if (jobs_.size() > 0) schedule(std::max(job(0).submit, Instant{}), submission, 0);
    for (std::uint32_t i = 0; i < spec().reservations.size(); ++i) {
        schedule(spec().reservations[i].start, window_begins, i);
    }
    repair_.start(scheduler_->heartbeat());
    if (network_) network_->start();
    if (parts_) parts_->start();
    for (WorldListener* each : run_.listeners) each->begins(engine_, repair_);
}

void WorldSimulation::schedule(Instant at, Kind kind, std::uint32_t index) {
    engine_.schedule(at, id_, index * kinds + kind);
}

void WorldSimulation::schedule_for(JobIndex job, Instant at, Kind kind) {
    jobs_[job].event = engine_.schedule_cancellable(at, id_, job * kinds + kind);
}

void WorldSimulation::wake_at(Instant at) {
    schedule(at, decision, 0);
}

void WorldSimulation::decide_soon() {
    if (deciding_) return;
    deciding_ = true;
    schedule(now(), decision, 0);
}

void WorldSimulation::handle(std::uint32_t event) {
    book_free();
    const std::uint32_t index = event / kinds;
    switch (event % kinds) {
        case submission:
            submit_next();
            break;
        case eligible:
            wait(index, now());
            break;
        case prolog_fails:
            prolog_finds(index);
            break;
        case run_ends:
            end_run(index);
            break;
        case notices:
            book_phase(index);
            jobs_[index].status.phase = WorldPhase::gathering;
            scheduler_->failed(index, jobs_[index].failed_node);
            decide_soon();
            break;
        case epilog_ends:
            after_epilog(index);
            break;
        case decision:
            deciding_ = false;
            scheduler_->schedule();
            break;
        case window_begins:
        case window_ends:
            open_window(index, event % kinds == window_begins);
            break;
        case sends:
            join_links(index);
            break;
        case links_change:
            change_paces_on_links();
            break;
        default:
            RY_UNREACHABLE("a kind of event that the world schedules");
    }
}

void WorldSimulation::prolog_finds(JobIndex index) {
    const Allocation held = jobs_[index].status.held;
    for (const NodeIndex node : cluster_.ailing(held)) {
        const NodeIndex found = repair_.diagnose(node, held);
        if (found == no_node) continue;
        scheduler_->prolog_failed(index, found);
        break;
    }
    decide_soon();
}

// ---- waiting ----

void WorldSimulation::submit_next() {
    const auto goes_on = [this] { return job(submitted_).goes_on.has_value(); };
    const bool first = goes_on();
    while (submitted_ < jobs_.size() && job(submitted_).submit <= now() && goes_on() == first) {
        const JobIndex index = submitted_++;
        jobs_.begin(index, {ledger_, job(index).kind, outcome_.runs[index],
                            spec().steps_of(job(index)), job(index).done});
        auto why = scheduler_->never(index);
        if (!why) why = power_.never(index);
        if (why) {
            outcome_.refused.push_back({index, std::move(*why)});
            jobs_[index].next = {.how = JobEnd::refused};
            jobs_[index].status.phase = WorldPhase::completing;
            after_epilog(index);
        } else {
            wait(index, std::min(job(index).submit, now()));
        }
    }
    if (submitted_ == jobs_.size()) return;
    const Instant next = now() + Duration(first ? 1 : 0);  // they have been placed by then
    schedule(std::max(job(submitted_).submit, next), submission, 0);
}

void WorldSimulation::wait(JobIndex index, Instant since) {
    jobs_[index].status.phase = WorldPhase::waiting;
    jobs_[index].status.eligible = since;
    scheduler_->submitted(index);
    decide_soon();
}

// ---- getting GPUs, giving them back ----

void WorldSimulation::take(JobIndex index, const Allocation& gpus) {
    WorldJobStatus& status = jobs_[index].status;
    power_.take(index);
    cluster_.each_run(gpus, [&](const NodeRun& run, bool whole) {
        status.gpus += run.gpus * run.count;
        if (whole) {
            cluster_.take_whole(run, index);
            books_.moved_whole(run, -1);
            return;
        }
        for (NodeIndex node = run.first; node < run.end(); ++node) {
            books_.before_change(node);
            cluster_.take(node, index, run.gpus, spec().pool(job(index)));
            books_.after_change(node);
        }
    });
    status.held.insert(gpus);
    RY_CHECK(status.gpus <= job(index).gpus);
}

void WorldSimulation::give_back(JobIndex index, const Allocation& gpus) {
    cluster_.each_run(gpus, [&](const NodeRun& run, bool whole) {
        jobs_[index].status.gpus -= run.gpus * run.count;
        if (whole) {
            cluster_.give_back_whole(run, index);
            books_.moved_whole(run, 1);
            return;
        }
        for (NodeIndex node = run.first; node < run.end(); ++node) {
            books_.before_change(node);
            cluster_.give_back(node, index, run.gpus);
            books_.after_change(node);
        }
    });
}

void WorldSimulation::bind(JobIndex index, const Allocation& gpus) {
    Job& j = jobs_[index];
    const bool stalled = j.status.phase == WorldPhase::stalled;
    RY_CHECK(stalled || j.status.phase == WorldPhase::waiting ||
             j.status.phase == WorldPhase::gathering);
    book_phase(index);
    take(index, gpus);
    if (stalled) return;  // its other processes have yet to notice
    j.status.phase = WorldPhase::gathering;
    if (j.status.gpus == job(index).gpus) start_run(index);
}

void WorldSimulation::unbind(JobIndex index, NodeIndex node) {
    Job& j = jobs_[index];
    RY_CHECK(j.status.phase == WorldPhase::gathering || j.status.phase == WorldPhase::stalled);
    book_phase(index);
    if (parts_of(index) != nullptr) lose_unsaved(index, loss_of(index, node));
    give_back(index, j.status.held.erase(node));
    if (j.status.held.empty()) {
        engine_.cancel(j.event);
        j.status.phase = WorldPhase::waiting;
        power_.give_back(index);
    }
    if (spec().health.epilog) repair_.check(node);
    repair_.settle(node);
    decide_soon();
}

void WorldSimulation::release(JobIndex index) {
    const Allocation held = std::exchange(jobs_[index].status.held, {});
    give_back(index, held);
    for (const NodeIndex node : cluster_.ailing(held)) repair_.settle(node);
    power_.give_back(index);
    decide_soon();
}

// ---- running ----

Duration WorldSimulation::until_own_failure(JobIndex index) {
    const WorldJobKind& kind = spec().kinds[job(index).kind];
    const Rate rate{kind.own_failure_rate_per_gpu.per_second *
                    static_cast<double>(job(index).gpus)};
    if (rate.per_second <= 0) return Duration::max();
    // A stream of its own for each run: what one job meets moves no other.
    RandomStream stream(
        run_.seed, run_.replica,
        fmt::format("job/{}/{}/{}", kind.name, job(index).id, jobs_[index].own_failures++));
    return stream.interarrival(rate);
}

void WorldSimulation::start_run(JobIndex index) {
    Job& j = jobs_[index];
    const WorldJobKind& kind = spec().kinds[job(index).kind];
    WorldJobRun& result = outcome_.runs[index];
    j.status.phase = WorldPhase::running;
    const bool goes_on = job(index).goes_on && result.starts == 0;
    j.status.started = j.run_since = j.phase_since = now();
    if (goes_on) j.status.started -= *job(index).goes_on;
    j.pace_changes_at = Instant::max();
    j.slow_node = no_node;
    set_step(index);
    const Duration step = j.step.duration();
    j.save_every = kind.checkpoint_steps;
    if (j.save_every == 0 && kind.checkpoint_interval > Duration{} && !kind.by_wall_clock) {
        j.save_every = ceil_div(kind.checkpoint_interval.count(), step.count());
    }
    j.run = {};
    if (!goes_on) j.run = {.prolog = spec().health.prolog_time, .restart = kind.restart};
    j.run.step = step;
    j.stage = kind.saving ? Stage::setting_up : Stage::whole;
    if (kind.saving) parts_->of(index, job(index).kind, job(index).gpus, j.status.held);
    if (j.stage == Stage::whole) {
        if (!goes_on && j.work.done() > 0) j.run.restore = kind.restore;
        j.run.steps = j.work.left();
        j.run.stall = kind.checkpoint_stall;
        j.run.interval = j.save_every;
    }
    j.rerouted = false;
    if (!result.started) result.first_start = now();
    result.started = true;
    ++result.starts;
    record("started", index, "", j.status.held.front().node, j.work.left());
    for (WorldListener* each : run_.listeners) each->started(index, now(), j.status.held);

    for (const NodeIndex node : cluster_.ailing(j.status.held)) {
        if (!cluster_.node(node).broken) continue;
        if (spec().health.prolog) {
            schedule_for(index, now() + j.run.prolog, prolog_fails);
            j.pace_changes_at = now();  // and nothing else will
        } else {
            j.failed_node = node;
            ++outcome_.interruptions[repair_.cause(node)];
            ++result.interruptions;
            settle_run(index, Unsaved::lost);
            j.status.phase = WorldPhase::stalled;
            schedule_for(index, now() + repair_.detection(node), notices);
        }
        return;
    }
    if (j.cut_off && j.stage == Stage::whole) stand_still(index, j.run);
    const Duration failure = until_own_failure(index);
    j.own_failure = failure < Instant::max() - now() ? now() + failure : Instant::max();
    expect_end(index);
    if (job_strikes_) job_strikes_->started(index);
    if (j.stage == Stage::whole) send_from(index, now() + j.run.setup());
    meet_corruption(index);
    if (spec().slowdowns.empty()) return;
    for (const NodeShare& share : j.status.held) repair_.compare(share.node);
}

void WorldSimulation::expect_end(JobIndex index) {
    Job& j = jobs_[index];
    const auto at = [](Instant from, Duration after) {
        return after < Instant::max() - from ? from + after : Instant::max();
    };
    const Instant done = at(j.run_since, j.run.finish_after());
    // What Slurm takes for a limit where none is given ends nobody that can't go on.
    const bool for_ever = j.run.stands_still && !has_time_limit(spec(), job(index));
    const Instant limit =
        for_ever ? Instant::max() : at(j.status.started, time_limit(spec(), job(index)));
    const Instant first = std::min({done, limit, j.own_failure, j.pace_changes_at});
    const bool leaves =
        j.slow_node != no_node && j.pace_changes_at == Instant::max() && j.stage == Stage::whole;
    const bool last = j.stage == Stage::whole || (j.stage == Stage::working && j.run.ends_safe);
    j.run_end = first == done            ? (!last    ? RunEnd::stage_over
                                            : leaves ? RunEnd::left_slow_node
                                                     : RunEnd::done)
                : first == limit         ? RunEnd::limit
                : first == j.own_failure ? RunEnd::own_failure
                                         : RunEnd::new_pace;
    if (first < Instant::max()) schedule_for(index, first, run_ends);
}

void WorldSimulation::end_run(JobIndex index) {
    Job& j = jobs_[index];
    const WorldJobKind& kind = spec().kinds[job(index).kind];
    switch (j.run_end) {
        case RunEnd::done:
            stop(index, Unsaved::kept);
            leave(index, {.how = JobEnd::completed});
            break;
        case RunEnd::limit:
            stop(index, kind.resubmit ? Unsaved::lost : Unsaved::kept);
            leave(index, {.waits = kind.resubmit, .eligible = now(), .how = JobEnd::timeout});
            break;
        case RunEnd::own_failure:
            ++outcome_.own_failures;
            ++outcome_.runs[index].interruptions;
            record("interruption", index, "job", no_node, 0);
            settle_run(index, Unsaved::lost);
            j.status.phase = WorldPhase::gathering;
            scheduler_->failed(index, no_node);
            break;
        case RunEnd::new_pace:
            change_pace(index);
            return;
        case RunEnd::left_slow_node:
            left_slow_node(index);
            return;
        case RunEnd::stage_over:
            end_stage(index);
            return;
    }
    decide_soon();
}

void WorldSimulation::left_slow_node(JobIndex index) {
    settle_run(index, parts_of(index) == nullptr ? Unsaved::kept : Unsaved::lost);
    jobs_[index].status.phase = WorldPhase::gathering;
    scheduler_->failed(index, jobs_[index].slow_node);
    decide_soon();
}

// The run is over.
void WorldSimulation::settle_run(JobIndex index, Unsaved unsaved, const StateLoss& loss) {
    WorldParts::Parts* parts = parts_of(index);
    leave_stage(index);
    book_run(index, unsaved, loss);
    if (parts != nullptr && unsaved == Unsaved::held_in_memory) {
        parts->checkpointer.fail({});  // who stands still sends nothing
        parts->suspended = true;
        parts->checkpointer.went_back_to(parts->checkpointer.newest().steps);
    }
    jobs_[index].work.forget_if_clean();
    jobs_[index].storm.reset();
    jobs_[index].phase_since = now();
    engine_.cancel(jobs_[index].event);
    leave_links(index);
    if (job_strikes_) job_strikes_->stopped(index);
    for (WorldListener* each : run_.listeners) each->stopped(index, now());
}

// Since it began, or its pace changed last.
void WorldSimulation::book_run(JobIndex index, Unsaved unsaved, const StateLoss& loss) {
    book_run_until(index, now(), unsaved, loss);
}

void WorldSimulation::book_run_until(JobIndex index, Instant end, Unsaved unsaved,
                                     const StateLoss& loss) {
    Job& j = jobs_[index];
    const Duration elapsed = end - j.run_since;
    RunProgress p = j.run.after(elapsed);
    const Duration carried = std::exchange(j.carried, {});
    p.partial += carried;
    const WorldWork::Parts gpus = parts_by_group(index, j.status.held);
    j.work.book(gpus, Category::health_check, p.prolog);
    j.work.book(gpus, Category::restart, p.restart);
    j.work.book(gpus, Category::restore, p.restore);
    j.work.book(gpus, Category::data_wait, p.first_batch);
    j.work.book(gpus, j.run.stands_still ? Category::storm_stall : Category::checkpoint_stall,
                p.stall);
    outcome_.runs[index].held += elapsed + carried;
    outcome_.runs[index].contention += j.step.contention * p.steps;
    for (const SharedLinks::Share& share : j.waits_for) {
        const auto by =
            share.job % static_cast<JobIndex>(jobs_.size());  // its steps, or its uploads
        outcome_.contention_by.at(job(index).kind, job(by).kind) +=
            seconds(j.step.contention) * share.share *
            static_cast<double>(p.steps * job(index).gpus);
    }
    j.work.add(p.steps, gpus, j.step);
    if (p.saved > 0) j.work.keep_until(j.work.done() - p.steps + p.saved);
    if (unsaved == Unsaved::kept) {
        j.work.keep_until(j.work.done());
        return j.work.book_partial(gpus, j.step, p.partial);
    }
    j.work.book(gpus, Category::lost_work, p.partial);
    if (unsaved == Unsaved::lost) lose_unsaved(index, loss);
}

// Its processes are gone, or more than these: it goes back to what is left.
void WorldSimulation::lose_unsaved(JobIndex index, const StateLoss& loss) {
    WorldParts::Parts* parts = parts_of(index);
    if (parts == nullptr) return jobs_[index].work.lose_after(jobs_[index].work.kept());
    parts->checkpointer.fail(loss);
    parts->suspended = false;
    jobs_[index].work.lose_after(
        std::max(parts->checkpointer.newest().steps, jobs_[index].work.kept()));
}

// What the job loses when one of its nodes leaves.
StateLoss WorldSimulation::loss_of(JobIndex index, NodeIndex node) const {
    const WorldParts::Parts* parts = parts_of(index);
    return parts ? StateLoss{StateLoss::Scope::node, parts->slot_of(node)} : StateLoss{};
}

WorldWork::Parts WorldSimulation::parts_by_group(JobIndex index, const Allocation& gpus) const {
    WorldWork::Parts out(run_.spec.groups.size());
    cluster_.each_run(gpus, [&](const NodeRun& run, bool) {
        out[cluster_.node(run.first).group] += run.gpus * run.count;
    });
    for (std::int64_t& sum : out) sum = parts(index, sum);
    return out;
}

// What a job that holds GPUs without running has done since its phase began.
void WorldSimulation::book_phase(JobIndex index) {
    Job& j = jobs_[index];
    const Duration span = now() - std::exchange(j.phase_since, now());
    Category category = Category::partial_hold;
    switch (j.status.phase) {
        case WorldPhase::gathering:
            break;
        case WorldPhase::stalled:
            category = Category::detection;
            break;
        case WorldPhase::completing:
            category = Category::health_check;
            break;
        default:
            return;
    }
    j.work.book(parts_by_group(index, j.status.held), category, span);
    outcome_.runs[index].held += span;
}

// ---- stopping ----

void WorldSimulation::stop(JobIndex index, Unsaved unsaved) {
    Job& j = jobs_[index];
    if (j.status.phase == WorldPhase::running) {
        settle_run(index, unsaved);
    } else {
        book_phase(index);
        engine_.cancel(j.event);
        lose_unsaved(index, {});  // it was suspended, and is not to go on
        std::erase(suspended_, index);
    }
}

void WorldSimulation::halt(JobIndex index) {
    RY_CHECK(jobs_[index].status.phase == WorldPhase::running);
    settle_run(index, Unsaved::lost);
    jobs_[index].status.phase = WorldPhase::gathering;
}

void WorldSimulation::requeue(JobIndex index, Instant eligible_at, JobEnd otherwise) {
    const WorldJobKind& kind = spec().kinds[job(index).kind];
    Job& j = jobs_[index];
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

void WorldSimulation::leave(JobIndex index, const Next& next) {
    Job& j = jobs_[index];
    j.next = next;
    const bool ran = !j.status.held.empty();
    j.status.phase = WorldPhase::completing;
    j.phase_since = now();
    if (next.how != JobEnd::refused) scheduler_->leaving(index);
    if (ran && spec().health.epilog_time > Duration{}) {
        schedule_for(index, now() + spec().health.epilog_time, epilog_ends);
    } else {
        after_epilog(index);
    }
}

void WorldSimulation::after_epilog(JobIndex index) {
    Job& j = jobs_[index];
    book_phase(index);
    if (spec().health.epilog) {
        const Allocation held = j.status.held;
        for (const NodeIndex node : cluster_.ailing(held)) repair_.diagnose(node, held);
    }
    if (j.next.waits && parts_of(index) != nullptr) {
        lose_unsaved(index, {StateLoss::Scope::all_nodes});
    }
    release(index);
    if (j.next.how != JobEnd::refused) scheduler_->released(index);
    if (!j.next.waits) {
        j.status.phase = WorldPhase::over;
        WorldJobRun& result = outcome_.runs[index];
        result.over = true;
        result.end = now();
        result.how = j.next.how;
        j.work.keep_until(j.work.done());
        if (parts_) parts_->forget(index);
        if (j.work.accept_suspect() && j.next.how == JobEnd::completed)
            ++outcome_.corrupted_results;
        record("over", index, job_end_name(j.next.how), no_node, j.work.left());
        jobs_.end(index);
        if (++over_ == jobs_.size() && run_.end == Instant::max()) engine_.stop();
        return;
    }
    ++j.status.restarts;
    j.status.phase = WorldPhase::pending;
    record("requeued", index, job_end_name(j.next.how), no_node, j.work.left());
    if (j.next.eligible > now()) {
        schedule(j.next.eligible, eligible, index);
    } else {
        wait(index, now());
    }
}

// ---- suspension ----

void WorldSimulation::suspend(JobIndex index) {
    Job& j = jobs_[index];
    RY_CHECK(j.status.phase == WorldPhase::running);
    settle_run(index, Unsaved::held_in_memory);
    ++outcome_.preemptions;
    const Allocation held = j.status.held;
    release(index);
    j.status.held = held;  // what it comes back to
    j.status.phase = WorldPhase::suspended;
    suspended_.push_back(index);
    record("suspended", index, "", no_node, j.work.left());
    scheduler_->released(index);
}

void WorldSimulation::resume(JobIndex index) {
    Job& j = jobs_[index];
    RY_CHECK(j.status.phase == WorldPhase::suspended);
    std::erase(suspended_, index);
    take(index, std::exchange(j.status.held, {}));
    start_run(index);
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
        Job& j = jobs_[index];
        if (cause.remedy == Remedy::restart && strike.job.value_or(index) != index) continue;
        if (j.status.phase == WorldPhase::stalled) idle = false;  // by another node, or this one
        const StateLoss loss = cause.remedy == Remedy::restart ? StateLoss{} : loss_of(index, node);
        if (j.status.phase != WorldPhase::running) {
            if (parts_of(index) != nullptr) lose_unsaved(index, loss);
            continue;
        }
        idle = false;
        ++outcome_.interruptions[strike.cause];
        ++outcome_.runs[index].interruptions;
        settle_run(index, Unsaved::lost, loss);
        j.failed_node = node;
        j.status.phase = WorldPhase::stalled;
        record("interruption", index, cause.name, node, j.work.left());
        schedule_for(index, now() + cause.detection, notices);
    }
    if (idle) ++outcome_.strikes_on_idle;
    if (cause.remedy != Remedy::restart) lose_suspended(node);
}

// What they have in memory is on a node that leaves.
void WorldSimulation::lose_suspended(NodeIndex node) {
    for (const JobIndex index : std::vector<JobIndex>(suspended_)) {
        if (!jobs_[index].status.held.has(node)) continue;
        jobs_[index].status.held.clear();
        scheduler_->failed(index, node);
    }
}

void WorldSimulation::memory_lost(NodeIndex node) {
    lose_suspended(node);
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

void WorldSimulation::open_window(std::uint32_t index, bool begins) {
    const Reservation& r = spec().reservations[index];
    for (std::int64_t i = 0; i < r.nodes; ++i) {
        books_.set_maintenance(static_cast<NodeIndex>(r.first_node + i), begins);
    }
    if (begins) {
        schedule(now() + r.length, window_ends, index);
        if (r.every > Duration{}) schedule(now() + r.every, window_begins, index);
    }
    decide_soon();
}

// ---- the books ----

void WorldSimulation::book_free() {
    if (booked_until_ == now()) return;
    booked_until_ = now();
    for (std::uint32_t p = 0; p < needs_.size(); ++p) {
        const JobIndex first = scheduler_->first(p);
        needs_[p] = {};
        if (first == no_world_job || !power_.fits(first)) continue;
        needs_[p] = {parts(first, job(first).gpus - status(first).gpus), spec().pool(job(first))};
    }
    books_.book(now(), needs_);
}

void WorldSimulation::end_campaign() {
    book_free();
    for (JobIndex index = 0; index < submitted_; ++index) {
        if (!jobs_.live(index)) continue;
        Job& j = jobs_[index];
        const StateLoss off{StateLoss::Scope::all_nodes};
        if (j.status.phase == WorldPhase::running) {
            outcome_.runs[index].runs_since = j.status.started;
            settle_run(index, run_.off_at_end ? Unsaved::lost : Unsaved::kept, off);
        } else {
            book_phase(index);
            if (run_.off_at_end && j.status.phase == WorldPhase::suspended)
                lose_unsaved(index, off);
        }
        j.work.keep_until(j.work.done());
        j.work.accept_suspect();
    }
    count_jobs();
    if (parts_) parts_->end(outcome_);
    outcome_.node_busy = books_.node_busy();
    outcome_.stranded = books_.stranded();
    outcome_.stuck = scheduler_->stuck();
    if (network_) {
        const std::string still = waits_for_network();
        if (!outcome_.stuck.empty() && !still.empty()) outcome_.stuck += "\n";
        outcome_.stuck += still;
        outcome_.network_outages = network_->outages();
    }
    outcome_.nodes = repair_.counts();
    outcome_.repairs = repair_.repairs();
    outcome_.nodes_blamed = repair_.nodes_blamed();
    outcome_.slow_parts = repair_.slow_part_counts();
}

void WorldSimulation::count_jobs() {
    outcome_.submitted = submitted_;
    outcome_.ended = over_ - std::ssize(outcome_.refused);
    for (JobIndex index = 0; index < submitted_; ++index) {
        if (!jobs_.live(index)) continue;
        switch (jobs_[index].status.phase) {
            case WorldPhase::pending:  // on its way back to the queue
            case WorldPhase::waiting:
            case WorldPhase::suspended:
                ++outcome_.waiting;
                break;
            default:
                ++outcome_.running;
        }
    }
}

void WorldSimulation::promise(JobIndex index, Instant start) {
    for (WorldListener* each : run_.listeners) each->promised(index, now(), start);
}

void WorldSimulation::note(const char* what, JobIndex index, NodeIndex node) {
    if (index != no_world_job) {
        record(what, index, "", node, jobs_[index].work.left());
    } else if (run_.events != nullptr) {
        run_.events->push_back({now(), what, "", static_cast<std::int64_t>(node), 0, -1});
    }
}

void WorldSimulation::record(const char* kind, JobIndex index, std::string cause, NodeIndex node,
                             std::int64_t steps) {
    if (run_.events == nullptr) return;
    run_.events->push_back({now(), kind, std::move(cause),
                            node == no_node ? -1 : static_cast<std::int64_t>(node), steps,
                            job(index).id});
}

}  // namespace railyard
