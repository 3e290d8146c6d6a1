// Jobs that share a store: a run goes from stage to stage.

#include <algorithm>

#include "models/scheduler/fleet_simulation.h"

namespace railyard {

namespace {

constexpr Duration open_ended = Duration::max() / 4;  // the store says when

}  // namespace

// That a store has.
std::int64_t FleetSimulation::kept_steps(JobIndex index) const {
    return total_steps(index) - jobs_[index].steps_left - jobs_[index].in_memory;
}

JobTransfers FleetSimulation::transfers_of(JobIndex index) const {
    const auto nodes = static_cast<std::int64_t>(jobs_[index].status.held.size());
    return spec().kinds[job(index).kind].transfers(job(index).gpus, nodes);
}

void FleetSimulation::begin_stage(JobIndex index, Stage stage, const RunPlan& plan) {
    Job& j = jobs_[index];
    j.stage = stage;
    j.run = plan;
    j.run.step = j.step.duration();
    j.run_since = now();
    expect_end(index);
}

// To the next save, or to the end.
void FleetSimulation::begin_work(JobIndex index) {
    Job& j = jobs_[index];
    if (j.slow_node != no_node) return left_slow_node(index);
    set_step(index);
    j.in_memory_on = j.status.held;
    RunPlan plan;
    const std::int64_t to_save = j.save_every > 0 ? j.save_every - j.in_memory : j.steps_left;
    plan.steps = std::min(j.steps_left, to_save);
    plan.ends_safe = plan.steps == j.steps_left;
    j.rerouted = false;
    if (j.cut_off) stand_still(index, plan);
    begin_stage(index, Stage::working, plan);
    send_from(index, now());
}

void FleetSimulation::begin_save(JobIndex index) {
    jobs_[index].in_memory_on = jobs_[index].status.held;
    begin_stage(index, Stage::saving, {.last_stall = open_ended});
    begin_transfer(index);
}

TransferSpec FleetSimulation::transfer_of(JobIndex index) const {
    const JobTransfers all = transfers_of(index);
    return jobs_[index].stage == Stage::saving ? all.save : all.restore;
}

// Over the network of the steps, it is on their links while it lasts.
void FleetSimulation::begin_transfer(JobIndex index) {
    const TransferSpec transfer = transfer_of(index);
    saves_->start(index, transfer);
    const FleetJobKind& kind = spec().kinds[job(index).kind];
    if (!kind.transfer_traffic) return;
    leave_links(index);
    const NetworkState broken = network_ ? network_->broken() : NetworkState{};
    auto traffic = kind.transfer_traffic(nodes_of(index), {run_.hashes, broken}, transfer);
    if (!traffic) return;
    links_.join(index, std::move(traffic), 0);
    links_change_soon();
}

// What the links leave it, from now on.
void FleetSimulation::change_transfer(JobIndex index) {
    const TransferSpec transfer = transfer_of(index);
    const StoreSupply& supply = spec().stores[transfer.store].supply;
    const double longer_s = links_.longer_s(index);
    if (longer_s == 0) return saves_->change_cap(index, transfer.cap, transfer.cap_wall);
    const Bandwidth most = transfer.direction == Direction::write ? supply.write : supply.read;
    saves_->change_cap(index, beside_others(std::min(transfer.cap, most), longer_s), Wall::network);
}

void FleetSimulation::end_stage(JobIndex index) {
    Job& j = jobs_[index];
    book_run(index, Unsaved::held_in_memory);
    if (j.stage == Stage::working) return begin_save(index);
    if (kept_steps(index) == 0 || j.in_memory > 0) return begin_work(index);
    begin_stage(index, Stage::restoring, {.restore = open_ended});
    begin_transfer(index);
}

void FleetSimulation::transfer_over(JobIndex index) {
    book_free();
    engine_.cancel(jobs_[index].event);
    book_run(index, Unsaved::held_in_memory);
    if (jobs_[index].stage == Stage::saving) book_in_memory(index, true);
    jobs_[index].run_since = now();  // all of it is booked
    if (spec().kinds[job(index).kind].transfer_traffic) leave_links(index);
    begin_work(index);
}

}  // namespace railyard
