#include "models/facility/gpu_heat.h"

#include <algorithm>

#include "sim/rng.h"

namespace railyard {

Celsius GpuCooling::after(Celsius from, Watts power, Duration time) const {
    const double end = settled(power).value;
    return {end + (from.value - end) * portable_exp(-seconds(time) / seconds(time_constant))};
}

Celsius GpuCooling::peak(const PowerProfile& gpu) const {
    // A cycle takes T to gain * T + rise; where that is T itself, all cycles are alike.
    double gain = 1;
    double rise = 0;
    for (const PowerLevel& level : gpu.levels()) {
        const double stays = portable_exp(-seconds(level.lasts) / seconds(time_constant));
        gain *= stays;
        rise = rise * stays + settled(level.power).value * (1 - stays);
    }
    if (gain == 1) return settled(gpu.mean());  // a cycle of no time at all beside the constant
    Celsius now{rise / (1 - gain)};
    Celsius highest = now;
    for (const PowerLevel& level : gpu.levels()) {
        now = after(now, level.power, level.lasts);
        highest = std::max(highest, now);
    }
    return highest;
}

double ThrottleLaw::speed_at(Celsius gpu) const {
    constexpr double slowest = 0.05;  // a clock does not stop
    return std::clamp(1 - loss_per_kelvin * (gpu.value - starts.value), slowest, 1.0);
}

ThrottleLaw read_throttle_law(Catalogue& c) {
    ThrottleLaw out;
    const double at_85 = c.number("thermal", "", "speed_loss_at_85_degc");
    const double at_90 = c.number("thermal", "", "speed_loss_at_90_degc");
    constexpr double least = 1e-3;  // per kelvin: the line must meet zero somewhere
    out.loss_per_kelvin = std::max(least, (at_90 - at_85) / 5);
    out.starts = {85 - at_85 / out.loss_per_kelvin};
    out.shutdown = c.temperature("thermal", "", "shutdown_temperature");
    out.hbm_starts = c.temperature("thermal", "", "hbm_throttle_temperature");
    out.hbm_resistance_ratio = c.number("thermal", "", "hbm_resistance_ratio");
    out.hbm_loss = c.number("thermal", "", "hbm_bandwidth_loss_when_hot");
    return out;
}

PowerProfile GpuStep::profile(const GpuPower& power, double speed) const {
    const Watts full = power.at(Activity::compute);
    return PowerProfile(
        {{from_seconds(seconds(compute) / speed), speed < 1 ? power.compute_power_at(speed) : full},
         {memory_bound, power.at(Activity::memory_bound)},
         {communication, power.at(Activity::communication)},
         {idle, power.at(Activity::idle)}});
}

HeatState settle(const GpuPower& power, const GpuCooling& cooling, const ThrottleLaw& law,
                 const GpuStep& step) {
    HeatState out;
    // The temperature rises with the speed and the speed falls with the temperature: they meet once.
    double low = 0;
    double high = 1;
    if (law.speed_at(cooling.peak(step.profile(power))) < 1) {
        constexpr int halvings = 50;
        for (int i = 0; i < halvings; ++i) {
            const double middle = 0.5 * (low + high);
            const bool too_fast = law.speed_at(cooling.peak(step.profile(power, middle))) < middle;
            (too_fast ? high : low) = middle;
        }
        out.speed = low;
    }
    const PowerProfile gpu = step.profile(power, out.speed);
    out.gpu = cooling.peak(gpu);
    GpuCooling stacks = cooling;
    stacks.resistance.value *= law.hbm_resistance_ratio;
    out.hbm = stacks.peak(gpu);
    if (out.hbm >= law.hbm_starts) out.hbm_speed = 1 - law.hbm_loss;
    out.shuts_down = out.gpu >= law.shutdown;
    return out;
}

double heat_capacity(const GpuPower& power, const GpuCooling& cooling, const ThrottleLaw& law,
                     Duration ride_through) {
    const Watts full{power.compute_fraction * power.max.value};
    constexpr double rise_min =
        1;  // K: cooling that lets a GPU throttle at full load rides through as if it did not
    const double rise = std::max(rise_min, law.starts.value - cooling.settled(full).value);
    return full.value * seconds(ride_through) / rise;
}

Duration lose_cooling(const GpuPower& power, const GpuCooling& cooling, const ThrottleLaw& law,
                      double capacity, Watts gpu_mean) {
    const double from = cooling.settled(gpu_mean).value;
    const double to_throttle = std::max(0.0, capacity * (law.starts.value - from) / gpu_mean.value);
    // Above, the power falls as T rises: inlet = T - R P(T), so dt = capacity d(inlet) / P. By the trapezoid.
    const auto power_at = [&](double temperature) {
        const double speed = law.speed_at({temperature});
        const double floor = std::min(power.idle.value, gpu_mean.value);
        return std::max(floor, gpu_mean.value * portable_power(speed, 1 / power.cap_exponent));
    };
    constexpr int slices = 1000;
    const double first = std::max(from, law.starts.value);
    const double width = std::max(0.0, law.shutdown.value - first) / slices;
    double rest = 0;
    for (int i = 0; i < slices; ++i) {
        const double left = power_at(first + i * width);
        const double right = power_at(first + (i + 1) * width);
        const double inlet_rise = width + cooling.resistance.value * (left - right);
        rest += capacity * inlet_rise * 0.5 * (1 / left + 1 / right);
    }
    return from_seconds(to_throttle + rest);
}

}  // namespace railyard
