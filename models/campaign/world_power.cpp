#include "models/campaign/world_power.h"

#include <algorithm>
#include <utility>

namespace railyard {

NodeEnergy node_energy(const WorldPower& power, const WorldSpec& spec, const WorldLedger& ledgers) {
    NodeEnergy out{};
    const auto add = [&out](const NodeEnergy& more) {
        for (std::size_t i = 0; i < out.size(); ++i) out[i] += more[i];
    };
    for (std::size_t g = 0; g < spec.groups.size(); ++g) {
        const std::int64_t parts = spec.groups[g].gpus_per_node * spec.parts_per_gpu();
        const std::vector<NodeDraw>& draws = power.draws[g];
        for (std::size_t k = 0; k < draws.size(); ++k) {
            add(node_energy([&](Category c) { return draws[k].of(c); }, ledgers.of(g, k), parts));
        }
        add(node_energy([&](Category c) { return draws[0].without_job(c); },
                        ledgers.of(g, ledgers.no_kind()), parts));
    }
    return out;
}

Watts idle_nodes(const WorldPower& power, const WorldSpec& spec) {
    double sum = 0;
    for (std::size_t g = 0; g < spec.groups.size(); ++g) {
        sum += real(spec.groups[g].nodes) * power.draws[g][0].node.at(Activity::idle).value;
    }
    return {sum};
}

Watts part_over_idle(const WorldPower& power, const WorldSpec& spec, std::size_t group,
                     std::size_t kind) {
    const NodeDraw& draw = power.draws[group][kind];
    const auto parts = real(spec.groups[group].gpus_per_node * spec.parts_per_gpu());
    return {(draw.node_step.peak().value - power.draws[group][0].node.at(Activity::idle).value) /
            parts};
}

WorldPeak::WorldPeak(const WorldPower& power, const WorldSpec& spec, const WorldJobs& jobs)
    : spec_(spec), jobs_(jobs), shares_(spec.groups.size()), running_(jobs.jobs.size()) {
    for (std::size_t g = 0; g < spec.groups.size(); ++g) {
        const NodeGroup& group = spec.groups[g];
        const auto nodes = real(group.nodes);
        const auto parts = real(group.gpus_per_node * spec.parts_per_gpu());
        for (std::size_t k = 0; k < spec.kinds.size(); ++k) {
            const PowerProfile& step = power.draws[g][k].node_step;
            shares_[g].push_back({part_over_idle(power, spec, g, k).value,
                                  (step.peak().value - step.low().value) / parts});
        }
        design_ += nodes * power.draws[g][0].node.design().value;
        group_of_node_.insert(group_of_node_.end(), static_cast<std::size_t>(group.nodes), g);
    }
    idle_ = idle_nodes(power, spec).value;
}

void WorldPeak::started(JobIndex index, Instant, const Allocation& gpus) {
    const WorldJob& job = jobs_.jobs[index];
    const auto parts = real(spec_.parts_of(job));
    double over_idle = 0;
    double swing = 0;
    for (const NodeShare& share : gpus) {
        const Share& each = shares_[group_of_node_[share.node]][job.kind];
        over_idle += real(share.gpus) * parts * each.over_idle;
        swing += real(share.gpus) * parts * each.swing;
    }
    running_[index] = milliwatts({over_idle});
    now_ += running_[index];
    highest_ = std::max(highest_, now_);
    swing_ = std::max(swing_, swing);
}

void WorldPeak::stopped(JobIndex index, Instant) {
    now_ -= std::exchange(running_[index], 0);
}

NodesDraw WorldPeak::draw() const {
    return {idle_ + real(highest_) * 1e-3, swing_, design_};
}

}  // namespace railyard
