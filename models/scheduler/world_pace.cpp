// Jobs whose steps become slower or faster while they run: slow parts, and links that jobs share.

#include <utility>

#include "models/scheduler/world_simulation.h"

namespace railyard {

// ---- how long a step takes ----

StepTime WorldSimulation::step_of(JobIndex index) const {
    const WorldJobKind& kind = spec().kinds[job(index).kind];
    std::uint32_t conditions = 0;
    if (!spec().slowdowns.empty()) {
        for (const NodeShare& share : jobs_[index].status.held) {
            conditions |= repair_.slow_conditions(share.node);
        }
    }
    if (!kind.step) {
        StepTime tick;
        tick.compute = spec().tick(kind);
        if (kind.duty < 1) tick.compute = from_seconds(seconds(tick.compute) * kind.duty);
        tick.data_wait = spec().tick(kind) - tick.compute + kind.data_wait;
        tick.degraded = from_seconds(seconds(tick.compute) * spec().slowdown(conditions));
        tick.throttled = from_seconds(seconds(tick.compute) * kind.throttled);
        if (links_.has(index)) tick.contention = from_seconds(links_.longer_s(index));
        return tick;
    }
    const std::optional<StepTime> found = step_over_network(index, conditions);
    if (!found) return kind.step(nodes_of(index), conditions, {run_.hashes, {}});  // none is done
    StepTime step = *found;
    if (links_.has(index)) step.contention = from_seconds(links_.longer_s(index));
    return step;
}

std::vector<NodeIndex> WorldSimulation::nodes_of(JobIndex index) const {
    std::vector<NodeIndex> nodes;
    for (const NodeShare& share : jobs_[index].status.held) nodes.push_back(share.node);
    return nodes;
}

void WorldSimulation::set_step(JobIndex index) {
    Job& j = jobs_[index];
    j.broken = broken_on_routes(index);
    j.cut_off = !j.broken.empty() && !step_over_network(index, 0);
    j.step = step_of(index);
    if (WorldParts::Parts* parts = parts_of(index)) {
        parts->slowed = parts->checkpointer.uploading();
        if (parts->slowed) j.step.upload = parts->spec().upload_step_penalty;
        parts->wait = parts->extra_wait(j.step.data_wait);
        j.step.data_wait += parts->wait;
    }
    wait_on_links(index);
}

// ---- links that jobs share ----

void WorldSimulation::send_from(JobIndex index, Instant from) {
    if (!spec().kinds[job(index).kind].traffic || links_.has(index)) return;
    jobs_[index].sends_from = from;
    schedule(from, sends, index);
}

void WorldSimulation::join_links(JobIndex index) {
    // It may have stopped since, or be another run.
    if (status(index).phase != WorldPhase::running) return;
    Job& j = jobs_[index];
    if (j.sends_from != now() || links_.has(index)) return;
    const WorldJobKind& kind = spec().kinds[job(index).kind];
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

void WorldSimulation::leave_links(JobIndex index) {
    jobs_[index].sends_from = Instant::max();
    if (!links_.has(index)) return;
    links_.leave(index);
    links_change_soon();
}

// Once for all that comes and goes at an instant.
void WorldSimulation::links_change_soon() {
    if (links_changing_) return;
    links_changing_ = true;
    schedule(now(), links_change, 0);
}

void WorldSimulation::change_paces_on_links() {
    links_changing_ = false;
    for (const SharedLinks::Member member : links_.settle()) {
        if (member >= jobs_.size()) {
            change_upload(member - static_cast<JobIndex>(jobs_.size()));
        } else {
            moves_bytes(member) ? change_transfer(member) : change_pace_soon(member);
        }
    }
}

// Books the jobs that its step waits for there. The cost of its own upload is part of saving.
void WorldSimulation::wait_on_links(JobIndex index) {
    Job& j = jobs_[index];
    j.waits_for.clear();
    if (!links_.has(index)) return;
    double others = 1;
    for (const SharedLinks::Share& share : links_.caused_by(index)) {
        if (share.job == uploads_of(index)) {
            others -= share.share;
        } else {
            j.waits_for.push_back(share);
        }
    }
    if (j.waits_for.size() == links_.caused_by(index).size()) return;
    const Duration all = j.step.contention;
    j.step.contention = j.waits_for.empty() ? Duration{} : from_seconds(seconds(all) * others);
    j.step.upload += all - j.step.contention;
    for (SharedLinks::Share& share : j.waits_for) share.share /= others;
}

// An upload is on the links of steps while it lasts, whoever's these are.
void WorldSimulation::send_uploads(JobIndex index) {
    const WorldJobKind& kind = spec().kinds[job(index).kind];
    if (!kind.uploads_on_links) return;
    WorldParts::Parts* parts = parts_of(index);
    const TransferSpec* upload = parts == nullptr ? nullptr : parts->checkpointer.upload();
    const SharedLinks::Member member = uploads_of(index);
    if ((upload != nullptr) == links_.has(member)) return;
    if (upload == nullptr) {
        links_.leave(member);
        if (parts != nullptr) parts->checkpointer.limit_uploads(unlimited);
    } else if (!transfer_joins(index, member, *upload)) {
        return;
    }
    links_change_soon();
}

// False: it is on no links.
bool WorldSimulation::transfer_joins(JobIndex index, SharedLinks::Member as,
                                     const TransferSpec& transfer) {
    const NetworkNow now{run_.hashes, network_ ? network_->broken() : NetworkState{}};
    auto traffic = spec().kinds[job(index).kind].transfer_traffic(nodes_of(index), now, transfer);
    if (!traffic) return false;
    links_.join(as, std::move(traffic), 0);
    return true;
}

// What the links leave it, from now on.
void WorldSimulation::change_upload(JobIndex index) {
    WorldParts::Parts* parts = parts_of(index);
    const TransferSpec* upload = parts == nullptr ? nullptr : parts->checkpointer.upload();
    if (upload == nullptr) return;
    const double longer_s = links_.longer_s(uploads_of(index));
    const Bandwidth most = std::min(upload->cap, spec().stores[upload->store].supply.write);
    parts->checkpointer.limit_uploads(longer_s == 0 ? unlimited : beside_others(most, longer_s));
}

// ---- slow parts ----

void WorldSimulation::pace_changed(NodeIndex node) {
    for (const JobIndex index : cluster_.jobs_on(node)) change_pace_soon(index);
}

// Those that save leave it, as their scheduler has it; the others go on to their end.
void WorldSimulation::leave_slow_node(NodeIndex node) {
    book_free();
    for (const JobIndex index : cluster_.jobs_on(node)) {
        const WorldJobKind& kind = spec().kinds[job(index).kind];
        Job& j = jobs_[index];
        if (j.status.phase != WorldPhase::running || j.slow_node != no_node) continue;
        if (!kind.requeue || kind.checkpoint_interval == Duration{}) continue;
        j.slow_node = node;
        change_pace_soon(index);
    }
}

// At the end of the step, or the stall, that is under way.
void WorldSimulation::change_pace_soon(JobIndex index) {
    Job& j = jobs_[index];
    if (j.status.phase != WorldPhase::running) return;
    if (j.storm) {
        j.storm->pace_changes = true;
        return;
    }
    // It leaves a slow node, moves data, or sets up: what it does next is done at the new pace.
    if (j.run.steps == 0 && !j.run.stands_still) return;
    if (j.pace_changes_at < Instant::max()) return;
    const Duration elapsed = std::max(now() - j.run_since, j.run.setup());
    j.pace_changes_at =
        j.run_since + (j.run.stands_still ? elapsed : j.run.boundary_after(elapsed));
    engine_.cancel(j.event);
    expect_end(index);
}

void WorldSimulation::change_pace(JobIndex index) {
    Job& j = jobs_[index];
    j.pace_changes_at = Instant::max();
    if (j.storm) return storm_over(index);
    const std::int64_t into = j.run.after(now() - j.run_since).steps + j.run.done;
    book_run(index, Unsaved::held_in_memory);
    const WorldJobKind& kind = spec().kinds[job(index).kind];
    j.run_since = now();
    set_step(index);
    record(j.slow_node == no_node ? "pace_changed" : "leaves_slow_node", index, "",
           j.status.held.front().node, j.work.left());
    if (j.stage == Stage::working) return after_steps(index);
    const RunPlan before = std::exchange(j.run, {});
    j.run.step = j.step.duration();
    if (j.slow_node != no_node) {
        j.run.last_stall = kind.checkpoint_stall;
    } else {
        j.run.steps = j.work.left();
        j.run.interval = before.interval;
        j.run.stall = before.stall;
        j.run.done = before.interval > 0 ? into % before.interval : 0;
        if (j.cut_off) stand_still(index, j.run);
        if (std::exchange(j.rerouted, false)) send_from(index, now());
    }
    expect_end(index);
}

}  // namespace railyard
