#include "models/campaign/power.h"

#include <algorithm>
#include <numeric>

namespace railyard {

void NodeDraw::run(const GpuStep& jobs_step) {
    step = jobs_step;
    const PowerProfile gpu = step.profile(node.gpu, heat.speed);
    std::vector<PowerLevel> levels;
    for (const PowerLevel& level : gpu.levels()) {
        levels.push_back({level.lasts, node.at(level.power.value)});
    }
    node_step = PowerProfile(levels);
    gpu_mean = gpu.mean();
}

Watts NodeDraw::of(Category category) const {
    const auto mean = [](const PowerLevel& a, const PowerLevel& b) {
        return PowerProfile({a, b}).mean();
    };
    const double slowed = heat.speed < 1 ? node.gpu.compute_power_at(heat.speed).value
                                         : node.gpu.at(Activity::compute).value;
    switch (category) {
        case Category::productive:
            return mean({step.compute, node.at(slowed)},
                        {step.memory_bound, node.at(Activity::memory_bound)});
        case Category::throttled:
            return node.at(slowed);
        // GPUs that wait for each other do it in kernels, also for one that will never come.
        case Category::exposed_communication:
        case Category::pipeline_bubble:
        case Category::straggler_wait:
        case Category::degraded:
        case Category::contention:
        case Category::storm_stall:
        case Category::detection:
            return node.at(Activity::communication);
        case Category::lost_work:
            return node_step.mean();
        case Category::repair:
            return repairing;
        default:
            return node.at(Activity::idle);
    }
}

Watts NodeDraw::without_job(Category category) const {
    return category == Category::repair ? repairing : node.at(Activity::idle);
}

Picojoules CampaignEnergy::total() const {
    return std::accumulate(nodes.begin(), nodes.end(), network + storage);
}

NodeEnergy node_energy(const std::function<Watts(Category)>& draw, const Ledger& ledger,
                       std::int64_t parts_per_node) {
    NodeEnergy out{};
    for (std::size_t i = 0; i < category_count; ++i) {
        const auto category = static_cast<Category>(i);
        out[i] = ledger.booked(category) * milliwatts(draw(category)) / parts_per_node;
    }
    return out;
}

CampaignEnergy energy_of(const PowerSpec& power, const NodeEnergy& nodes, Duration simulated) {
    return {nodes, energy_of(power.network, simulated), energy_of(power.storage, simulated)};
}

NodesDraw nodes_draw(const PowerSpec& power, std::int64_t nodes, std::int64_t job_nodes) {
    const auto in_job = real(job_nodes);
    const auto spares = real(nodes - job_nodes);
    return {in_job * power.node_step.peak().value + spares * power.node.at(Activity::idle).value,
            in_job * (power.node_step.peak().value - power.node_step.low().value),
            real(nodes) * power.node.design().value};
}

EnergyUse energy_use(const PowerSpec& power, const CampaignEnergy& energy, Duration simulated,
                     const NodesDraw& nodes) {
    const double pue = power.cooling.pue;
    EnergyUse out;
    out.time = simulated;
    out.it_joules = joules(energy.total());
    out.meter_joules = out.it_joules * pue;
    if (simulated > Duration{}) out.mean = {out.meter_joules / seconds(simulated)};
    out.peak = {pue * (nodes.peak + power.network.value + power.storage.value)};
    out.design = {pue * (nodes.design + power.network_design.value + power.storage.value)};
    return out;
}

void add_power_metrics(const PowerSpec& p, const EnergyUse& use, double swing,
                       std::optional<double> tokens, MetricList& out) {
    out.add("power_mean", use.mean.value);
    out.add("power_peak", use.peak.value);
    out.add("power_design", use.design.value);
    out.add("power_swing", swing);
    out.add("power_swing_rate", p.edge > Duration{} ? swing / seconds(p.edge) : 0);
    out.add("energy", use.meter_joules);
    out.add("energy_it", use.it_joules);
    if (tokens) out.mean("energy_per_token", use.meter_joules, *tokens);
    if (p.carbon) out.add("carbon", use.kilowatt_hours() * p.carbon->value);
    if (p.budget) out.add("power_budget_load", use.peak.value / p.budget->value);
    if (p.budget && p.over_budget == OverBudget::throttle) {
        out.add("power_budget_clock", p.budget_speed);
    }
    if (p.supplies_load > 0) out.add("power_supplies_load", p.supplies_load);
}

void add_facility_metrics(const PowerSpec& p, std::int64_t job_nodes, const FeedCounts& feeds,
                          MetricList& out) {
    if (!p.facility_given) return;
    const double rack = real(std::min(p.nodes_per_rack, job_nodes));
    out.add("rack_power_peak", rack * p.node_step.peak().value);
    out.add("gpu_temperature", p.heat.gpu.value);
    out.add("hbm_temperature", p.heat.hbm.value);
    out.add("gpu_clock", p.heat.speed);
    if (p.pump) {
        out.count("pump_losses", feeds.pump_losses);
        out.count("pump_losses_ridden_through", feeds.pump_losses_ridden_through);
    }
    if (!p.breaker) return;
    out.count("breaker_trips", feeds.breaker_trips);
    const double behind = real(std::min(p.breaker->nodes, job_nodes));
    out.add("breaker_load_peak", behind * p.node_step.peak().value / p.breaker->rating.value);
}

SwitchPower switch_power(const std::string& model, Catalogue& c) {
    const bool typical = c.has("switch", model, "typical_power");
    const bool most = c.has("switch", model, "max_power");
    if (!typical && !most) return switch_power("qm9700_ndr", c);  // a common one of 64 ports
    const auto watts = [&](bool given, const char* key, const char* other) {
        return c.power("switch", model, given ? key : other);
    };
    return {watts(typical, "typical_power", "max_power"),
            watts(most, "max_power", "typical_power")};
}

NetworkPower network_power(const Topology& topology, Catalogue& c) {
    const Materials materials = materials_of(topology, c);
    NetworkPower out;
    const auto add = [&](double typical, double most) {
        out.typical.value += typical;
        out.design.value += most;
    };
    for (const SwitchOrder& order : materials.switches) {
        const SwitchPower each = switch_power(order.model, c);
        const auto count = real(order.count);
        add(count * each.typical.value, count * each.most.value);
    }
    const Bandwidth fast = c.bandwidth("nic", "cx7_ndr400", "bandwidth");
    for (const CableOrder& order : materials.cables) {
        const bool faster = order.kind == "optic_400g" && order.bandwidth > fast;
        const std::string kind = faster ? "optic_800g" : order.kind;
        const double each = order.optics.empty()
                                ? c.power("cable", kind, "max_power").value
                                : c.power("optics", order.optics, "power_at_400_gbit").value *
                                      order.bandwidth.bytes_per_second() / fast.bytes_per_second();
        const double ends = real(2 * order.count);
        add(ends * each, 0);  // what a switch draws at most has its transceivers in it
    }
    out.design = std::max(out.design, out.typical);
    return out;
}

}  // namespace railyard
