#include "models/facility/node_power.h"

#include <algorithm>

#include "sim/check.h"
#include "sim/rng.h"

namespace railyard {

namespace {

// Fans of one node keep the air's rise the same: flow goes with the heat, their power with its cube.
double fan_share(double heat, double heat_at_full) {
    const double flow = heat / heat_at_full;
    return flow * flow * flow;
}

// The rest of an idle node, once GPUs, NICs, fans and conversion are taken off what it draws.
double host_power(double idle, double gpus_idle, double gpus_full, double nics, double fan_fraction,
                  double efficiency) {
    double host = 0;
    constexpr int rounds = 20;  // fans are a percent of an idle node: each round gains two digits
    for (int i = 0; i < rounds; ++i) {
        const double full = gpus_full + nics + host;
        const double fans =
            fan_fraction / (1 - fan_fraction) * full * fan_share(gpus_idle + nics + host, full);
        host = std::max(0.0, idle * efficiency - gpus_idle - nics - fans);
    }
    return host;
}

}  // namespace

Watts GpuPower::at(Activity activity) const {
    switch (activity) {
        case Activity::idle:
            return idle;
        case Activity::communication:
            return {std::min(cap.value, std::max(idle.value, communication_fraction * max.value))};
        case Activity::memory_bound:
            return {std::min(cap.value, memory_bound_fraction * max.value)};
        case Activity::compute:
            return {std::min(cap.value, compute_fraction * max.value)};
    }
    RY_UNREACHABLE("an activity");
}

double GpuPower::speed_at(Watts power) const {
    return power >= max ? 1 : portable_power(power.value / max.value, cap_exponent);
}

Watts GpuPower::compute_power_at(double speed) const {
    const double full = at(Activity::compute).value;
    return {std::max(std::min(idle.value, full), full * portable_power(speed, 1 / cap_exponent))};
}

NodePower::Parts NodePower::parts(double gpu_watts) const {
    Parts out;
    const double n = real(gpus);
    out.gpus = n * gpu_watts;
    out.nics = nics;
    out.host = host;
    const double heat = out.gpus + nics + host;
    out.fans = fans_at_full * fan_share(heat, n * gpu.max.value + nics + host);
    out.conversion = (heat + out.fans) * (1 / supply_efficiency - 1);
    return out;
}

Watts NodePower::design() const {
    const double held_back = real(gpus) * (gpu.max.value - gpu.cap.value);
    return {std::max(rated.value, full().value) - held_back / supply_efficiency};
}

NodePower read_node_power(Catalogue& c, const NodePowerSpec& spec, double liquid_fraction) {
    NodePower out;
    out.gpus = spec.gpus;
    GpuPower& g = out.gpu;
    g.max = g.cap = c.power("gpu", spec.gpu, "max_power");
    g.idle = c.power("gpu", spec.gpu, "idle_power");
    g.compute_fraction = c.number("power_constants", "", "gpu_power_gemm_fraction");
    g.memory_bound_fraction = c.number("power_constants", "", "gpu_power_memory_bound_fraction");
    g.communication_fraction =
        c.number("power_constants", "", "gpu_power_floor_fraction_communication");
    g.cap_exponent = c.number("power_constants", "", "gpu_power_cap_exponent");
    out.supply_efficiency = c.number("power_constants", "", "psu_efficiency");
    const double fan_fraction = c.number("power_constants", "", "fan_fraction_air");

    const auto nic_power = [&](const std::string& nic) {
        const std::string known = c.has("nic", nic, "max_power") ? nic : "cx7_ndr400";
        return c.power("nic", known, "max_power").value;
    };
    // What the entry's own hardware is, whatever of it the scenario has: that leaves the host.
    const std::string entry = c.has("node", spec.node, "idle_power") ? spec.node : "dgx_h100";
    const std::string entry_gpu = c.text("node", entry, "gpu");
    const double entry_gpus = real(c.integer("node", entry, "gpus"));
    const double entry_nics = real(c.integer("node", entry, "compute_nics") +
                                   c.integer("node", entry, "storage_nics", 0)) *
                              nic_power(c.text("node", entry, "compute_nic"));
    const bool liquid = c.has("node", entry, "cooling");  // that is what the word says where it is
    const double entry_fans =
        fan_fraction * (liquid ? 1 - c.number("cooling", "direct_liquid", "liquid_fraction") : 1.0);
    out.host = host_power(c.power("node", entry, "idle_power").value,
                          entry_gpus * c.power("gpu", entry_gpu, "idle_power").value,
                          entry_gpus * c.power("gpu", entry_gpu, "max_power").value, entry_nics,
                          entry_fans, out.supply_efficiency);
    // Another number of GPUs in the box leaves its host; another node's host is taken by the GPU.
    if (entry != spec.node) out.host *= real(spec.gpus) / entry_gpus;
    out.nics = real(spec.nics + spec.storage_nics) * nic_power(spec.nic);
    const double fans = fan_fraction * (1 - liquid_fraction);
    out.fans_at_full = fans / (1 - fans) * (real(spec.gpus) * g.max.value + out.nics + out.host);

    // The entry's rating and its supplies are those of the box as it is sold.
    const std::int64_t sold = c.integer("node", spec.node, "gpus");
    out.rated = {c.power("node", spec.node, "max_power").value +
                 real(spec.gpus - sold) * g.max.value / out.supply_efficiency};
    if (spec.gpus == sold && c.has("node", spec.node, "power_supplies")) {
        out.supplies = c.integer("node", spec.node, "power_supplies");
        out.supply_rating = c.power("node", spec.node, "power_supply_rating");
        // An entry that doesn't say how many it needs has one to lose.
        out.supplies_needed =
            c.integer("node", spec.node, "power_supplies_for_full_load", out.supplies - 1);
    }
    return out;
}

}  // namespace railyard
