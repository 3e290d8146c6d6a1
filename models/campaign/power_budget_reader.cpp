// A site's power budget: the clocks that keep to it, or the power that jobs wait for.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/campaign/power_reader.h"
#include "models/campaign/world.h"

namespace railyard {

Watts PowerReader::at_meter(Watts nodes) const {
    return {p_.cooling.pue * (nodes.value + p_.network.value + p_.storage.value)};
}

// When each GPU that may compute draws so much: those of all nodes, or of the one job's.
Watts PowerReader::draw_at(Watts gpu) const {
    const auto nodes = real(s_.nodes.nodes);
    const auto computing = s_.world ? nodes : real(s_.job.nodes);
    return at_meter({computing * p_.node.at(gpu.value).value +
                     (nodes - computing) * p_.node.at(Activity::idle).value});
}

// Kernels that wait for HBM draw what they draw, so clocks below that gain nothing.
Watts PowerReader::least_cap() const {
    const GpuPower& gpu = p_.node.gpu;
    return std::min(gpu.at(Activity::compute), std::max(Watts{cap_fraction_min * gpu.max.value},
                                                        gpu.at(Activity::memory_bound)));
}

Watts PowerReader::cap_for_budget() const {
    const GpuPower& gpu = p_.node.gpu;
    const Watts high = gpu.at(Activity::compute);
    if (!throttles() || draw_at(high) <= *p_.budget) return gpu.cap;
    return within_budget(least_cap(), high);
}

// The most that each GPU may draw; `low` is within the budget, or what there is at the least.
Watts PowerReader::within_budget(Watts low, Watts high) const {
    constexpr int halvings = 60;
    for (int i = 0; i < halvings; ++i) {
        const Watts middle{0.5 * (low.value + high.value)};
        (draw_at(middle) <= *p_.budget ? low : high) = middle;
    }
    return low;
}

// What heat takes on top, at the clocks that the budget leaves.
HeatState PowerReader::settled(const GpuPower& gpu, const GpuStep& step) {
    GpuPower held = gpu;
    if (throttles()) {
        const Watts most = gpu.at(Activity::compute);
        held.cap = cap_for_budget();
        p_.budget_speed = held.cap < most ? gpu.speed_at(held.cap) / gpu.speed_at(most) : 1;
    }
    HeatState heat;
    if (p_.facility_given) heat = settle(held, p_.cooling.gpu, p_.throttle, step);
    heat.speed *= p_.budget_speed;
    return heat;
}

PowerBudget PowerReader::jobs_budget(const WorldPower& power, const WorldSpec& spec) const {
    PowerBudget out;
    const double nodes = p_.budget->value / p_.cooling.pue - p_.network.value - p_.storage.value;
    const double room = nodes - idle_nodes(power, spec).value;
    out.room = static_cast<std::int64_t>(std::floor(std::max(0.0, room) * 1e3));
    for (std::size_t k = 0; k < spec.kinds.size(); ++k) {
        double most = 0;  // of the nodes that a job may get
        for (std::size_t g = 0; g < spec.groups.size(); ++g) {
            most = std::max(most, part_over_idle(power, spec, g, k).value);
        }
        out.per_part.push_back(static_cast<std::int64_t>(std::ceil(most * 1e3)));
    }
    return out;
}

void PowerReader::check_budget(Watts idle_nodes) {
    if (!p_.budget || !sections_.power.ok()) return;
    const Watts idle = at_meter(idle_nodes);
    if (idle > *p_.budget) {
        sections_.power.error(
            "budget", fmt::format("below the idle power of the cluster: {} at the meter (nodes {}, "
                                  "network {}, storage {}, PUE {:g}), found {}",
                                  to_text(idle), to_text(idle_nodes), to_text(p_.network),
                                  to_text(p_.storage), p_.cooling.pue, to_text(*p_.budget)));
        return;
    }
    const Watts least = draw_at(least_cap());
    if (!throttles() || least <= *p_.budget) return;
    // A driver's cap holds kernels that wait for HBM, too.
    std::string help = "over_budget = \"hold\" under a [scheduler], or fewer nodes";
    const Watts capped{cap_fraction_min * p_.node.gpu.max.value};
    if (draw_at(capped) <= *p_.budget) {
        help = fmt::format("power.gpu_cap = \"{:.0f} W\", {}",
                           std::floor(within_budget(capped, least_cap()).value), help);
    }
    sections_.power.error(
        "budget",
        fmt::format(
            "GPUs are throttled to {} at the least, and the cluster then draws {}; found {}",
            to_text(least_cap()), to_text(least), to_text(*p_.budget)),
        help);
}

}  // namespace railyard
