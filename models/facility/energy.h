#pragma once
// Energy as whole numbers, so that its parts sum to the whole exactly, and what those need to know of it who
// size a facility or pay its bill.

#include <cmath>
#include <cstdint>

#include "sim/units.h"

namespace railyard {

// Milliwatts times nanoseconds.
using Picojoules = __int128;
constexpr double picojoules_per_joule = 1e12;
constexpr double joules_per_kilowatt_hour = 3.6e6;

inline std::int64_t milliwatts(Watts power) {
    return std::llround(power.value * 1e3);
}
inline Picojoules energy_of(Watts power, Duration time) {
    return Picojoules{milliwatts(power)} * time.count();
}
inline double joules(Picojoules energy) {
    return real(energy) / picojoules_per_joule;
}

// What a campaign has drawn. "Meter": with the facility's own losses and cooling on top (PUE).
struct EnergyUse {
    Duration time{};
    double it_joules = 0;     // nodes, network, storage
    double meter_joules = 0;  // what the utility bills
    Watts mean;               // at the meter
    Watts peak;               // likewise: the highest instant of it
    Watts
        design;  // likewise, with every node, switch and server at its nameplate: what to build for

    double kilowatt_hours() const { return meter_joules / joules_per_kilowatt_hour; }
};

}  // namespace railyard
