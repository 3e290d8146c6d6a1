#include "models/campaign/power_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace railyard {

namespace {

std::string parts_text(const NodePower& node) {
    const NodePower::Parts p = node.parts(node.gpu.max.value);
    return fmt::format("{} GPUs of {} {}, NICs {}, host {}, fans {}, conversion {}", node.gpus,
                       to_text(node.gpu.max), to_text(Watts{p.gpus}), to_text(Watts{p.nics}),
                       to_text(Watts{p.host}), to_text(Watts{p.fans}),
                       to_text(Watts{p.conversion}));
}

}  // namespace

const std::vector<std::string>& power_redundancies() {
    static const std::vector<std::string> names = {"n", "n+1", "2n"};
    return names;
}

NodePowerSpec node_power_spec(const Node& node) {
    return {node.name, node.gpu.id, node.nic, node.gpus, node.nics, node.storage_nics};
}

const std::vector<std::string>& over_budget_names() {
    static const std::vector<std::string> names = {"throttle", "hold"};
    return names;
}

PowerReader::PowerReader(Section& top, Catalogue& catalogue, const std::string& node_name,
                         Scenario& scenario)
    : top_(top),
      catalogue_(catalogue),
      aside_(scenario.open_catalogue()),
      s_(scenario),
      p_(scenario.power),
      power_(top.section("power")),
      facility_(top.section("facility")),
      breaker_(facility_.section("breaker")),
      pump_(facility_.section("pump")) {
    p_.facility_given = facility_.present();
    p_.given = power_.present() || facility_.present();
    Catalogue& c = p_.given ? catalogue_ : aside_.catalogue;
    // Cooling first: how much of a node's heat its fans move.
    int kind = static_cast<int>(cooling_of_node(c, node_name));
    facility_.choose("cooling", kind, cooling_names(),
                     "What carries the racks' heat away; without the key: what the node needs");
    const Watts gpu_max = c.power("gpu", s_.node.gpu.id, "max_power");
    p_.cooling = read_cooling(c, static_cast<CoolingKind>(kind), gpu_max);
    p_.throttle = read_throttle_law(c);
    p_.edge = c.time("power_constants", "", "cluster_swing_time");
    p_.node = read_node_power(c, node_power_spec(s_.node), p_.cooling.liquid_fraction);
    read_power(power_);
    read_facility(facility_);
    read_breaker(breaker_);
    read_pump(pump_);
    power_.finish();
    breaker_.finish();
    pump_.finish();
    facility_.finish();
    if (!top.ok() || top.describing()) return;
    check_supplies(power_);
    check_racks(facility_);
}

void PowerReader::read_power(Section& power) {
    GpuPower& gpu = p_.node.gpu;
    power.read("gpu_cap", gpu.cap, "What the driver holds each GPU to",
               {.bound = Bound::positive, .otherwise = "the GPU's TDP"});
    power.read("cap_exponent", gpu.cap_exponent, "Speed of multiplications ~ (power / TDP) to this",
               {.bound = Bound::positive, .otherwise = "from the catalogue"});
    const double least = cap_fraction_min * gpu.max.value;
    if (gpu.cap > gpu.max || gpu.cap.value < least) {
        power.error("gpu_cap",
                    fmt::format("expected {} to {}, found {}", to_text(Watts{least}),
                                to_text(gpu.max), to_text(gpu.cap)),
                    "what a cap costs in speed was seen from 0.6 of the TDP up");
        gpu.cap = gpu.max;
    }
    s_.node.gpu.sustained_fraction *= gpu.speed_at(gpu.cap);

    NodePower& node = p_.node;
    power.read("supplies", node.supplies, "Power supplies of a node",
               {.bound = Bound::count, .otherwise = "the node's, from the catalogue"});
    power.read("supply_rating", node.supply_rating, "What one of them delivers",
               {.bound = Bound::positive, .otherwise = "the node's, from the catalogue"});
    int redundancy = 1;
    power.choose("redundancy", redundancy, power_redundancies(),
                 "n: all supplies are needed; n+1: one may be lost; 2n: half of them; without the "
                 "key: as the node's entry has it");
    if (power.has("redundancy") || power.has("supplies")) {
        const std::int64_t lost = redundancy == 0 ? 0 : redundancy == 1 ? 1 : node.supplies / 2;
        node.supplies_needed = node.supplies - lost;
    }
    power.read("repair", p_.repairing, "What a node draws while it is out of service",
               {.bound = Bound::non_negative});
    power.read("budget", p_.budget,
               "What the site may draw at the meter: nodes, network, storage, cooling",
               {.bound = Bound::positive, .otherwise = "not given: as much as they draw"});
    int over = static_cast<int>(p_.over_budget);
    power.choose(
        "over_budget", over, over_budget_names(),
        "throttle: all GPUs' clocks stay low enough for all nodes to compute at once; hold: jobs "
        "wait until there is power for them");
    p_.over_budget = static_cast<OverBudget>(over);
    if (power.has("over_budget") && !power.has("budget")) {
        power.error("over_budget", "has no effect without power.budget");
    }
    for (const char* key : {"supplies", "supply_rating"}) {
        const char* other = key == std::string("supplies") ? "supply_rating" : "supplies";
        if (power.has(key) && !power.has(other) &&
            (node.supplies == 0 || node.supply_rating.value == 0)) {
            power.error(key,
                        fmt::format("needs power.{} beside it: the node's entry has none", other));
        }
    }
}

void PowerReader::read_facility(Section& facility) {
    Cooling& cooling = p_.cooling;
    facility.read("inlet_temperature", cooling.gpu.inlet,
                  "Temperature of the air or coolant that reaches the GPUs",
                  {.bound = Bound::positive, .otherwise = "the cooling's, from the catalogue"});
    facility.read("thermal_resistance", cooling.gpu.resistance, "From a GPU to that",
                  {.bound = Bound::positive, .otherwise = "the cooling's, from the catalogue"});
    facility.read("throttle_temperature", p_.throttle.starts, "From which a GPU's clocks fall",
                  {.bound = Bound::positive, .otherwise = "where the published losses meet none"});
    facility.read("pue", cooling.pue, "Power at the meter over that of nodes, network and storage",
                  {.bound = Bound::at_least_one, .otherwise = "the cooling's, from the catalogue"});
    facility.read("carbon_intensity", p_.carbon, "Carbon emitted per kWh at the meter",
                  {.bound = Bound::non_negative, .otherwise = "not given: no carbon is reported"});
    facility.read("rack_power_max", cooling.rack_power_max, "What one rack may draw",
                  {.bound = Bound::positive, .otherwise = "what the cooling carries away"});
    const double fit = std::floor(cooling.rack_power_max.value / p_.node_design().value);
    p_.nodes_per_rack = std::max<std::int64_t>(
        1, std::min(s_.nodes.nodes, static_cast<std::int64_t>(std::min(fit, 1e6))));
    if (s_.layout.nodes_per_rack_given) {
        p_.nodes_per_rack = s_.layout.nodes_per_rack;
    } else if (facility.present()) {
        s_.layout.nodes_per_rack = p_.nodes_per_rack;
    }
}

void PowerReader::read_breaker(Section& breaker) {
    Catalogue& c = breaker.present() ? catalogue_ : aside_.catalogue;
    BreakerSpec spec{.curve = read_trip_curve(c)};
    spec.tolerance = c.number("power_constants", "", "breaker_tolerance");
    spec.reset = c.time("infrastructure", "rack_pdu_breaker", "repair_time");
    breaker.read("rating", spec.rating, "What a breaker, or a PDU, carries for ever",
                 {.bound = Bound::positive,
                  .required = breaker.present(),
                  .otherwise = "the section needs it"});
    spec.nodes = p_.nodes_per_rack;
    breaker.read("nodes", spec.nodes, "Nodes behind one",
                 {.bound = Bound::count, .otherwise = "a rack's"});
    breaker.read("tolerance", spec.tolerance,
                 "Standard deviation of the load at which one trips, over its rating",
                 {.bound = Bound::fraction, .otherwise = "from the catalogue"});
    breaker.read("reset_time", spec.reset, "From a trip until its nodes are back",
                 {.bound = Bound::positive, .otherwise = "from the catalogue"});
    if (!breaker.present() || !breaker.ok()) return;
    p_.breaker = spec;
    const Watts idle{static_cast<double>(spec.nodes) * p_.node.at(Activity::idle).value};
    if (idle > spec.rating) {
        breaker.error("rating",
                      fmt::format("{} nodes draw {} while they are idle: {} trips before any job "
                                  "begins",
                                  spec.nodes, to_text(idle), to_text(spec.rating)),
                      "fewer facility.breaker.nodes, or a higher rating");
    }
}

void PowerReader::read_pump(Section& pump) {
    PumpSpec spec;
    Catalogue& c = pump.present() ? catalogue_ : aside_.catalogue;
    spec.failure_rate = c.rate("infrastructure", "cdu_pump", "annual_failure_rate");
    pump.read("failure_rate", spec.failure_rate, "Failures per time of one loop's pump",
              {.bound = Bound::non_negative, .otherwise = "from the catalogue"});
    pump.read("standby", spec.standby, "A second pump takes over");
    spec.failover = c.time("power_constants", "", "pump_failover_time");
    pump.read("failover", spec.failover, "Until it does",
              {.bound = Bound::non_negative, .otherwise = "from the catalogue"});
    Duration ride_through = p_.cooling.ride_through;
    pump.read("ride_through", ride_through, "From the loss of flow to throttling at full load",
              {.bound = Bound::non_negative, .otherwise = "the cooling's, from the catalogue"});
    spec.repair = c.time("infrastructure", "cdu_pump", "repair_time");
    pump.read("repair_time", spec.repair, "From the loss of flow until the nodes are back",
              {.bound = Bound::positive, .otherwise = "from the catalogue"});
    if (!pump.present() || !pump.ok()) return;
    if (pump.has("failover") && !spec.standby) {
        pump.error("failover", "has no effect without facility.pump.standby = true");
    }
    // The loop is what it is, whatever reaches it: its capacity is that at the cooling's own inlet.
    const Cooling usual = read_cooling(c, p_.cooling.kind, p_.node.gpu.max);
    spec.heat_capacity = heat_capacity(p_.node.gpu, usual.gpu, read_throttle_law(c), ride_through);
    p_.pump = spec;
}

void PowerReader::check_supplies(Section& power) {
    const NodePower& node = p_.node;
    if (node.supplies == 0 || node.supply_rating.value == 0) return;
    const Watts need = p_.node_design();
    const double left = static_cast<double>(node.supplies_needed) * node.supply_rating.value;
    p_.supplies_load = left > 0 ? need.value / left : 0;
    if (need.value <= left) return;
    const std::int64_t redundant = node.supplies - node.supplies_needed;
    const double enough = std::ceil(need.value / node.supply_rating.value);
    const std::string message = fmt::format(
        "a node draws up to {} ({}); its {} supplies of {} give {}{}", to_text(need),
        parts_text(node), node.supplies, to_text(node.supply_rating), to_text(Watts{left}),
        redundant > 0
            ? fmt::format(
                  " when {} of them {} lost, {} together", redundant, redundant == 1 ? "is" : "are",
                  to_text(Watts{static_cast<double>(node.supplies) * node.supply_rating.value}))
            : std::string());
    const std::string help = fmt::format(
        "{:g} of them carry it, {:g} with one to lose; a DGX H100 has 6 of 3.3 kW, "
        "needs 4 and can lose 2",
        enough, enough + 1);
    // A catalogue's node is as it is: who asks for no power is told, and not stopped.
    if (p_.given) {
        power.error("supplies", message, help);
    } else {
        power.warning("supplies", message, help);
    }
}

void PowerReader::check_racks(Section& facility) {
    if (!p_.facility_given) return;
    const Cooling& cooling = p_.cooling;
    const std::string& name = cooling_names()[static_cast<std::size_t>(cooling.kind)];
    const Watts rack{static_cast<double>(p_.nodes_per_rack) * p_.node_design().value};
    if (rack > cooling.rack_power_max) {
        facility.error(
            "cooling",
            fmt::format("rack over its power: {} node{} of {} draw{} {}, {} carries {}",
                        p_.nodes_per_rack, p_.nodes_per_rack == 1 ? "" : "s",
                        to_text(p_.node_design()), p_.nodes_per_rack == 1 ? "s" : "", to_text(rack),
                        facility.has("rack_power_max") ? "the rack" : name + " cooling",
                        to_text(cooling.rack_power_max)),
            "fewer cluster.nodes_per_rack, another facility.cooling or a power.gpu_cap");
    }
    if (cooling.gpu.inlet > cooling.inlet_max) {
        facility.error("inlet_temperature",
                       fmt::format("{:g} degC is more than nodes with {} cooling are run at: {:g} "
                                   "degC",
                                   cooling.gpu.inlet.value, name, cooling.inlet_max.value));
    }
    if (p_.throttle.starts >= p_.throttle.shutdown) {
        facility.error("throttle_temperature",
                       fmt::format("expected less than {:g} degC, where nodes switch themselves "
                                   "off, found {:g} degC",
                                   p_.throttle.shutdown.value, p_.throttle.starts.value));
    }
}

GpuStep gpu_step(const Scenario& s, const StepTime& step) {
    GpuStep out;
    out.compute = step.compute;
    if (!s.model.name.empty() && s.optimizer_traffic > 0) {
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
        facility_.error("inlet_temperature",
                        fmt::format("{} reach {:.1f} degC: they switch off at {:g} degC", whose,
                                    heat.gpu.value, p_.throttle.shutdown.value));
        return out;
    }
    if (heat.speed < 1) out.push_back({Part::gpu, 0, 0, heat.speed});
    if (heat.speed < p_.budget_speed) {
        facility_.warning(
            "inlet_temperature",
            fmt::format("{} reach {:.1f} degC and run at {:.1f} % of their clocks", whose,
                        heat.gpu.value, 100 * heat.speed),
            fmt::format("they throttle from {:.4g} degC on; the inlet is at {:g} degC",
                        p_.throttle.starts.value, p_.cooling.gpu.inlet.value));
    }
    if (heat.hbm_speed < 1) out.push_back({Part::hbm, 0, 0, heat.hbm_speed});
    return out;
}

void PowerReader::read_network_and_storage(std::int64_t storage_servers) {
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
        const double watts = c.power("power_constants", "", "network_power_per_gpu_ndr").value *
                             static_cast<double>(s_.gpus());
        p_.network.value += watts;
        p_.network_design.value += watts;
    }
    if (storage_servers == 0 || s_.stores.empty() || !s_.stores[0].system) return;
    const double terabytes =
        static_cast<double>(s_.stores[0].system->capacity().raw.count()) * 1e-12;
    // A server of which nothing is known draws what an appliance of a known vendor does.
    p_.storage.value =
        terabytes > 0 ? terabytes * c.power("power_constants", "", "storage_power_per_tb").value
                      : static_cast<double>(storage_servers) *
                            c.power("storage", "ddn_ai400x2t", "max_power").value;
}

void PowerReader::check_breaker() {
    if (!p_.breaker) return;
    const BreakerSpec& b = *p_.breaker;
    const double nodes = static_cast<double>(std::min(b.nodes, s_.nodes.nodes));
    const double continuous =
        catalogue_.number("power_constants", "", "nec_continuous_load_fraction");
    const Breaker breaker(b.curve, b.rating);
    if (const auto trips = breaker.until_trip(breaker.load(p_.node_step.times(nodes)))) {
        breaker_.warning(
            "rating",
            fmt::format(
                "{:g} nodes draw {} while the job computes, {} of {}: it trips after {} of "
                "training, though the mean is {}",
                nodes, to_text(Watts{nodes * p_.node_step.peak().value}),
                fmt::format("{:.0f} %", 100 * nodes * p_.node_step.peak().value / b.rating.value),
                to_text(b.rating), to_text(*trips),
                to_text(Watts{nodes * p_.node_step.mean().value})));
    } else if (nodes * p_.node_design().value > continuous * b.rating.value) {
        breaker_.warning(
            "rating",
            fmt::format("{:g} nodes draw up to {}, more than the {:.0f} % of {} that a breaker may "
                        "carry for long ({})",
                        nodes, to_text(Watts{nodes * p_.node_design().value}), 100 * continuous,
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
        s_.nodes.domains.resize(domain_kind_names().size());
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

// A pump that is lost at a known time lets its loop ride through as any other.
void PowerReader::take_injected() {
    if (!p_.pump) return;
    for (const InjectedStrike& strike : s_.nodes.injected) {
        if (strike.cause == p_.pump->cause) p_.pump->injected.push_back(strike);
    }
    std::erase_if(s_.nodes.injected,
                  [&](const InjectedStrike& strike) { return strike.cause == p_.pump->cause; });
}

void PowerReader::finish() {
    if (s_.fleet && !top_.describing()) check_fleet();
    if (!s_.fleet && holds_jobs()) {
        power_.error("over_budget",
                     "holds back jobs from starting, and there is one, on all its nodes",
                     "over_budget = \"throttle\", or many jobs under a [scheduler]");
    }
    if (!top_.ok() || top_.describing()) return;
    if (s_.fleet) return finish_fleet();
    p_.run(gpu_step(s_, s_.job.step));
    check_breaker();
    check_budget({static_cast<double>(s_.nodes.nodes) * p_.node.at(Activity::idle).value});
}

}  // namespace railyard
