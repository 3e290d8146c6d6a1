// Pause storms: what the steps of the jobs that one reaches send stands still, and then goes on; or the
// connections give up, and with the NIC's node the jobs on it.

#include <memory>
#include <utility>

#include "models/scheduler/world_runs.h"

namespace railyard {

void WorldRuns::storm(NodeIndex node, const Strike& strike) {
    owner_.book_free();
    const Storm& storm = *run_.causes[strike.cause].storm;
    bool idle = true;
    bool held_there = false;  // a job on the node
    bool felt = false;
    std::vector<JobIndex> reached;
    for (const JobIndex index : cluster_.jobs_on(node)) {
        if (strike.job.value_or(index) == index) reached.push_back(index);
    }
    links_.add_beside(reached);  // their packets stand in the same queues
    for (const JobIndex index : reached) {
        if (!jobs_[index].runs()) continue;
        idle = false;
        if (!jobs_[index].steps_now(clock_.now())) continue;
        felt = true;
        held_there = held_there || jobs_[index].status.held.has(node);
        hold_up(index, node, strike);
    }
    if (idle) ++outcome_.strikes_on_idle;
    const bool kills_now = storm.fatal && !idle && !held_there;
    if (felt || kills_now) ++outcome_.storms;
    if (kills_now) repair_.break_down(node, strike);
}

// What is done of the step under way is not lost.
void WorldRuns::hold_up(JobIndex index, NodeIndex node, const Strike& strike) {
    LiveJob& j = jobs_[index];
    const FailureCause& cause = run_.causes[strike.cause];
    const RunProgress p = j.run.after(clock_.now() - j.run_since);
    clock_.engine.cancel(j.event);
    books_.book_until(index, clock_.now() - p.partial, Unsaved::held_in_memory);
    j.carried = p.partial;
    HeldUp held{node, strike, j.run, j.pace_changes_at < Instant::max()};
    RunPlan& rest = held.rest;
    rest.done = rest.interval > 0 ? (rest.done + p.steps) % rest.interval : 0;
    rest.steps -= p.steps;
    rest.prolog = rest.restart = rest.restore = rest.first_batch = rest.stalled = {};
    j.storm = std::make_unique<HeldUp>(std::move(held));
    j.pace_changes_at = clock_.now() + cause.storm->stall;
    books_.record("storm", index, cause.name, node);
    const RunPlan still{.step = j.run.step, .stands_still = true};
    if (j.stage == RunStage::working) return begin_stage(index, RunStage::working, still);
    j.run = still;
    j.run_since = clock_.now();
    expect_end(index);
}

void WorldRuns::storm_over(JobIndex index) {
    LiveJob& j = jobs_[index];
    const HeldUp held = *std::exchange(j.storm, nullptr);
    const bool fatal = run_.causes[held.strike.cause].storm->fatal;
    const bool on_it = j.status.held.has(held.node);
    if (fatal && on_it && repair_.break_down(held.node, held.strike)) return;
    const Duration carried = std::exchange(j.carried, {});
    books_.book_until(index, clock_.now(), Unsaved::held_in_memory);
    j.run_since = clock_.now();
    if (j.stage == RunStage::working) {
        return carried > Duration{} ? resume_step(index, carried) : after_steps(index);
    }
    j.run = held.rest;
    j.run_since -= carried;
    expect_end(index);
    if (held.pace_changes) change_pace_soon(index);
}

}  // namespace railyard
