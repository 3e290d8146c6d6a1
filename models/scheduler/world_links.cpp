#include "models/scheduler/world_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace railyard {

void WorldLinks::start() {
    if (run_.network == nullptr || !run_.network->any()) return;
    network_.emplace(clock_.engine, *run_.network, owner_, run_.seed, run_.replica);
    network_->start();
}

// ---- how long a step takes ----

std::vector<NodeIndex> WorldLinks::nodes_of(JobIndex index) const {
    std::vector<NodeIndex> nodes;
    for (const NodeShare& share : jobs_[index].working()) nodes.push_back(share.node);
    return nodes;
}

NetworkState WorldLinks::broken_on_routes(JobIndex index) const {
    if (!network_ || !jobs_[index].routes() || network_->broken().empty()) return {};
    return jobs_[index].routes()(nodes_of(index), {run_.hashes, network_->broken()});
}

// By the kind's model; nothing when no way is left between nodes that have to talk. Where a sound network has
// no way either, no job waits for one.
std::optional<StepTime> WorldLinks::step_over_network(JobIndex index,
                                                      std::uint32_t conditions) const {
    const NetworkState& broken = jobs_[index].broken;
    try {
        return jobs_[index].placed_step()(nodes_of(index), conditions, {run_.hashes, broken});
    } catch (const NoPath&) {
        if (broken.empty()) throw;
        return std::nullopt;
    }
}

// All but its wait for data.
StepTime WorldLinks::step_of(JobIndex index) const {
    const WorldJobKind& kind = jobs_[index].kind;
    std::uint32_t conditions = 0;
    if (!run_.spec.slowdowns.empty()) conditions = repair_.slow_conditions(jobs_[index].working());
    StepTime step;
    if (kind.step) {
        const std::optional<StepTime> found = step_over_network(index, conditions);
        // None is done.
        step = found ? *found
                     : jobs_[index].placed_step()(nodes_of(index), conditions, {run_.hashes, {}});
        step.data_wait = {};
        if (!found) return step;
    } else {
        const Duration tick = run_.spec.tick(kind);
        step.compute = kind.duty < 1 ? from_seconds(seconds(tick) * kind.duty) : tick;
        step.data_wait = tick - step.compute;
        step.degraded =
            from_seconds(seconds(step.compute) * worst_slowdown(run_.spec.slowdowns, conditions));
        step.throttled = from_seconds(seconds(step.compute) * kind.throttled);
    }
    if (links_.has(index)) step.contention = from_seconds(links_.longer_s(index));
    return step;
}

void WorldLinks::set_step(JobIndex index) {
    LiveJob& j = jobs_[index];
    j.broken = broken_on_routes(index);
    j.cut_off = !j.broken.empty() && !step_over_network(index, 0);
    j.step = step_of(index);
    const Duration late = j.kind.late(j.step.duration());
    j.step.data_wait += wait_for_batch(late);
    if (WorldParts::Parts* parts = jobs_[index].parts) {
        parts->slowed = parts->checkpointer.uploading();
        if (parts->slowed) j.step.upload = parts->spec().upload_step_penalty;
        parts->late = late;
        parts->wait = parts->extra_wait();
        j.step.data_wait += parts->wait;
    }
    wait_for_others(index);
}

// Books the jobs that its step waits for there. The cost of its own upload is part of saving.
void WorldLinks::wait_for_others(JobIndex index) {
    LiveJob& j = jobs_[index];
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

// ---- who sends over which links ----

void WorldLinks::send_from(JobIndex index, Instant from) {
    if (!jobs_[index].traffic() || links_.has(index)) return;
    jobs_[index].sends_from = from;
    clock_.schedule(from, WorldClock::sends, index);
}

void WorldLinks::join(JobIndex index) {
    // It may have stopped since, or be another run.
    if (!jobs_.runs(index) || links_.has(index)) return;
    const LiveJob& j = jobs_[index];
    if (j.sends_from != clock_.now() || j.cut_off) return;
    const WorldJobKind& kind = j.kind;
    auto traffic = j.traffic()(nodes_of(index), {run_.hashes, j.broken});
    if (!traffic || traffic->parts.empty()) return;
    // Saves over other links are pauses between its steps.
    Duration stall = kind.saving ? jobs_[index].parts->spec().stall_alone : kind.checkpoint_stall;
    if (kind.transfer_traffic) stall = {};
    const double every = real(j.save_every);
    links_.join(index, std::move(traffic), every > 0 ? seconds(stall) / every : 0);
    change_soon();
}

void WorldLinks::leave(JobIndex index) {
    jobs_[index].sends_from = Instant::max();
    if (!links_.has(index)) return;
    links_.leave(index);
    change_soon();
}

void WorldLinks::change_soon() {
    if (!std::exchange(changing_, true)) clock_.schedule(clock_.now(), WorldClock::links_change, 0);
}

void WorldLinks::settle() {
    changing_ = false;
    for (const SharedLinks::Member member : links_.settle()) {
        if (member >= jobs_.size()) {
            change_upload(member - static_cast<JobIndex>(jobs_.size()));
        } else {
            jobs_[member].moves_bytes() ? change_transfer(member) : owner_.change_pace_soon(member);
        }
    }
}

void WorldLinks::add_beside(std::vector<JobIndex>& jobs) const {
    for (const JobIndex index : std::vector<JobIndex>(jobs)) {
        if (!links_.has(index)) continue;
        for (const SharedLinks::Member other : links_.beside(index)) {
            if (other < jobs_.size()) jobs.push_back(other);
        }
    }
    std::ranges::sort(jobs);
    jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
}

// ---- uploads, saves and restores ----

// An upload is on the links of steps while it lasts, whoever's these are.
void WorldLinks::uploads_changed(JobIndex index) {
    if (!jobs_[index].kind.uploads_on_links) return;
    WorldParts::Parts* parts = jobs_[index].parts;
    const TransferSpec* upload = parts == nullptr ? nullptr : parts->checkpointer.upload();
    const SharedLinks::Member member = uploads_of(index);
    if ((upload != nullptr) == links_.has(member)) return;
    if (upload == nullptr) {
        links_.leave(member);
        if (parts != nullptr) parts->checkpointer.limit_uploads(unlimited);
    } else if (!transfer_joins(index, member, *upload)) {
        return;
    }
    change_soon();
}

// False: it is on no links.
bool WorldLinks::transfer_joins(JobIndex index, SharedLinks::Member as,
                                const TransferSpec& transfer) {
    const NetworkNow now{run_.hashes, network_ ? network_->broken() : NetworkState{}};
    auto traffic = jobs_[index].kind.transfer_traffic(nodes_of(index), now, transfer);
    if (!traffic) return false;
    links_.join(as, std::move(traffic), 0);
    return true;
}

// What the links leave it, from now on.
void WorldLinks::change_upload(JobIndex index) {
    WorldParts::Parts* parts = jobs_[index].parts;
    const TransferSpec* upload = parts == nullptr ? nullptr : parts->checkpointer.upload();
    if (upload == nullptr) return;
    const double longer_s = links_.longer_s(uploads_of(index));
    const Bandwidth most = std::min(upload->cap, run_.spec.stores[upload->store].supply.write);
    parts->checkpointer.limit_uploads(longer_s == 0 ? unlimited : beside_others(most, longer_s));
}

const TransferSpec* WorldLinks::transfer_of(JobIndex index) const {
    if (!jobs_[index].kind.transfer_traffic || !jobs_[index].moves_bytes()) return nullptr;
    return jobs_[index].parts->waits_for(jobs_[index].stage == RunStage::saving);
}

void WorldLinks::begin_transfer(JobIndex index) {
    const TransferSpec* transfer = transfer_of(index);
    if (transfer == nullptr) return;
    leave(index);
    if (jobs_[index].parts->way.now().closed(transfer->direction)) {
        const LiveJob& j = jobs_[index];
        run_.record(clock_.now(), "no_path", index, j.parts->way.parts(),
                    j.status.held.front().node, j.work.left());
        return;
    }
    if (transfer_joins(index, index, *transfer)) change_soon();
}

void WorldLinks::end_transfer(JobIndex index) {
    if (transfer_of(index) != nullptr) leave(index);
}

void WorldLinks::change_transfer(JobIndex index) {
    const TransferSpec* transfer = transfer_of(index);
    if (transfer == nullptr) return;
    Checkpointer& checkpointer = jobs_[index].parts->checkpointer;
    const StoreSupply& supply = run_.spec.stores[transfer->store].supply;
    const double longer_s = links_.longer_s(index);
    if (longer_s == 0) return checkpointer.limit(transfer->cap, transfer->cap_wall);
    const Bandwidth most = transfer->direction == Direction::write ? supply.write : supply.read;
    checkpointer.limit(beside_others(std::min(transfer->cap, most), longer_s), Wall::network);
}

// ---- what is broken ----

void WorldLinks::take_way_to_store(JobIndex index) {
    const LiveJob& j = jobs_[index];
    if (!network_ || j.parts == nullptr || !j.kind.store_way) return;
    const NetworkState& broken = network_->broken();
    j.parts->way.take(
        broken.empty() ? StoreWay{} : j.kind.store_way(nodes_of(index), {run_.hashes, broken}),
        *network_);
}

void WorldLinks::way_changes(JobIndex index) {
    if (jobs_[index].parts == nullptr) return;
    const WayToStore& way = jobs_[index].parts->way;
    const StoreWay before = way.now();
    take_way_to_store(index);
    if (way.now().broken != before.broken) route_transfers_again(index, before);
}

// What is on the links now goes other ways.
void WorldLinks::route_transfers_again(JobIndex index, const StoreWay& before) {
    Checkpointer& checkpointer = jobs_[index].parts->checkpointer;
    const TransferSpec* transfer = transfer_of(index);
    const StoreWay& now = jobs_[index].parts->way.now();
    const bool moves = transfer != nullptr && checkpointer.on_a_store();
    if (moves && !(before.closed(transfer->direction) && now.closed(transfer->direction))) {
        if (links_.has(index)) checkpointer.limit(transfer->cap, transfer->cap_wall);
        begin_transfer(index);
    }
    if (links_.has(uploads_of(index))) {
        links_.leave(uploads_of(index));
        checkpointer.limit_uploads(unlimited);
        change_soon();
    }
    uploads_changed(index);
}

void WorldLinks::network_changed(JobIndex submitted) {
    for (JobIndex index = 0; index < submitted; ++index) {
        if (!jobs_.runs(index)) continue;
        way_changes(index);
        if (broken_on_routes(index) == jobs_[index].broken) continue;
        if (jobs_[index].moves_bytes())
            continue;  // the way that it began with; its next step goes another
        leave(index);
        jobs_[index].rerouted = true;
        owner_.change_pace_soon(index);
    }
}

std::string WorldLinks::waiting(JobIndex submitted) const {
    std::string out;
    for (JobIndex index = 0; index < submitted; ++index) {
        if (!jobs_.runs(index)) continue;
        const LiveJob& j = jobs_[index];
        const bool no_store = !j.cut_off && j.parts != nullptr && j.parts->way.now().closed();
        if (!no_store && !j.cut_off) continue;
        out += fmt::format("{}job {} has no way left {}over the compute network: {} is out",
                           out.empty() ? "" : "\n", run_.spec.name_of(run_.jobs.jobs[index]),
                           no_store ? "to the store " : "",
                           no_store ? j.parts->way.parts() : broken_on_way(index));
    }
    return out;
}

}  // namespace railyard
