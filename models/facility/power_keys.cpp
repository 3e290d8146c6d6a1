#include "models/facility/power_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/text.h"

namespace railyard {

namespace {

std::string parts_text(const NodePower& node) {
    const NodePower::Parts p = node.parts(node.gpu.max.value);
    return fmt::format("{} GPUs of {} {}, NICs {}, host {}, fans {}, conversion {}", node.gpus,
                       to_text(node.gpu.max), to_text(Watts{p.gpus}), to_text(Watts{p.nics}),
                       to_text(Watts{p.host}), to_text(Watts{p.fans}),
                       to_text(Watts{p.conversion}));
}

class PowerKeysReader {
  public:
    PowerKeysReader(Catalogue& catalogue, Catalogue& aside, const RackedNodes& nodes)
        : catalogue_(catalogue), aside_(aside), nodes_(nodes) {}
    PowerKeys read(Section& top, PowerSections& sections);

  private:
    void read_power(Section& power);
    void read_facility(Section& facility);
    void read_breaker(Section& breaker);
    void read_pump(Section& pump);
    void check_supplies(Section& power);
    void check_racks(Section& facility);

    Catalogue& catalogue_;
    Catalogue& aside_;
    const RackedNodes& nodes_;
    PowerKeys p_;
};

PowerKeys PowerKeysReader::read(Section& top, PowerSections& sections) {
    p_.facility_given = sections.facility.present();
    p_.given = sections.power.present() || p_.facility_given;
    Catalogue& c = p_.given ? catalogue_ : aside_;
    // Cooling first: how much of a node's heat its fans move.
    int kind = static_cast<int>(cooling_of_node(c, nodes_.name));
    sections.facility.choose(
        "cooling", kind, cooling_names,
        "What carries the racks' heat away; without the key: what the node needs");
    const Watts gpu_max = c.power("gpu", nodes_.spec.gpu, "max_power");
    p_.cooling = read_cooling(c, static_cast<CoolingKind>(kind), gpu_max);
    p_.throttle = read_throttle_law(c);
    p_.edge = c.time("power_constants", "", "cluster_swing_time");
    p_.node = read_node_power(c, nodes_.spec, p_.cooling.liquid_fraction);
    read_power(sections.power);
    read_facility(sections.facility);
    read_breaker(sections.breaker);
    read_pump(sections.pump);
    sections.power.finish();
    sections.breaker.finish();
    sections.pump.finish();
    sections.facility.finish();
    const bool slows = p_.node.gpu.cap < p_.node.gpu.max || p_.budget || p_.facility_given ||
                       sections.pump.present();
    if (sections.power.has("cap_exponent") && !slows) {
        sections.power.warning("cap_exponent", "has no effect: nothing slows a GPU",
                               "give power.gpu_cap, power.budget, [facility] or [[pump]]");
    }
    if (top.ok() && !top.describing()) {
        check_supplies(sections.power);
        check_racks(sections.facility);
    }
    return p_;
}

void PowerKeysReader::read_power(Section& power) {
    GpuPower& gpu = p_.node.gpu;
    power.read("gpu_cap", gpu.cap, "What the driver holds each GPU to",
               {Bound::positive, "the GPU's TDP"});
    power.read("cap_exponent", gpu.cap_exponent, "Speed of multiplications ~ (power / TDP) to this",
               {Bound::positive, "from the catalogue"});
    const double least = cap_fraction_min * gpu.max.value;
    if (gpu.cap > gpu.max || gpu.cap.value < least) {
        power.error("gpu_cap",
                    fmt::format("expected {} to {}, found {}", to_text(Watts{least}),
                                to_text(gpu.max), to_text(gpu.cap)),
                    "what a cap costs in speed was seen from 0.6 of the TDP up");
        gpu.cap = gpu.max;
    }

    NodePower& node = p_.node;
    power.read("supplies", node.supplies, "Power supplies of a node",
               {Bound::count, "the node's, from the catalogue"});
    power.read("supply_rating", node.supply_rating, "What one of them delivers",
               {Bound::positive, "the node's, from the catalogue"});
    int redundancy = 1;
    power.choose("redundancy", redundancy, power_redundancies,
                 "n: all supplies are needed; n+1: one may be lost; 2n: half of them; without the "
                 "key: as the node's entry has it");
    if (power.has("redundancy") || power.has("supplies")) {
        const std::int64_t lost = redundancy == 0 ? 0 : redundancy == 1 ? 1 : node.supplies / 2;
        node.supplies_needed = node.supplies - lost;
    }
    power.read("repair", p_.repairing, "What a node draws while it is out of service",
               {Bound::non_negative});
    power.read("budget", p_.budget,
               "What the site may draw at the meter: nodes, network, storage, cooling",
               {Bound::positive, "not given: as much as they draw"});
    power.choose("over_budget", p_.over_budget, over_budget_names,
                 "throttle: all GPUs' clocks stay low enough for all nodes to compute at once; "
                 "hold: jobs wait until there is power for them");
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

void PowerKeysReader::read_facility(Section& facility) {
    Cooling& cooling = p_.cooling;
    facility.read("inlet_temperature", cooling.gpu.inlet,
                  "Temperature of the air or coolant that reaches the GPUs",
                  {Bound::positive, "the cooling's, from the catalogue"});
    facility.read("thermal_resistance", cooling.gpu.resistance, "From a GPU to that",
                  {Bound::positive, "the cooling's, from the catalogue"});
    facility.read("throttle_temperature", p_.throttle.starts, "From which a GPU's clocks fall",
                  {Bound::positive, "where the published losses meet none"});
    facility.read("pue", cooling.pue, "Power at the meter over that of nodes, network and storage",
                  {Bound::at_least_one, "the cooling's, from the catalogue"});
    facility.read("carbon_intensity", p_.carbon, "Carbon emitted per kWh at the meter",
                  {Bound::non_negative, "not given: no carbon is reported"});
    facility.read("rack_power_max", cooling.rack_power_max, "What one rack may draw",
                  {Bound::positive, "what the cooling carries away"});
    const double fit = std::floor(cooling.rack_power_max.value / p_.node.design().value);
    const auto most = static_cast<std::int64_t>(std::min(fit, 1e6));
    p_.nodes_per_rack =
        nodes_.per_rack.value_or(std::max<std::int64_t>(1, std::min(nodes_.count, most)));
}

void PowerKeysReader::read_breaker(Section& breaker) {
    Catalogue& c = breaker.present() ? catalogue_ : aside_;
    BreakerSpec spec{.curve = read_trip_curve(c)};
    spec.tolerance = c.number("power_constants", "", "breaker_tolerance");
    spec.reset = c.time("infrastructure", "rack_pdu_breaker", "repair_time");
    breaker.read("rating", spec.rating, "What a breaker, or a PDU, carries for ever",
                 {Bound::positive, "the section needs it", breaker.present()});
    spec.nodes = p_.nodes_per_rack;
    breaker.read("nodes", spec.nodes, "Nodes behind one", {Bound::count, "a rack's"});
    breaker.read("tolerance", spec.tolerance,
                 "Standard deviation of the load at which one trips, over its rating",
                 {Bound::fraction, "from the catalogue"});
    breaker.read("reset_time", spec.reset, "From a trip until its nodes are back",
                 {Bound::positive, "from the catalogue"});
    if (!breaker.present() || !breaker.ok()) return;
    p_.breaker = spec;
    const Watts idle{real(spec.nodes) * p_.node.at(Activity::idle).value};
    if (idle > spec.rating) {
        breaker.error(
            "rating",
            fmt::format("{} nodes draw {} while they are idle: {} trips before any job begins",
                        spec.nodes, to_text(idle), to_text(spec.rating)),
            "fewer facility.breaker.nodes, or a higher rating");
    }
}

void PowerKeysReader::read_pump(Section& pump) {
    PumpSpec spec;
    Catalogue& c = pump.present() ? catalogue_ : aside_;
    spec.failure_rate = c.rate("infrastructure", "cdu_pump", "annual_failure_rate");
    pump.read("failure_rate", spec.failure_rate, "Failures per time of one loop's pump",
              {Bound::non_negative, "from the catalogue"});
    pump.read("standby", spec.standby, "A second pump takes over");
    spec.failover = c.time("power_constants", "", "pump_failover_time");
    pump.read("failover", spec.failover, "Until it does",
              {Bound::non_negative, "from the catalogue"});
    Duration ride_through = p_.cooling.ride_through;
    pump.read("ride_through", ride_through, "From the loss of flow to throttling at full load",
              {Bound::non_negative, "the cooling's, from the catalogue"});
    spec.repair = c.time("infrastructure", "cdu_pump", "repair_time");
    pump.read("repair_time", spec.repair, "From the loss of flow until the nodes are back",
              {Bound::positive, "from the catalogue"});
    if (!pump.present() || !pump.ok()) return;
    if (pump.has("failover") && !spec.standby) {
        pump.error("failover", "has no effect without facility.pump.standby = true");
    }
    // The loop is what it is, whatever reaches it: its capacity is that at the cooling's own inlet.
    const Cooling usual = read_cooling(c, p_.cooling.kind, p_.node.gpu.max);
    spec.heat_capacity = heat_capacity(p_.node.gpu, usual.gpu, read_throttle_law(c), ride_through);
    p_.pump = spec;
}

void PowerKeysReader::check_supplies(Section& power) {
    const NodePower& node = p_.node;
    if (node.supplies == 0 || node.supply_rating.value == 0) return;
    const Watts need = p_.node.design();
    const double left = real(node.supplies_needed) * node.supply_rating.value;
    p_.supplies_load = left > 0 ? need.value / left : 0;
    if (need.value <= left) return;
    const std::int64_t redundant = node.supplies - node.supplies_needed;
    const double enough = std::ceil(need.value / node.supply_rating.value);
    const std::string message = fmt::format(
        "a node draws up to {} ({}); its {} supplies of {} give {}{}", to_text(need),
        node.rated.value > node.full().value ? "its rating" : parts_text(node), node.supplies,
        to_text(node.supply_rating), to_text(Watts{left}),
        redundant > 0 ? fmt::format(" when {} of them {} lost, {} together", redundant,
                                    redundant == 1 ? "is" : "are",
                                    to_text(Watts{real(node.supplies) * node.supply_rating.value}))
                      : std::string());
    const std::string help = fmt::format(
        "{:g} of them carry it, {:g} with one to lose; a DGX H100 has 6 of 3.3 kW, needs 4 and can "
        "lose 2",
        enough, enough + 1);
    // A catalogue's node is as it is: who asks for no power is told, and not stopped.
    if (p_.given) {
        power.error("supplies", message, help);
    } else {
        power.warning("supplies", message, help);
    }
}

void PowerKeysReader::check_racks(Section& facility) {
    if (!p_.facility_given) return;
    const Cooling& cooling = p_.cooling;
    const std::string& name = word_of(cooling_names, cooling.kind);
    const Watts rack{real(p_.nodes_per_rack) * p_.node.design().value};
    if (rack > cooling.rack_power_max) {
        facility.error(
            "cooling",
            fmt::format("rack over its power: {} node{} of {} draw{} {}, {} carries {}",
                        p_.nodes_per_rack, p_.nodes_per_rack == 1 ? "" : "s",
                        to_text(p_.node.design()), p_.nodes_per_rack == 1 ? "s" : "", to_text(rack),
                        facility.has("rack_power_max") ? "the rack" : name + " cooling",
                        to_text(cooling.rack_power_max)),
            "fewer cluster.nodes_per_rack, another facility.cooling or a power.gpu_cap");
    }
    if (cooling.gpu.inlet > cooling.inlet_max) {
        facility.error(
            "inlet_temperature",
            fmt::format("{:g} degC is more than nodes with {} cooling are run at: {:g} degC",
                        cooling.gpu.inlet.value, name, cooling.inlet_max.value));
    }
    if (p_.throttle.starts >= p_.throttle.shutdown) {
        facility.error(
            "throttle_temperature",
            fmt::format(
                "expected less than {:g} degC, where nodes switch themselves off, found {:g} degC",
                p_.throttle.shutdown.value, p_.throttle.starts.value));
    }
}

}  // namespace

const std::vector<std::string> power_redundancies = {"n", "n+1", "2n"};

const std::vector<std::string> over_budget_names = {"throttle", "hold"};

PowerSections::PowerSections(Section& top)
    : power(top.section("power")),
      facility(top.section("facility")),
      breaker(facility.section("breaker")),
      pump(facility.section("pump")) {}

PowerKeys read_power_keys(Section& top, PowerSections& sections, Catalogue& catalogue,
                          Catalogue& aside, const RackedNodes& nodes) {
    return PowerKeysReader(catalogue, aside, nodes).read(top, sections);
}

}  // namespace railyard
