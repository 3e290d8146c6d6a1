#include "models/scheduler/world_border.h"

#include <algorithm>
#include <utility>

namespace railyard {

// Its GPUs are there, and there is power for it.
bool WorldBorder::can_go_on(JobIndex index) const {
    const WorldJob& it = jobs_[index].job;
    if (!it.carried || it.carried->held.empty() || !power_.fits(index)) return false;
    return std::ranges::all_of(it.carried->held, [&](const NodeShare& share) {
        return share.node < cluster_.nodes().size() &&
               cluster_.free(share.node, world_.device_of(index)) >= share.gpus;
    });
}

void WorldBorder::submitted(JobIndex index) {
    LiveJob& j = jobs_[index];
    if (!can_go_on(index)) {
        lose_run(index);
        if (!j.kind.requeue) return owner_.close(index, JobEnd::cancelled);
        run_.record(world_.now(), "requeued", index, job_end_name(JobEnd::node_fail), no_node,
                    j.work.left());
        stopped_[j.job.id] = index;
        return;
    }
    const CarriedJob& from = *j.job.carried;
    if (from.slice) cluster_.keep_place(index, *from.slice);
    const auto size = std::ranges::find(j.kind.smaller, from.fewer_nodes, &SmallerWorldJob::nodes);
    if (size != j.kind.smaller.end()) {
        j.elastic = std::make_unique<LiveJob::Elastic>();
        j.elastic->smaller = &*size;
    }
    j.status.phase = WorldPhase::waiting;
    j.status.eligible = std::min(j.job.submit, world_.now());
    scheduler_.goes_on(index, from.held);
    if (!j.runs()) lacking_.push_back(index);
}

void WorldBorder::lose_run(JobIndex index) {
    LiveJob& j = jobs_[index];
    j.goes_on = false;
    j.came_with = nullptr;
    j.status.submitted = j.job.submit;
    j.lose_unsaved({});
}

void WorldBorder::settle() {
    for (const JobIndex index : std::exchange(lacking_, {})) {
        if (!jobs_.live(index) || jobs_[index].status.phase != WorldPhase::gathering) continue;
        if (sizes_.enough(index)) {
            holdings_.book_phase(index);
            runs_.start(index);
        } else {
            lose_run(index);
            world_.requeue(index, world_.now(), JobEnd::cancelled);
        }
    }
}

void WorldBorder::submit_stopped(std::int64_t before) {
    while (!stopped_.empty() && stopped_.begin()->first < before) {
        const JobIndex index = stopped_.extract(stopped_.begin()).mapped();
        owner_.wait(index, std::min(jobs_[index].job.submit, world_.now()));
    }
}

}  // namespace railyard
