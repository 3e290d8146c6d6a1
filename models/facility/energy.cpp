#include "models/facility/energy.h"

#include <algorithm>

namespace railyard {

namespace {

constexpr double day_hours = 24;

// Hours of [0, end) that lie in [from, to) of their day, with from <= to.
double hours_in(double end, double from, double to) {
    const double days = std::floor(end / day_hours);
    const double rest = end - days * day_hours;
    return days * (to - from) + std::clamp(rest - from, 0.0, to - from);
}

}  // namespace

double meter_joules_in(const EnergyUse& use, const PricePeriod& period) {
    const double all = seconds(use.time) / 3600;
    if (all <= 0) return 0;
    const double hours =
        period.from_hour <= period.to_hour
            ? hours_in(all, period.from_hour, period.to_hour)
            : hours_in(all, period.from_hour, day_hours) + hours_in(all, 0, period.to_hour);
    return use.meter_joules * hours / all;
}

}  // namespace railyard
