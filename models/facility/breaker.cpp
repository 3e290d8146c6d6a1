#include "models/facility/breaker.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/facility/portable_power.h"
#include "sim/check.h"

namespace railyard {

TripCurve::TripCurve(std::vector<Point> points) : points_(std::move(points)) {
    RY_CHECK(points_.size() >= 2);
}

double TripCurve::seconds_at(double load) const {
    if (load <= 1) return std::numeric_limits<double>::infinity();
    // Beyond either end the line of the last two points goes on.
    std::size_t right = 1;
    while (right + 1 < points_.size() && points_[right].load < load) ++right;
    const Point& a = points_[right - 1];
    const Point& b = points_[right];
    const double slope = portable_log(b.seconds / a.seconds) / portable_log(b.load / a.load);
    return a.seconds * portable_power(load / a.load, slope);
}

TripCurve read_trip_curve(Catalogue& c) {
    std::vector<TripCurve::Point> points;
    for (const auto& [load, key] :
         {std::pair(1.2, "breaker_trip_time_120pct"), std::pair(1.5, "breaker_trip_time_150pct"),
          std::pair(2.0, "breaker_trip_time_200pct"), std::pair(5.0, "breaker_trip_time_500pct")}) {
        points.push_back({load, std::max(1e-3, seconds(c.time("power_constants", "", key)))});
    }
    return TripCurve(std::move(points));
}

double Breaker::after(double warmth, Watts load, double span) const {
    const double multiple = load.value / rating_.value;
    return multiple > 1 ? warmth + span / curve_.seconds_at(multiple)
                        : warmth * portable_exp(-span / curve_.cooling_seconds());
}

void Breaker::carry(Watts load, Duration time) {
    warmth_ = std::min(1.0, after(warmth_, load, seconds(time)));
}

// One cycle takes warmth w to gain * w + rise, and on its way it is highest where `trips_from` says: from
// there on upwards at the cycle's start, it trips within the cycle.
struct Breaker::Cycle {
    double gain = 1;
    double rise = 0;
    double trips_from = std::numeric_limits<double>::infinity();

    // After n cycles from w.
    double after(double w, double n) const {
        if (gain == 1) return w + n * rise;
        const double settled = rise / (1 - gain);
        return settled + (w - settled) * portable_power(gain, n);
    }
    // Whole cycles that it bears from w: the first that begins at trips_from or above. Infinity: all.
    double borne_from(double w) const {
        if (w >= trips_from) return 0;
        if (gain == 1) return rise > 0 ? std::ceil((trips_from - w) / rise) : INFINITY;
        const double settled = rise / (1 - gain);
        if (settled <= trips_from) return INFINITY;
        if (gain <= 0) return 1;  // all warmth is gone by the cycle's end
        return std::ceil(portable_log((settled - trips_from) / (settled - w)) / portable_log(gain));
    }
};

Breaker::Cycle Breaker::cycle_of(const PowerProfile& load) const {
    Cycle out;
    for (const PowerLevel& level : load.levels()) {
        const double span = seconds(level.lasts);
        const double end = after(1, level.power, span);
        if (level.power > rating_) {
            out.rise += end - 1;
            out.trips_from = std::min(out.trips_from, (1 - out.rise) / out.gain);
        } else {
            out.gain *= end;
            out.rise *= end;
        }
    }
    return out;
}

void Breaker::carry(const PowerProfile& load, Duration time) {
    if (load.cycle() <= Duration{}) return;
    const Cycle cycle = cycle_of(load);
    const auto whole = static_cast<double>(time / load.cycle());
    warmth_ = std::min(1.0, cycle.after(warmth_, whole));
    Duration left = time % load.cycle();
    for (const PowerLevel& level : load.levels()) {
        const Duration span = std::min(left, level.lasts);
        carry(level.power, span);
        left -= span;
    }
}

std::optional<Duration> Breaker::until_trip(const PowerProfile& load) const {
    const Cycle cycle = cycle_of(load);
    const double borne = cycle.borne_from(warmth_);
    constexpr double seconds_max = 9e9;  // the campaign clock's end
    if (!(borne * seconds(load.cycle()) < seconds_max)) return std::nullopt;
    // The logarithm may be off by one cycle: look from the one before.
    double cycles = std::max(0.0, borne - 1);
    double warmth = cycle.after(warmth_, cycles);
    for (int round = 0; round < 3; ++round, ++cycles) {
        double span = 0;
        for (const PowerLevel& level : load.levels()) {
            const double end = after(warmth, level.power, seconds(level.lasts));
            if (level.power > rating_ && end >= 1) {
                const double rest =
                    (1 - warmth) * curve_.seconds_at(level.power.value / rating_.value);
                return from_seconds(cycles * seconds(load.cycle()) + span + std::max(0.0, rest));
            }
            warmth = end;
            span += seconds(level.lasts);
        }
    }
    return from_seconds(borne * seconds(load.cycle()));
}

}  // namespace railyard
