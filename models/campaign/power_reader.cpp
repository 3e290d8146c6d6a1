#include "models/campaign/power_reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace railyard {

NodePowerSpec node_power_spec(const Node& node) {
    return {node.name, node.gpu.id, node.nic, node.gpus, node.nics, node.storage_nics};
}

PowerReader::PowerReader(Section& top, Catalogue& catalogue, const std::string& node_name,
                         Scenario& scenario)
    : top_(top),
      catalogue_(catalogue),
      aside_(scenario.open_catalogue()),
      s_(scenario),
      p_(scenario.power),
      sections_(top) {
    const std::optional<std::int64_t> per_rack =
        s_.layout.nodes_per_rack_given ? std::optional(s_.layout.nodes_per_rack) : std::nullopt;
    const PowerKeys keys =
        read_power_keys(top, sections_, catalogue_, aside_.catalogue,
                        {node_name, node_power_spec(s_.node), s_.nodes.nodes, per_rack});
    static_cast<PoweredNode&>(p_) = keys;
    static_cast<FacilitySpec&>(p_) = keys;
    s_.node.gpu.sustained_fraction *= p_.node.gpu.speed_at(p_.node.gpu.cap);
    if (p_.facility_given) s_.layout.nodes_per_rack = p_.nodes_per_rack;
}

GpuStep gpu_step(const Scenario& s, const StepTime& step) {
    GpuStep out;
    out.compute = step.compute;
    if (step_is_modelled(s) && s.optimizer_traffic > 0) {
        Communicators groups = communicators(s, Fidelity::analytic);
        double all = 0;
        double memory = 0;
        for (const PathPart& part :
             critical_path(s.model, s.plan, groups, s.parameter_bytes, s.optimizer_traffic)) {
            if (part.kind != StepKind::compute) continue;
            all += part.seconds;
            if (part.memory_bound) memory += part.seconds;
        }
        if (all > 0) out.memory_bound = from_seconds(seconds(step.compute) * memory / all);
        out.compute -= out.memory_bound;
    }
    out.communication =
        step.exposed_communication + step.bubble + step.straggler_wait + step.degraded;
    out.idle = step.data_wait;
    return out;
}

Duration PowerReader::slowed(Duration computing) const {
    const GpuPower& gpu = p_.node.gpu;
    return from_seconds(seconds(computing) / gpu.speed_at(gpu.cap));
}

Duration PowerReader::throttled_time(const StepTime& step) {
    throttled_parts(step);
    return from_seconds(seconds(step.compute) * (1 / p_.heat.speed - 1));
}

std::vector<PartFault> PowerReader::throttled_parts(const StepTime& step) {
    if ((!p_.facility_given && !throttles()) || !top_.ok()) return {};
    p_.step = gpu_step(s_, step);
    p_.heat = settled(p_.node.gpu, p_.step);
    return slowed_parts(p_.heat, "the job's GPUs");
}

// Says what it comes to.
std::vector<PartFault> PowerReader::slowed_parts(const HeatState& heat, const std::string& whose) {
    std::vector<PartFault> out;
    if (heat.shuts_down) {
        sections_.facility.error("inlet_temperature",
                                 fmt::format("{} reach {:.1f} degC: they switch off at {:g} degC",
                                             whose, heat.gpu.value, p_.throttle.shutdown.value));
        return out;
    }
    if (heat.speed < 1) out.push_back({Part::gpu, 0, 0, heat.speed});
    if (heat.speed < p_.budget_speed) {
        sections_.facility.warning(
            "inlet_temperature",
            fmt::format("{} reach {:.1f} degC and run at {:.1f} % of their clocks", whose,
                        heat.gpu.value, 100 * heat.speed),
            fmt::format("they throttle from {:.4g} degC on; the inlet is at {:g} degC",
                        p_.throttle.starts.value, p_.cooling.gpu.inlet.value));
    }
    if (heat.hbm_speed < 1) out.push_back({Part::hbm, 0, 0, heat.hbm_speed});
    return out;
}

void PowerReader::read_network_and_storage() {
    if (!top_.ok() || top_.describing()) return;
    Catalogue& c = p_.given ? catalogue_ : aside_.catalogue;
    bool built = false;
    for (const ClusterNetwork& network : s_.networks) {
        if (network.topology.vertex_count() == 0) continue;
        built |= &network == &s_.networks[0];
        const NetworkPower power = network_power(network.topology, c);
        p_.network.value += power.typical.value;
        p_.network_design.value += power.design.value;
    }
    if (!built) {
        const double watts =
            c.power("power_constants", "", "network_power_per_gpu_ndr").value * real(s_.gpus());
        p_.network.value += watts;
        p_.network_design.value += watts;
    }
    for (const StoreSetup& store : s_.stores) {
        if (store.servers == 0 || !store.system) continue;
        const double terabytes = real(store.system->capacity().raw.count()) * 1e-12;
        // A server whose power is not known draws what a known vendor's appliance draws.
        p_.storage.value +=
            terabytes > 0
                ? terabytes * c.power("power_constants", "", "storage_power_per_tb").value
                : real(store.servers) * c.power("storage", "ddn_ai400x2t", "max_power").value;
    }
}

void PowerReader::check_breaker() {
    if (!p_.breaker) return;
    const BreakerSpec& b = *p_.breaker;
    const double nodes = real(std::min(b.nodes, s_.nodes.nodes));
    const double continuous =
        catalogue_.number("power_constants", "", "nec_continuous_load_fraction");
    const Breaker breaker(b.curve, b.rating);
    if (const auto trips = breaker.until_trip(breaker.load(p_.node_step.times(nodes)))) {
        sections_.breaker.warning(
            "rating", fmt::format("{:g} nodes draw {} while the job computes, {} of {}: it trips "
                                  "after {} of training, though the mean is {}",
                                  nodes, to_text(Watts{nodes * p_.node_step.peak().value}),
                                  fmt::format("{:.0f} %", 100 * nodes * p_.node_step.peak().value /
                                                              b.rating.value),
                                  to_text(b.rating), to_text(*trips),
                                  to_text(Watts{nodes * p_.node_step.mean().value})));
    } else if (nodes * p_.node.design().value > continuous * b.rating.value) {
        sections_.breaker.warning(
            "rating",
            fmt::format("{:g} nodes draw up to {}, more than the {:.0f} % of {} that a breaker may "
                        "carry for long ({})",
                        nodes, to_text(Watts{nodes * p_.node.design().value}), 100 * continuous,
                        to_text(b.rating), to_text(Watts{continuous * b.rating.value})));
    }
}

void PowerReader::add_causes() {
    if (!top_.ok() || top_.describing()) return;
    const auto add = [&](const char* name, DomainKind domain, std::int64_t nodes, Duration out) {
        FailureCause cause;
        cause.name = name;
        cause.detection = catalogue_.time("detection", "nccl_ib_error", "time");
        cause.remedy = Remedy::reset;
        cause.reset_time = out;
        cause.domain = domain;
        s_.causes.push_back(cause);
        s_.nodes.domains.resize(domain_kind_names.size());
        FailureDomains& domains = s_.nodes.domains[static_cast<std::size_t>(domain)];
        domains = FailureDomains::runs(s_.nodes.nodes, nodes);
        return domains.count();
    };
    if (p_.breaker) {
        p_.breaker->cause = s_.causes.size();
        add("breaker_trip", DomainKind::breaker, p_.breaker->nodes, p_.breaker->reset);
    }
    if (p_.pump) {
        p_.pump->cause = s_.causes.size();
        p_.pump->loops = add("pump_loss", DomainKind::cdu,
                             s_.layout.nodes_per_rack * s_.layout.racks_per_cdu, p_.pump->repair);
    }
}

// Injected losses of a pump are taken from the nodes' strikes: the loop rides through them too.
void PowerReader::take_injected() {
    if (!p_.pump) return;
    for (const InjectedStrike& strike : s_.nodes.injected) {
        if (strike.cause == p_.pump->cause) p_.injected_pump_losses.push_back(strike);
    }
    std::erase_if(s_.nodes.injected,
                  [&](const InjectedStrike& strike) { return strike.cause == p_.pump->cause; });
}

void PowerReader::finish() {
    if (s_.world && !top_.describing()) check_world();
    if (!s_.world && holds_jobs()) {
        sections_.power.error("over_budget",
                              "holds back jobs from starting, and there is one, on all its nodes",
                              "over_budget = \"throttle\", or many jobs under a [scheduler]");
    }
    if (!top_.ok() || top_.describing()) return;
    if (s_.world) return finish_world();
    p_.run(gpu_step(s_, s_.job.step));
    check_breaker();
    check_budget({real(s_.nodes.nodes) * p_.node.at(Activity::idle).value});
}

}  // namespace railyard
