#include "models/scheduler/world_holdings.h"

#include <utility>

namespace railyard {

void WorldHoldings::take(JobIndex index, const Allocation& gpus) {
    WorldJobStatus& status = jobs_[index].status;
    cluster_.each_run(gpus, [&](const NodeRun& run, bool whole) {
        status.gpus += run.gpus * run.count;
        if (whole) {
            cluster_.take_whole(run, index);
            books_.moved_whole(run, -1);
            return;
        }
        for (NodeIndex node = run.first; node < run.end(); ++node) {
            books_.before_change(node);
            cluster_.take(node, index, run.gpus, world_.spec().pool(world_.job(index)));
            books_.after_change(node);
        }
    });
    status.held.insert(gpus);
    RY_CHECK(status.gpus <= world_.job(index).gpus);
}

void WorldHoldings::give_back(JobIndex index, NodeIndex node) {
    give_back(index, jobs_[index].status.held.erase(node));
}

Allocation WorldHoldings::give_back_all(JobIndex index) {
    Allocation held = std::exchange(jobs_[index].status.held, {});
    give_back(index, held);
    return held;
}

void WorldHoldings::give_back(JobIndex index, const Allocation& gpus) {
    cluster_.each_run(gpus, [&](const NodeRun& run, bool whole) {
        jobs_[index].status.gpus -= run.gpus * run.count;
        if (whole) {
            cluster_.give_back_whole(run, index);
            books_.moved_whole(run, 1);
            return;
        }
        for (NodeIndex node = run.first; node < run.end(); ++node) {
            books_.before_change(node);
            cluster_.give_back(node, index, run.gpus);
            books_.after_change(node);
        }
    });
}

void WorldHoldings::book_phase(JobIndex index) {
    LiveJob& j = jobs_[index];
    const Duration span = world_.now() - std::exchange(j.phase_since, world_.now());
    Category category = Category::partial_hold;
    switch (j.status.phase) {
        case WorldPhase::gathering:
            break;
        case WorldPhase::stalled:
            category = Category::detection;
            break;
        case WorldPhase::completing:
            category = Category::health_check;
            break;
        default:
            return;
    }
    j.work.book(cluster_.parts_by_group(j.status.held, world_.spec().parts_of(j.job)), category,
                span);
    if (j.status.gpus == j.job.gpus) outcome_.runs[index].held += span;
}

}  // namespace railyard
