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

// One at a time: what is wrong already gets no worse.
void WorldSimulation::corrupt(JobIndex index, std::size_t corruption) {
    const Job& j = jobs_[index];
    const RunProgress p = j.run.after(now() - j.run_since);
    std::int64_t clean = done_steps(index);
    if (p.saving || parts_of(index) != nullptr) {  // what is saved from now on has more
        clean += p.steps;
    } else {
        clean = p.saved > 0 ? clean + p.saved : kept_steps(index);
    }
    suspects_.try_emplace(index, Suspect{corruption, clean});
}

// What a job that does not run has is clean if nothing that is wrong was saved.
void WorldSimulation::forget_if_clean(JobIndex index) {
    const auto suspect = suspects_.find(index);
    if (suspect != suspects_.end() && suspect->second.kept.empty() &&
        done_steps(index) <= suspect->second.clean) {
        suspects_.erase(suspect);
    }
}

// A job starts; a node that corrupts goes on.
void WorldSimulation::meet_corruption(JobIndex index) {
    forget_if_clean(index);
    for (const auto& [node, corruption] : repair_.corrupting()) {
        if (jobs_[index].status.held.has(node)) corrupt(index, corruption);
    }
}

void WorldSimulation::corruption_found(std::size_t corruption, NodeIndex node,
                                       const Strike& strike) {
    book_free();
    std::vector<JobIndex> affected;
    for (const auto& [index, suspect] : suspects_) {
        const bool on_it = jobs_[index].status.held.has(node);
        if (suspect.corruption == corruption || on_it) affected.push_back(index);
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
    if (done || !suspects_.contains(index)) return;
    if (running) {
        ++outcome_.interruptions[cause];
        ++outcome_.runs[index].interruptions;
        settle_run(index, Unsaved::lost);
    } else {
        lose_unsaved(index, {});
    }
    if (!lose_suspect(index) && !running) return;
    ++outcome_.corruptions_found;
    record("corruption_found", index, run_.causes[cause].name, node, j.steps_left);
    if (!running) return;
    j.status.phase = WorldPhase::gathering;
    scheduler_->failed(index, j.status.held.has(node) ? node : no_node);
}

// True if there was any.
bool WorldSimulation::lose_suspect(JobIndex index) {
    const auto found = suspects_.extract(index);
    if (found.empty()) return false;
    const std::int64_t before = done_steps(index);
    for (const Done& done : found.mapped().kept) {
        book(index, done.by, Category::lost_work, done.time());
        jobs_[index].steps_left += done.steps;
        outcome_.runs[index].kept -= done.time();
        outcome_.runs[index].kept_steps -= done.steps;
    }
    if (WorldParts::Parts* parts = parts_of(index)) {
        parts->checkpointer.give_up_after(found.mapped().clean);
        lose_after(index, parts->checkpointer.newest().steps);
    }
    return done_steps(index) < before;
}

// Nobody has found out. True if any of the job's work is wrong.
bool WorldSimulation::accept_suspect(JobIndex index) {
    const auto found = suspects_.extract(index);
    if (found.empty()) return false;
    for (const Done& done : found.mapped().kept) book_steps(index, done);
    return !found.mapped().kept.empty();
}

}  // namespace railyard
