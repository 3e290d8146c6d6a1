// What silent corruption does to jobs: what is wrong, who finds out, and how far they go back.

#include <algorithm>
#include <utility>

#include "models/scheduler/world_simulation.h"

namespace railyard {

void WorldSimulation::corrupted(NodeIndex node, std::size_t corruption) {
    for (const JobIndex index : cluster_.jobs_on(node)) {
        if (jobs_[index].status.phase == WorldPhase::running) corrupt(index, corruption);
    }
}

void WorldSimulation::corrupt(JobIndex index, std::size_t corruption) {
    const Job& j = jobs_[index];
    const RunProgress p = j.run.after(now() - j.run_since);
    std::int64_t clean = jobs_[index].work.done();
    if (p.saving || parts_of(index) != nullptr) {  // what is saved from now on has more
        clean += p.steps;
    } else {
        clean = p.saved > 0 ? clean + p.saved : jobs_[index].work.kept();
    }
    jobs_[index].work.suspect(corruption, clean);
}

// A job starts; a node that corrupts goes on.
void WorldSimulation::meet_corruption(JobIndex index) {
    jobs_[index].work.forget_if_clean();
    for (const auto& [node, corruption] : repair_.corrupting()) {
        if (jobs_[index].status.held.has(node)) corrupt(index, corruption);
    }
}

void WorldSimulation::corruption_found(std::size_t corruption, NodeIndex node,
                                       const Strike& strike) {
    book_free();
    std::vector<JobIndex> affected;
    for (JobIndex index = 0; index < submitted_; ++index) {
        const auto has = jobs_.live(index) ? jobs_[index].work.corruption() : std::nullopt;
        const bool on_it = has && jobs_[index].status.held.has(node);
        if (has == corruption || on_it) affected.push_back(index);
    }
    for (const JobIndex index : affected) go_back(index, node, strike.cause);
    if (node != no_node && run_.causes[strike.cause].remedy != Remedy::restart) {
        lose_suspended(node);
    }
    decide_soon();
}

// To the newest checkpoint from before. A job that is done does not.
void WorldSimulation::go_back(JobIndex index, NodeIndex node, std::size_t cause) {
    Job& j = jobs_[index];
    const bool running = j.status.phase == WorldPhase::running;
    const bool done = j.status.phase == WorldPhase::completing && !j.next.waits;
    if (done || !j.work.corruption()) return;
    if (running) {
        ++outcome_.interruptions[cause];
        ++outcome_.runs[index].interruptions;
        settle_run(index, Unsaved::lost);
    } else {
        lose_unsaved(index, {});
    }
    const std::int64_t before = j.work.done();
    const std::optional<std::int64_t> clean = j.work.lose_suspect();
    WorldParts::Parts* parts = parts_of(index);
    if (clean && parts != nullptr) {
        parts->checkpointer.give_up_after(*clean);
        j.work.lose_after(parts->checkpointer.newest().steps);
    }
    if (j.work.done() == before && !running) return;
    ++outcome_.corruptions_found;
    record("corruption_found", index, run_.causes[cause].name, node, j.work.left());
    if (!running) return;
    j.status.phase = WorldPhase::gathering;
    scheduler_->failed(index, j.status.held.has(node) ? node : no_node);
}

}  // namespace railyard
