#include "models/scheduler/world_jobs.h"

#include <algorithm>

namespace railyard {

bool LiveJob::steps_now(Instant now) const {
    if (!runs() || run.stands_still) return false;
    if (stage != RunStage::whole && stage != RunStage::working) return false;
    const Duration elapsed = now - run_since;
    const RunProgress p = run.after(elapsed);
    return elapsed >= run.setup() && !p.saving && p.steps < run.steps;
}

std::int64_t LiveJob::steps_to_save() const {
    const Saver& saver = parts->checkpointer;
    if (!saver.saves()) return std::max<std::int64_t>(1, work.left());
    const std::int64_t every = saver.spec().interval_wall > Duration{} ? 0 : save_every;
    if (saver.due(work.done(), every)) return 0;
    return saver.steps_until_due(work.done(), every, step.duration());
}

void LiveJob::lose_unsaved(const StateLoss& loss) {
    suspended_whole = false;
    if (parts == nullptr) return work.lose_after(work.kept());
    parts->checkpointer.fail(loss);
    parts->checkpointer.give_up_newer();
    parts->suspended = false;
    work.lose_after(std::max(parts->checkpointer.newest().steps, work.kept()));
}

CarriedJob LiveJob::run_left(Instant now) const {
    CarriedJob out;
    out.held = status.held;
    if (smaller()) out.fewer_nodes = smaller()->nodes;
    RunPlan rest = storm ? storm->rest : run;
    const RunProgress p = run.after(now - run_since);
    if (!storm) {
        rest = run.rest_after(now - run_since);
        if (p.saving && run.stall > Duration{}) out.stalled = (p.stall + run.stalled) % run.stall;
    }
    out.prolog = rest.prolog;
    out.restart = rest.restart;
    if (stage == RunStage::whole) out.restore = rest.restore;
    out.step = step;
    if (parts == nullptr) return out;
    const Saver& saver = parts->checkpointer;
    out.since_save = saver.unsaved(work.done() + p.steps);
    out.due_in = saver.due_in();
    out.offered = saver.offered();
    if (stage != RunStage::saving) return out;
    // That save begins anew, at once.
    out.since_save = std::max<std::int64_t>(1, save_every);
    out.due_in -= saver.spec().interval_wall;
    return out;
}

void LiveJob::leave(CarriedJob left, WorldJobRun& result) const {
    std::int64_t saved = work.kept();
    if (parts != nullptr) saved = std::max(saved, parts->checkpointer.lasting_steps());
    work.leave(saved, left);
    result.at_border().left = std::move(left);
}

void LiveJob::take_up_run() {
    run.prolog = came_with->prolog;
    run.restart = came_with->restart;
    run.restore = came_with->restore;
    if (run.stalls() > 0 && run.done == run.interval) {
        run.stalled = std::min(run.stall, came_with->stalled);
    }
    // With parts it is looked at again what the step under way waits for.
    const bool whole = stage == RunStage::whole;
    const StepTime& before = came_with->step;
    const bool same = whole ? step == before : step.compute == before.compute;
    if (!same || cut_off) work.begin_step_anew();
    if (whole) run_since -= work.take_held();
}

void LiveJob::begin_interval() {
    Saver& saver = parts->checkpointer;
    saver.was_read(work.done());
    const CarriedJob* const before = std::exchange(came_with, nullptr);
    if (before == nullptr) return;
    const std::int64_t since = std::min(before->since_save, work.done());
    saver.goes_on(work.done(), since, before->due_in, before->offered);
}

StateLoss LiveJob::loss_of(NodeIndex node) const {
    return parts ? StateLoss{StateLoss::Scope::node, parts->slot_of(node)} : StateLoss{};
}

void LiveJob::corrupt(Instant now, std::size_t corruption) {
    const RunProgress p = run.after(now - run_since);
    std::int64_t clean = work.done();
    if (p.saving || parts != nullptr) {  // what is saved from now on has more
        clean += p.steps;
    } else {
        clean = p.any_saved ? clean + p.saved : work.kept();
    }
    work.suspect(corruption, clean);
}

bool LiveJob::lose_suspect() {
    const std::int64_t before = work.done();
    const std::optional<std::int64_t> clean = work.lose_suspect();
    if (clean && parts != nullptr) {
        parts->checkpointer.give_up_after(*clean);
        work.lose_after(std::max(parts->checkpointer.newest().steps, work.kept()));
    }
    return work.done() < before;
}

}  // namespace railyard
