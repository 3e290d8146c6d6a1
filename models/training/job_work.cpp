#include "models/training/job_work.h"

#include <algorithm>

#include "sim/check.h"
#include "sim/integers.h"

namespace railyard {

JobWork::JobWork(const JobSpec& spec, JobStages& stages, const JobNodes& nodes, Saver& saver,
                 const std::optional<DataFeed>& feed, Ledger& ledger)
    : spec_(spec),
      stages_(stages),
      nodes_(nodes),
      saver_(saver),
      feed_(feed),
      ledger_(ledger),
      book_(ledger) {}

// ---- what a step takes ----

Duration JobWork::slowed_by_parts() const {
    const Duration over_network = slowed_by_network().value_or(Duration{});
    if (nodes_.conditions() == 0) return over_network;
    const SmallerJob* const smaller = nodes_.smaller();
    const std::vector<Duration>& slowed =
        smaller == nullptr ? stages_.level_at(done()).slowed : smaller->slowed;
    return over_network + slowed[nodes_.conditions()];
}

double JobWork::slowdown(std::uint32_t condition) const {
    const StageLevel& level = stages_.level_at(done());
    return seconds(level.slowed[1U << condition]) / seconds(level.step.beside_data());
}

// ---- steps to come ----

// Batches of all replicas count, whoever computes them.
std::int64_t JobWork::steps_to_target() const {
    const std::int64_t left =
        (spec_.target_steps - done()) * spec_.replicas + book_.replica_steps_missing();
    return ceil_div(std::max<std::int64_t>(0, left), nodes_.replicas());
}

bool JobWork::all_done() const {
    return stages_.finished(done()) || (spec_.target_steps > 0 && steps_to_target() == 0);
}

void JobWork::plan() {
    StepTime next = step();
    const Duration slow = slowed_by_parts();
    const bool uploads = saver_.uploading();
    if (uploads) next.upload = spec_.checkpoint.upload_step_penalty;
    next.degraded += slow;
    running_.plan(next, uploads, slow);
    running_.wait(wait_alone() + extra_wait());
}

std::int64_t JobWork::steps_ahead(Instant now) const {
    // Far enough for any campaign, near enough for the clock.
    std::int64_t steps = (Instant::max() - now) / each() / 2;
    RY_CHECK(steps > 0);
    steps = std::min(steps, stages_.steps_ahead(done()));
    if (saver_.saves()) {
        steps = std::min(
            steps, saver_.steps_until_due(done(), stages_.checkpoint_steps(), each(), carried()));
    }
    if (feed_) steps = std::min(steps, feed_->steps_ahead(done()));
    if (spec_.target_steps > 0) steps = std::min(steps, steps_to_target());
    return steps;
}

// ---- steps under way ----

Instant JobWork::run(Instant now) {
    plan();
    std::int64_t steps = steps_ahead(now);
    if (carried() > each()) steps = 1;  // one that has waited long for data is over
    return begin(now, steps, take_carried());
}

// What is left of the step under way takes as long as things are now.
Instant JobWork::run_rest(Instant now, Duration partial) {
    running_.look_at_upload(saver_.uploading(), partial, spec_.checkpoint.upload_step_penalty,
                            wait_alone());
    return begin(now, 1, partial);
}

void JobWork::complete(std::int64_t steps) {
    book_.add(steps, {gpus(), spec_.replicas - nodes_.replicas(), running_.slow()},
              running_.each());
}

std::int64_t JobWork::done_by(Instant now) const {
    return done() + std::min(running_.steps(), running_.whole(now));
}

Duration JobWork::stop(Instant now) {
    complete(running_.whole(now));
    return running_.into_next(now);
}

// ---- what becomes of them ----

void JobWork::fail_copies(const StateLoss& loss) {
    if (saver_.saves()) saver_.fail(loss);
}

// Nodes that work leave, and what only they had goes with them.
void JobWork::states_leave(const JobNodes::Slots& slots) {
    for (const std::int64_t slot : slots) {
        fail_copies({StateLoss::Scope::node, slot});
        const std::int64_t kept = saver_.saves() ? saver_.newest().steps : 0;
        if (kept < done()) fall_back({});
    }
}

Duration JobWork::lose_unsaved() {
    if (saver_.saves()) saver_.give_up_newer();
    const Duration lost = book_.back_to(saver_.saves() ? saver_.newest().steps : 0);
    stages_.back_to(done());
    return lost;
}

void JobWork::go_back() {
    if (spec_.recovery.recompute) lose_unsaved();
}

void JobWork::fall_back(Duration partial) {
    if (!spec_.recovery.recompute) return carry(partial);
    partial += take_carried();
    lost_ += lose_unsaved() + partial;
    ledger_.book(Category::lost_work, nodes_.gpus(), partial);
}

StepsAtRisk JobWork::at_risk() const {
    if (!spec_.recovery.recompute) return {};
    if (!saver_.saves()) return {book_.after(0)};
    return {book_.after(saver_.lasting_steps()), saver_.due_in()};
}

void JobWork::begin_with(const StepsAtRisk& steps) {
    for (OpenSteps<Workers>::Done done : steps.done) {
        done.by.earlier = true;
        book_.add(done.steps, done.by, done.each);
    }
    if (steps.stood_still) fall_back({});
}

// It loses nothing: what is done counts, saved or not.
void JobWork::end(Duration partial) {
    book_.keep(done());
    book_.cut_off(running_.each(), gpus(), partial);
}

}  // namespace railyard
