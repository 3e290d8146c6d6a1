#include "models/scheduler/run_books.h"

#include <algorithm>
#include <utility>

namespace railyard {

RunBooks::RunBooks(const WorldClock& clock, const WorldRun& run, const WorldCluster& cluster,
                   LiveJobs& jobs, WorldOutcome& outcome)
    : clock_(clock),
      run_(run),
      cluster_(cluster),
      jobs_(jobs),
      outcome_(outcome),
      goes_back_far_(run.store || std::ranges::any_of(run.causes, &FailureCause::silent)) {}

void RunBooks::book_until(JobIndex index, Instant end, Unsaved unsaved, const StateLoss& loss) {
    LiveJob& j = jobs_[index];
    const Duration elapsed = end - j.run_since;
    RunProgress p = j.run.after(elapsed);
    const Duration carried = std::exchange(j.carried, {});
    p.partial += carried;
    const WorldWork::Parts gpus = cluster_.parts_by_group(j.working(), run_.spec.parts_of(j.job));
    j.work.book(gpus, Category::health_check, p.prolog);
    j.work.book(gpus, Category::restart, p.restart);
    j.work.book(gpus, Category::restore, p.restore);
    j.work.book(gpus, Category::data_wait, p.first_batch);
    j.work.book(gpus, j.run.stands_still ? Category::storm_stall : Category::checkpoint_stall,
                p.stall);
    const bool waits = unsaved == Unsaved::held_in_memory;  // and is booked when it goes on
    outcome_.runs[index].held += elapsed + carried - (waits ? p.partial : Duration{});
    outcome_.runs[index].contention += j.step.contention * p.steps;
    for (const SharedLinks::Share& share : j.waits_for) {
        const auto by =
            share.job % static_cast<JobIndex>(jobs_.size());  // its steps, or its uploads
        outcome_.contention_by.at(j.job.kind, run_.jobs.jobs[by].kind) +=
            seconds(j.step.contention) * share.share * real(p.steps * j.gpus());
    }
    j.work.add(p.steps, gpus, j.step);
    if (p.any_saved) j.work.keep_until(j.work.done() - p.steps + p.saved);
    if (unsaved == Unsaved::kept) {
        j.work.keep_until(j.work.done());
        return j.work.book_partial(gpus, j.step, p.partial);
    }
    if (waits) return j.work.hold(gpus, j.step, p.partial);
    j.work.lose_partial(gpus, p.partial);
    j.lose_unsaved(loss);
}

void RunBooks::keep_what_lasts(JobIndex index) {
    LiveJob& j = jobs_[index];
    if (!goes_back_far_) j.work.keep_until(j.parts->checkpointer.stored_steps());
}

void RunBooks::record(const char* kind, JobIndex job, std::string cause, NodeIndex node) const {
    run_.record(clock_.now(), kind, job, std::move(cause), node, jobs_[job].work.left());
}

}  // namespace railyard
