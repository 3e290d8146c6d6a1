// Jobs whose routes meet what is broken of the network: they go round it, slower, or stand still.

#include <fmt/format.h>

#include <utility>

#include "models/scheduler/world_simulation.h"

namespace railyard {

NetworkState WorldSimulation::broken_on_routes(JobIndex index) const {
    const WorldJobKind& kind = spec().kinds[job(index).kind];
    if (!network_ || !kind.routes || network_->broken().empty()) return {};
    return kind.routes(nodes_of(index), {run_.hashes, network_->broken()});
}

// The step by the kind's model; nothing when no way is left between nodes that have to talk. Where a sound
// network has no way either, no job waits for one.
std::optional<StepTime> WorldSimulation::step_over_network(JobIndex index,
                                                           std::uint32_t conditions) const {
    const WorldJobKind& kind = spec().kinds[job(index).kind];
    const NetworkState& broken = jobs_[index].broken;
    try {
        return kind.step(nodes_of(index), conditions, {run_.hashes, broken});
    } catch (const NoPath&) {
        if (broken.empty()) throw;
        return std::nullopt;
    }
}

// Only whose routes meet what has changed are routed again.
void WorldSimulation::network_changed() {
    book_free();
    for (JobIndex index = 0; index < submitted_; ++index) {
        if (status(index).phase != WorldPhase::running) continue;
        Job& j = jobs_[index];
        if (broken_on_routes(index) == j.broken) continue;
        if (moves_bytes(index)) continue;  // the way that it began with; its next step goes another
        leave_links(index);
        j.rerouted = true;
        change_pace_soon(index);
    }
}

// Until its pace changes.
void WorldSimulation::stand_still(JobIndex index, RunPlan& plan) {
    const Job& j = jobs_[index];
    plan.steps = 0;
    plan.stands_still = true;
    ++outcome_.network_stalls;
    record("no_path", index, network_->names(j.broken), j.status.held.front().node, j.work.left());
}

// For people: who stands still at the end, and what would have to be mended.
std::string WorldSimulation::waits_for_network() const {
    std::string out;
    for (JobIndex index = 0; index < submitted_; ++index) {
        if (status(index).phase != WorldPhase::running) continue;
        const Job& j = jobs_[index];
        if (!j.cut_off) continue;
        if (!out.empty()) out += "\n";
        out += fmt::format("job {} has no way left over the compute network: {} is out",
                           spec().name_of(job(index)), network_->names(j.broken));
    }
    return out;
}

}  // namespace railyard
