#pragma once
// How hot a GPU grows, when it slows down for it, and what happens when its cooling fails.

#include "models/facility/node_power.h"
#include "models/facility/power_profile.h"

namespace railyard {

// One time constant between what a GPU draws and its temperature: dT/dt = (inlet + R P - T) / time constant.
struct GpuCooling {
    Celsius inlet;
    KelvinPerWatt resistance;
    Duration time_constant{};

    Celsius settled(Watts power) const { return {inlet.value + resistance.value * power.value}; }
    Celsius after(Celsius from, Watts power, Duration time) const;
    // The highest of a cycle that has gone on for long.
    Celsius peak(const PowerProfile& gpu) const;
};

// From `starts` on the clocks fall with the temperature; at `shutdown` the node switches itself off. The
// stacks of HBM have a limit of their own, beyond which the memory is slower and the clocks are not.
struct ThrottleLaw {
    Celsius starts;
    double loss_per_kelvin = 0;  // of the speed
    Celsius shutdown;
    Celsius hbm_starts;
    double hbm_resistance_ratio = 1;  // to the coolant, over that of the die
    double hbm_loss = 0;              // of its bandwidth

    double speed_at(Celsius gpu) const;
};
ThrottleLaw read_throttle_law(Catalogue& catalogue);

// What one GPU does in a step at full clocks.
struct GpuStep {
    Duration compute{};
    Duration memory_bound{};
    Duration communication{};
    Duration idle{};

    // At lower clocks its multiplications take longer and draw less.
    PowerProfile profile(const GpuPower& power, double speed = 1) const;
};

struct HeatState {
    Celsius gpu;           // the highest of a step
    Celsius hbm;           // likewise
    double speed = 1;      // of the clocks, which hold the temperature where it is
    double hbm_speed = 1;  // of the memory's bandwidth
    bool shuts_down = false;
};
// Where clocks and temperature meet when the step goes on for long.
HeatState settle(const GpuPower& power, const GpuCooling& cooling, const ThrottleLaw& law,
                 const GpuStep& step);

// When coolant stands still, what it takes up of the heat warms it:
//
//     d inlet / dt = P / heat_capacity
//
// The capacity (J/K for each GPU) follows from the ride-through: the time from there to throttling at full
// load.
double heat_capacity(const GpuPower& power, const GpuCooling& cooling, const ThrottleLaw& law,
                     Duration ride_through);
// Until GPUs shut down: by then clocks have fallen, and with them the heat.
Duration lose_cooling(const GpuPower& power, const GpuCooling& cooling, const ThrottleLaw& law,
                      double heat_capacity, Watts gpu_mean);

}  // namespace railyard
