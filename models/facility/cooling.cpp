#include "models/facility/cooling.h"

#include "sim/text.h"

namespace railyard {

const std::vector<std::string> cooling_names = {"air", "rear_door", "direct_liquid", "immersion"};

const std::vector<std::string> cooling_docs = {
    "fans, aisles and room units", "fans in the nodes, a water coil in the rack's door",
    "cold plates on GPUs and CPUs, fans for the rest", "nodes in a tank of fluid"};

Cooling read_cooling(Catalogue& c, CoolingKind kind, Watts gpu_max) {
    const std::string& name = word_of(cooling_names, kind);
    Cooling out;
    out.kind = kind;
    out.rack_power_max = c.power("cooling", name, "rack_power_max");
    out.inlet_max = c.temperature("cooling", name, "inlet_temperature_max");
    out.gpu.inlet = c.temperature("cooling", name, "inlet_temperature");
    out.gpu.time_constant = c.time("cooling", name, "time_constant");
    const Watts made_for = c.power("gpu", "h100_sxm", "max_power");
    out.gpu.resistance = {c.thermal_resistance("cooling", name, "thermal_resistance").value *
                          made_for.value / gpu_max.value};
    out.liquid_fraction = c.number("cooling", name, "liquid_fraction");
    out.ride_through = c.time("cooling", name, "ride_through");
    out.pue = c.number("cooling", name, "pue");
    return out;
}

CoolingKind cooling_of_node(Catalogue& c, const std::string& node) {
    return c.has("node", node, "cooling") ? CoolingKind::direct_liquid : CoolingKind::air;
}

}  // namespace railyard
