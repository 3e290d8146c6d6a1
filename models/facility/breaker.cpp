#include "models/facility/breaker.h"

#include <algorithm>
#include <cmath>

#include "sim/check.h"
#include "sim/rng.h"

namespace railyard {

namespace {

// e^exponent of a negative one; after days of cooling nothing is left.
double decayed(double exponent) {
    constexpr double least = -700;
    return exponent > least ? portable_exp(exponent) : 0;
}

}  // namespace

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

Breaker::Load Breaker::load(const PowerProfile& profile) const {
    Load out;
    out.cycle_ = profile.cycle();
    for (const PowerLevel& level : profile.levels()) {
        const double span = seconds(level.lasts);
        Load::Level each;
        each.lasts = level.lasts;
        each.trip_seconds = curve_.seconds_at(level.power.value / rating_.value);
        if (level.power > rating_) {
            each.gained = span / each.trip_seconds;
            out.rise_ += each.gained;
            out.trips_from_ = std::min(out.trips_from_, (1 - out.rise_) / out.gain_);
        } else {
            each.kept = decayed(-span / curve_.cooling_seconds());
            out.gain_ *= each.kept;
            out.rise_ *= each.kept;
        }
        out.levels_.push_back(each);
    }
    if (out.gain_ > 0) out.log_gain_ = portable_log(out.gain_);
    return out;
}

double Breaker::Load::after(double warmth, double cycles) const {
    if (gain_ == 1) return warmth + cycles * rise_;
    const double settled = rise_ / (1 - gain_);
    const double kept = gain_ > 0 ? decayed(cycles * log_gain_) : cycles == 0 ? 1 : 0;
    return settled + (warmth - settled) * kept;
}

// Whole cycles: the first that begins at trips_from or above. Infinity: all.
double Breaker::Load::cycles_borne_from(double warmth) const {
    if (warmth >= trips_from_) return 0;
    if (gain_ == 1) return rise_ > 0 ? std::ceil((trips_from_ - warmth) / rise_) : INFINITY;
    const double settled = rise_ / (1 - gain_);
    if (settled <= trips_from_) return INFINITY;
    if (gain_ <= 0) return 1;  // all warmth is gone by the cycle's end
    return std::ceil(portable_log((settled - trips_from_) / (settled - warmth)) / log_gain_);
}

void Breaker::carry(const Load& load, Duration time) {
    if (time <= Duration{} || load.cycle_ <= Duration{}) return;
    const auto whole = real(time / load.cycle_);
    warmth_ = std::min(1.0, load.after(warmth_, whole));
    Duration left = time % load.cycle_;
    for (const Load::Level& level : load.levels_) {
        if (left <= Duration{}) return;
        if (left >= level.lasts) {
            warmth_ = level.after(warmth_);
        } else if (level.gained > 0) {
            warmth_ += seconds(left) / level.trip_seconds;
        } else {
            warmth_ *= decayed(-seconds(left) / curve_.cooling_seconds());
        }
        warmth_ = std::min(1.0, warmth_);
        left -= level.lasts;
    }
}

std::optional<Duration> Breaker::until_trip(const Load& load) const {
    const double borne = load.cycles_borne_from(warmth_);
    const double cycle = seconds(load.cycle_);
    constexpr double seconds_max = 9e9;  // the campaign clock's end
    if (!(borne * cycle < seconds_max)) return std::nullopt;
    // The logarithm may be off by one cycle: look from the one before.
    double cycles = std::max(0.0, borne - 1);
    double warmth = load.after(warmth_, cycles);
    for (int round = 0; round < 3; ++round, ++cycles) {
        double span = 0;
        for (const Load::Level& level : load.levels_) {
            const double end = level.after(warmth);
            if (level.gained > 0 && end >= 1) {
                const double rest = (1 - warmth) * level.trip_seconds;
                return from_seconds(cycles * cycle + span + std::max(0.0, rest));
            }
            warmth = end;
            span += seconds(level.lasts);
        }
    }
    return from_seconds(borne * cycle);
}

}  // namespace railyard
