// Jobs whose steps become slower or faster while they run: slow parts, and links that jobs share.

#include <utility>

#include "models/scheduler/fleet_simulation.h"

namespace railyard {

// ---- links that jobs share ----

void FleetSimulation::send_from(JobIndex index, Instant from) {
    if (!spec().kinds[job(index).kind].traffic || links_.has(index)) return;
    jobs_[index].sends_from = from;
    schedule(from, sends, index);
}

void FleetSimulation::join_links(JobIndex index) {
    Job& j = jobs_[index];
    // It may have stopped since, or be another run.
    if (j.status.phase != FleetPhase::running || j.sends_from != now() || links_.has(index)) return;
    const FleetJobKind& kind = spec().kinds[job(index).kind];
    if (j.cut_off) return;
    auto traffic = kind.traffic(nodes_of(index), {run_.hashes, j.broken});
    if (!traffic || traffic->parts.empty()) return;
    // Saves over other links are pauses between its steps.
    Duration stall = kind.saving ? parts_of(index)->spec().stall_alone : kind.checkpoint_stall;
    if (kind.transfer_traffic) stall = {};
    const double every = static_cast<double>(j.save_every);
    links_.join(index, std::move(traffic), every > 0 ? seconds(stall) / every : 0);
    links_change_soon();
}

void FleetSimulation::leave_links(JobIndex index) {
    jobs_[index].sends_from = Instant::max();
    if (!links_.has(index)) return;
    links_.leave(index);
    links_change_soon();
}

// Once for all that comes and goes at an instant.
void FleetSimulation::links_change_soon() {
    if (links_changing_) return;
    links_changing_ = true;
    schedule(now(), links_change, 0);
}

void FleetSimulation::change_paces_on_links() {
    links_changing_ = false;
    for (const JobIndex index : links_.settle()) {
        moves_bytes(index) ? change_transfer(index) : change_pace_soon(index);
    }
}

// ---- slow parts ----

void FleetSimulation::pace_changed(NodeIndex node) {
    for (const JobIndex index : cluster_.jobs_on(node)) change_pace_soon(index);
}

// Those that save leave it, as their scheduler has it; the others go on to their end.
void FleetSimulation::leave_slow_node(NodeIndex node) {
    book_free();
    for (const JobIndex index : cluster_.jobs_on(node)) {
        const FleetJobKind& kind = spec().kinds[job(index).kind];
        Job& j = jobs_[index];
        if (j.status.phase != FleetPhase::running || j.slow_node != no_node) continue;
        if (!kind.requeue || kind.checkpoint_interval == Duration{}) continue;
        j.slow_node = node;
        change_pace_soon(index);
    }
}

// At the end of the step, or the stall, that is under way.
void FleetSimulation::change_pace_soon(JobIndex index) {
    Job& j = jobs_[index];
    if (j.status.phase != FleetPhase::running) return;
    // It leaves a slow node, moves data, or sets up: what it does next is done at the new pace.
    if (j.run.steps == 0 && !j.run.stands_still) return;
    if (j.pace_changes_at < Instant::max()) return;
    const Duration elapsed = std::max(now() - j.run_since, j.run.setup());
    j.pace_changes_at =
        j.run_since + (j.run.stands_still ? elapsed : j.run.boundary_after(elapsed));
    engine_.cancel(j.event);
    expect_end(index);
}

void FleetSimulation::change_pace(JobIndex index) {
    Job& j = jobs_[index];
    j.pace_changes_at = Instant::max();
    const std::int64_t into = j.run.after(now() - j.run_since).steps + j.run.done;
    book_run(index, Unsaved::held_in_memory);
    const FleetJobKind& kind = spec().kinds[job(index).kind];
    j.run_since = now();
    set_step(index);
    record(j.slow_node == no_node ? "pace_changed" : "leaves_slow_node", index, "",
           j.status.held.front().node, j.steps_left);
    if (j.stage == Stage::working) return after_steps(index);
    const RunPlan before = std::exchange(j.run, {});
    j.run.step = j.step.duration();
    if (j.slow_node != no_node) {
        j.run.last_stall = kind.checkpoint_stall;
    } else {
        j.run.steps = j.steps_left;
        j.run.interval = before.interval;
        j.run.stall = before.stall;
        j.run.done = before.interval > 0 ? into % before.interval : 0;
        if (j.cut_off) stand_still(index, j.run);
        if (std::exchange(j.rerouted, false)) send_from(index, now());
    }
    expect_end(index);
}

}  // namespace railyard
