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
    saves_->start(index, transfers_of(index).save);
}

void FleetSimulation::end_stage(JobIndex index) {
    Job& j = jobs_[index];
    book_run(index, Unsaved::held_in_memory);
    if (j.stage == Stage::working) return begin_save(index);
    if (kept_steps(index) == 0 || j.in_memory > 0) return begin_work(index);
    begin_stage(index, Stage::restoring, {.restore = open_ended});
    saves_->start(index, transfers_of(index).restore);
}

void FleetSimulation::transfer_over(JobIndex index) {
    book_free();
    engine_.cancel(jobs_[index].event);
    book_run(index, Unsaved::held_in_memory);
    if (jobs_[index].stage == Stage::saving) book_in_memory(index, true);
    jobs_[index].run_since = now();  // all of it is booked
    begin_work(index);
}

}  // namespace railyard
