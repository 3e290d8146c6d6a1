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
    parts->suspended = false;
    work.lose_after(std::max(parts->checkpointer.newest().steps, work.kept()));
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
