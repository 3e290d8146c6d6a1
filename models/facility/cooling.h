#pragma once
// What carries a rack's heat away, from the catalogue's entries of kind "cooling".

#include <string>
#include <vector>

#include "models/facility/gpu_heat.h"

namespace railyard {

enum class CoolingKind : std::uint8_t { air, rear_door, direct_liquid, immersion };
extern const std::vector<std::string> cooling_names;  // in order; as the catalogue spells them
extern const std::vector<std::string> cooling_docs;

struct Cooling {
    CoolingKind kind = CoolingKind::air;
    Watts rack_power_max;
    Celsius inlet_max;
    GpuCooling gpu;              // of this GPU, at the kind's usual inlet
    double liquid_fraction = 0;  // of a node's heat, that its fans need not move
    Duration ride_through{};     // from the loss of the coolant's flow to throttling at full load
    double pue = 1;
};
// For GPUs of this TDP: a heat sink is made for its GPU, so its resistance goes with one over that.
Cooling read_cooling(Catalogue& catalogue, CoolingKind kind, Watts gpu_max);

// What the node's entry says it needs, air when it says nothing.
CoolingKind cooling_of_node(Catalogue& catalogue, const std::string& node);

}  // namespace railyard
