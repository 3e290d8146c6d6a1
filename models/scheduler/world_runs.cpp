#include "models/scheduler/world_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/integers.h"

namespace railyard {

namespace {

// Both can be before the campaign, of a run that goes on, or for ever.
Instant after(Instant at, Duration time) {
    return at + std::min(time, Instant::max() - std::max(at, Instant{}));
}

// The end of a job's time. What is planned for one without a limit ends nobody.
Instant limit_of(const WorldSpec& spec, const LiveJob& j) {
    if (!has_time_limit(spec, j.job)) return Instant::max();
    return after(j.status.started, time_limit(spec, j.job));
}

Duration until_own_failure(const WorldRun& run, LiveJob& j) {
    const Rate rate{j.kind.own_failure_rate_per_gpu.per_second * real(j.job.gpus)};
    if (rate.per_second <= 0) return Duration::max();
    // A stream of its own for each run: what one job meets moves no other.
    RandomStream stream(run.seed, run.replica,
                        fmt::format("job/{}/{}/{}", j.kind.name, j.job.id, j.own_failures++));
    return stream.interarrival(rate);
}

std::int64_t steps_between_saves(const WorldJobKind& kind, Duration step) {
    const bool by_time = kind.checkpoint_interval > Duration{} && !kind.by_wall_clock;
    if (kind.checkpoint_steps != 0 || !by_time) return kind.checkpoint_steps;
    return ceil_div(kind.checkpoint_interval.count(), step.count());
}

// The plan of a run that begins, or goes on from before the campaign.
void begin_plan(const WorldSpec& spec, LiveJob& j, bool goes_on) {
    if (!goes_on) j.came_with = nullptr;
    RunPlan& plan = j.run;
    plan = {.prolog = spec.health.prolog_time, .restart = j.kind.restart};
    plan.step = j.step.duration();
    if (j.stage == RunStage::whole) {
        if (j.work.done() > 0) plan.restore = j.kind.restore;
        plan.steps = j.work.left();
        plan.stall = j.kind.checkpoint_stall;
        plan.interval = j.save_every;
        plan.done = std::min(j.work.open(), plan.interval);  // of an earlier campaign
    }
    if (goes_on) j.take_up_run();
}

}  // namespace

WorldRuns::WorldRuns(const WorldClock& clock, const WorldView& world, const WorldRun& run,
                     WorldRepair& repair, LiveJobs& jobs, JobSizes& sizes,
                     const JobIndex& submitted, WorldOutcome& outcome, Owner& owner)
    : clock_(clock),
      run_(run),
      cluster_(world.cluster()),
      repair_(repair),
      jobs_(jobs),
      sizes_(sizes),
      submitted_(submitted),
      outcome_(outcome),
      owner_(owner),
      links_(clock, run, repair, jobs, *this),
      books_(clock, run, world.cluster(), jobs, outcome) {
    if (WorldJobStrikes::any(run.causes)) {
        strikes_.emplace(clock.engine, world, run.causes, repair, run.seed, run.replica);
    }
    if (std::ranges::any_of(run_.spec.kinds, &WorldJobKind::has_parts)) {
        parts_.emplace(clock.engine, run, *this);
    }
}

void WorldRuns::start_clock() {
    links_.start();
    if (parts_) parts_->start();
}

void WorldRuns::end_campaign() {
    if (parts_) parts_->end(outcome_);
    const std::string still = links_.waiting(submitted_);
    if (!outcome_.stuck.empty() && !still.empty()) outcome_.stuck += "\n";
    outcome_.stuck += still;
    outcome_.network_outages = links_.outages();
}

void WorldRuns::handle(WorldClock::Kind kind, JobIndex job) {
    if (kind == WorldClock::run_ends) return end_run(job);
    if (kind == WorldClock::sends) return links_.join(job);
    RY_CHECK(kind == WorldClock::links_change);
    links_.settle();
}

void WorldRuns::network_changed() {
    owner_.book_free();
    links_.network_changed(submitted_);
}

void WorldRuns::start(JobIndex index, Duration ran) {
    LiveJob& j = jobs_[index];
    WorldJobRun& result = outcome_.runs[index];
    j.status.phase = WorldPhase::running;
    const bool goes_on = j.goes_on && result.starts == 0;
    result.goes_on |= goes_on;
    j.status.started = j.run_since = j.phase_since = clock_.now();
    j.status.started -= goes_on ? *j.job.goes_on : ran;
    j.pace_changes_at = Instant::max();
    j.slow_node = no_node;
    j.grows = j.rerouted = false;
    sizes_.settle(index);
    links_.set_step(index);
    j.save_every = steps_between_saves(j.kind, j.step.duration());
    j.stage = j.kind.saving ? RunStage::setting_up : RunStage::whole;
    if (j.kind.saving) j.parts = &parts_->of(index, j.job.kind, j.job.gpus, j.working());
    begin_plan(run_.spec, j, goes_on);
    if (!std::exchange(result.started, true)) result.first_start = clock_.now();
    ++result.starts;
    books_.record("started", index, "", j.status.held.front().node);
    for (WorldListener* each : run_.listeners) each->started(index, clock_.now(), j.status.held);

    if (meets_broken_node(index)) return;
    if (j.cut_off && j.stage == RunStage::whole) stand_still(index, j.run);
    const Duration failure = until_own_failure(run_, j);
    j.own_failure =
        failure < Instant::max() - clock_.now() ? clock_.now() + failure : Instant::max();
    expect_end(index);
    join_others(index);
}

// It runs beside them: on links, on nodes that may corrupt it, and to be compared with.
void WorldRuns::join_others(JobIndex index) {
    LiveJob& j = jobs_[index];
    links_.take_way_to_store(index);
    if (strikes_) strikes_->started(index);
    if (j.stage == RunStage::whole) links_.send_from(index, clock_.now() + j.run.setup());
    j.work.forget_if_clean();
    for (const auto& [node, corruption] : repair_.corrupting()) {
        if (j.working().has(node)) j.corrupt(clock_.now(), corruption);
    }
    if (run_.spec.slowdowns.empty()) return;
    for (const NodeShare& share : j.working()) repair_.compare(share.node);
}

void WorldRuns::suspend(JobIndex index) {
    LiveJob& j = jobs_[index];
    const RunPlan rest = j.storm ? j.storm->rest : j.run.rest_after(clock_.now() - j.run_since);
    const bool sets_up = j.stage == RunStage::setting_up;
    const bool has_state = sets_up ? j.parts->suspended : j.stage != RunStage::restoring;
    stop(index, Unsaved::held_in_memory);
    j.suspended_whole = true;
    if (j.parts != nullptr) {  // a restore, a first batch and a save begin anew
        j.parts->suspend(has_state);
        j.run = {};
        if (sets_up) j.run = {.prolog = rest.prolog, .restart = rest.restart};
    } else {
        j.run = rest;
        // It may have stood still where no way was left.
        if (std::exchange(j.run.stands_still, false)) j.run.steps = j.work.left();
    }
}

void WorldRuns::resume(JobIndex index) {
    LiveJob& j = jobs_[index];
    // It may have lost its state meanwhile.
    if (!std::exchange(j.suspended_whole, false)) {
        return start(index, j.phase_since - j.status.started);
    }
    const Duration away = clock_.now() - j.phase_since;
    j.status.phase = WorldPhase::running;
    j.status.started += away;
    if (j.own_failure < Instant::max()) j.own_failure += away;
    j.run_since = j.phase_since = clock_.now();
    j.pace_changes_at = Instant::max();
    const StepTime before = j.step;
    links_.set_step(index);
    books_.record("started", index, "", j.status.held.front().node);
    for (WorldListener* each : run_.listeners) each->started(index, clock_.now(), j.status.held);
    if (meets_broken_node(index)) return;
    bool changes = false;
    if (j.stage == RunStage::whole) {
        // The step under way ends at the pace that it began with.
        changes = j.step != before || (j.slow_node != no_node && j.run.steps > 0);
        j.step = before;
        if (j.cut_off) {
            j.work.lose_after(j.work.done());
            stand_still(index, j.run);
        } else {
            j.run_since -= j.work.take_held();
        }
    } else {
        j.run.step = j.step.duration();
    }
    expect_end(index);
    join_others(index);
    if (changes) change_pace_soon(index);
}

// The prolog finds it, or the job stalls until it notices.
bool WorldRuns::meets_broken_node(JobIndex index) {
    LiveJob& j = jobs_[index];
    const std::vector<NodeIndex> ailing = cluster_.ailing(j.working());
    const auto node =
        std::ranges::find_if(ailing, [&](NodeIndex n) { return cluster_.node(n).broken; });
    if (node == ailing.end()) return false;
    if (run_.spec.health.prolog) {
        clock_.schedule_end(j, clock_.now() + j.run.prolog, WorldClock::prolog_fails, index);
        j.pace_changes_at = clock_.now();  // and nothing else will
        return true;
    }
    ++outcome_.interruptions[repair_.cause(*node)];
    ++outcome_.runs[index].interruptions;
    stop(index, Unsaved::lost);
    stall(index, *node, repair_.detection(*node));
    return true;
}

void WorldRuns::stall(JobIndex index, NodeIndex node, Duration unnoticed) {
    LiveJob& j = jobs_[index];
    j.failed_node = node;
    j.status.phase = WorldPhase::stalled;
    const Instant notices = clock_.now() + unnoticed;
    j.run_end = RunEnd::limit;
    const Instant limit = limit_of(run_.spec, j);
    clock_.schedule_end(j, std::min(notices, limit),
                        limit < notices ? WorldClock::run_ends : WorldClock::notices, index);
}

void WorldRuns::expect_end(JobIndex index) {
    LiveJob& j = jobs_[index];
    const Instant done = after(j.run_since, j.run.finish_after());
    const Instant limit = limit_of(run_.spec, j);
    const Instant first = std::min({done, limit, j.own_failure, j.pace_changes_at});
    const bool leaves =
        j.leaves() && j.pace_changes_at == Instant::max() && j.stage == RunStage::whole;
    const bool last =
        j.stage == RunStage::whole || (j.stage == RunStage::working && j.run.ends_safe);
    j.run_end = first == done            ? (!last    ? RunEnd::stage_over
                                            : leaves ? RunEnd::left
                                                     : RunEnd::done)
                : first == limit         ? RunEnd::limit
                : first == j.own_failure ? RunEnd::own_failure
                                         : RunEnd::new_pace;
    if (first < Instant::max()) clock_.schedule_end(j, first, WorldClock::run_ends, index);
}

void WorldRuns::end_run(JobIndex index) {
    LiveJob& j = jobs_[index];
    switch (j.run_end) {
        case RunEnd::done:
        case RunEnd::limit:
            return owner_.run_over(index, j.run_end == RunEnd::limit);
        case RunEnd::own_failure:
            ++outcome_.own_failures;
            ++outcome_.runs[index].interruptions;
            run_.record(clock_.now(), "interruption", index, "job", no_node, 0);
            stop(index, Unsaved::lost);
            return owner_.run_failed(index, no_node);
        case RunEnd::new_pace:
            return change_pace(index);
        case RunEnd::left:
            return left(index);
        case RunEnd::stage_over:
            return end_stage(index);
    }
}

void WorldRuns::left(JobIndex index) {
    const LiveJob& j = jobs_[index];
    stop(index, j.parts == nullptr ? Unsaved::kept : Unsaved::lost);
    j.slow_node != no_node ? owner_.run_failed(index, j.slow_node) : owner_.run_grows(index);
}

void WorldRuns::stop(JobIndex index, Unsaved unsaved, const StateLoss& loss) {
    LiveJob& j = jobs_[index];
    if (j.parts != nullptr) {  // what they do from now on changes no step
        j.stage = RunStage::setting_up;
        j.parts->stop();
    }
    books_.book_until(index, clock_.now(), unsaved, loss);
    sizes_.book_unused(index);
    j.work.forget_if_clean();
    j.storm.reset();
    j.phase_since = clock_.now();
    clock_.engine.cancel(j.event);
    links_.leave(index);
    if (strikes_) strikes_->stopped(index);
    for (WorldListener* each : run_.listeners) each->stopped(index, clock_.now());
}

void WorldRuns::pace_changed(NodeIndex node) {
    for (const JobIndex index : cluster_.jobs_on(node)) change_pace_soon(index);
}

// Those that save leave it, as their scheduler has it; the others go on to their end.
void WorldRuns::leave_slow_node(NodeIndex node) {
    owner_.book_free();
    for (const JobIndex index : cluster_.jobs_on(node)) {
        LiveJob& j = jobs_[index];
        if (!j.runs() || j.slow_node != no_node) continue;
        if (!j.kind.requeue || j.kind.checkpoint_interval == Duration{}) continue;
        j.slow_node = node;
        change_pace_soon(index);
    }
}

// At the end of the step, or the stall, that is under way.
void WorldRuns::change_pace_soon(JobIndex index) {
    LiveJob& j = jobs_[index];
    if (!j.runs()) return;
    if (j.storm) {
        j.storm->pace_changes = true;
        return;
    }
    // It leaves a slow node, moves data, or sets up: what it does next is done at the new pace.
    if (j.run.steps == 0 && !j.run.stands_still) return;
    if (j.pace_changes_at < Instant::max()) return;
    const Duration elapsed = std::max(clock_.now() - j.run_since, j.run.setup());
    j.pace_changes_at =
        j.run_since + (j.run.stands_still ? elapsed : j.run.boundary_after(elapsed));
    clock_.engine.cancel(j.event);
    expect_end(index);
}

void WorldRuns::change_pace(JobIndex index) {
    LiveJob& j = jobs_[index];
    j.pace_changes_at = Instant::max();
    if (j.storm) return storm_over(index);
    const std::int64_t into = j.run.after(clock_.now() - j.run_since).steps + j.run.done;
    books_.book_until(index, clock_.now(), Unsaved::held_in_memory);
    j.run_since = clock_.now();
    links_.set_step(index);
    books_.record(j.slow_node == no_node ? "pace_changed" : "leaves_slow_node", index, "",
                  j.status.held.front().node);
    if (j.stage == RunStage::working) return after_steps(index);
    const RunPlan before = std::exchange(j.run, {});
    j.run.step = j.step.duration();
    if (j.leaves()) {
        j.run.last_stall = j.kind.checkpoint_stall;
    } else {
        j.run.steps = j.work.left();
        j.run.interval = before.interval;
        j.run.stall = before.stall;
        j.run.done = before.interval > 0 ? into % before.interval : 0;
        if (j.cut_off) stand_still(index, j.run);
        if (std::exchange(j.rerouted, false)) links_.send_from(index, clock_.now());
    }
    expect_end(index);
}

void WorldRuns::stand_still(JobIndex index, RunPlan& plan) {
    const LiveJob& j = jobs_[index];
    plan.steps = 0;
    plan.stands_still = true;
    ++outcome_.network_stalls;
    books_.record("no_path", index, links_.broken_on_way(index), j.status.held.front().node);
}

void WorldRuns::corrupted(NodeIndex node, std::size_t corruption) {
    for (const JobIndex index : cluster_.jobs_on(node)) {
        LiveJob& j = jobs_[index];
        if (j.runs() && j.working().has(node)) j.corrupt(clock_.now(), corruption);
    }
}

// The parts of one that is over do nothing for it any more.
void WorldRuns::forget(JobIndex index) {
    if (std::exchange(jobs_[index].parts, nullptr) != nullptr) parts_->forget(index);
}

}  // namespace railyard
