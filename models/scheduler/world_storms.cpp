// Pause storms: what the steps of the jobs that one reaches send stands still, and then goes on; or the
// connections give up, and with the NIC's node the jobs on it.

#include <algorithm>
#include <memory>
#include <utility>

#include "models/scheduler/world_simulation.h"

namespace railyard {

// Those on the NIC's node, and those that share a link with these: their packets stand in the same queues.
std::vector<JobIndex> WorldSimulation::reached_by_storm(NodeIndex node,
                                                        const Strike& strike) const {
    std::vector<JobIndex> out;
    for (const JobIndex index : cluster_.jobs_on(node)) {
        if (strike.job.value_or(index) != index) continue;
        out.push_back(index);
        if (!links_.has(index)) continue;
        for (const SharedLinks::Member other : links_.beside(index)) {
            if (other < jobs_.size()) out.push_back(other);
        }
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

// True when a step is under way, neither a stall nor what comes before the first step.
bool WorldSimulation::steps_now(JobIndex index) const {
    const Job& j = jobs_[index];
    if (j.status.phase != WorldPhase::running || j.run.stands_still) return false;
    if (j.stage != Stage::whole && j.stage != Stage::working) return false;
    const Duration elapsed = now() - j.run_since;
    const RunProgress p = j.run.after(elapsed);
    return elapsed >= j.run.setup() && !p.saving && p.steps < j.run.steps;
}

void WorldSimulation::storm(NodeIndex node, const Strike& strike) {
    book_free();
    const Storm& storm = *run_.causes[strike.cause].storm;
    bool idle = true;
    bool held_there = false;  // a job on the node
    bool felt = false;
    for (const JobIndex index : reached_by_storm(node, strike)) {
        if (jobs_[index].status.phase != WorldPhase::running) continue;
        idle = false;
        if (!steps_now(index)) continue;
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
void WorldSimulation::hold_up(JobIndex index, NodeIndex node, const Strike& strike) {
    Job& j = jobs_[index];
    const FailureCause& cause = run_.causes[strike.cause];
    const RunProgress p = j.run.after(now() - j.run_since);
    engine_.cancel(j.event);
    book_run_until(index, now() - p.partial, Unsaved::held_in_memory);
    j.carried = p.partial;
    HeldUp held{node, strike, j.run, j.pace_changes_at < Instant::max()};
    RunPlan& rest = held.rest;
    rest.done = rest.interval > 0 ? (rest.done + p.steps) % rest.interval : 0;
    rest.steps -= p.steps;
    rest.prolog = rest.restart = rest.restore = rest.first_batch = {};
    j.storm = std::make_unique<HeldUp>(std::move(held));
    j.pace_changes_at = now() + cause.storm->stall;
    record("storm", index, cause.name, node, j.work.left());
    const RunPlan still{.step = j.run.step, .stands_still = true};
    if (j.stage == Stage::working) return begin_stage(index, Stage::working, still);
    j.run = still;
    j.run_since = now();
    expect_end(index);
}

void WorldSimulation::storm_over(JobIndex index) {
    Job& j = jobs_[index];
    const HeldUp held = *std::exchange(j.storm, nullptr);
    const bool fatal = run_.causes[held.strike.cause].storm->fatal;
    const bool on_it = j.status.held.has(held.node);
    if (fatal && on_it && repair_.break_down(held.node, held.strike)) return;
    const Duration carried = std::exchange(j.carried, {});
    book_run(index, Unsaved::held_in_memory);
    j.run_since = now();
    if (j.stage == Stage::working) {
        return carried > Duration{} ? resume_step(index, carried) : after_steps(index);
    }
    j.run = held.rest;
    j.run_since -= carried;
    expect_end(index);
    if (held.pace_changes) change_pace_soon(index);
}

}  // namespace railyard
