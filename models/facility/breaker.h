#pragma once
// A breaker, or the limit of a PDU: what it may carry for ever, and how soon it trips on more. It sees the
// instantaneous sum of what is behind it.

#include <optional>
#include <vector>

#include "models/catalogue/catalogue.h"
#include "models/facility/power_profile.h"

namespace railyard {

// The inverse-time law: seconds to trip from cold at a constant multiple of the rating, straight lines
// between points in the logarithms of both.
class TripCurve {
  public:
    struct Point {
        double load = 0;  // of the rating, above 1
        double seconds = 0;
    };
    // At least two points, load upwards, time downwards.
    explicit TripCurve(std::vector<Point> points);

    // At or below 1 it never trips: infinity.
    double seconds_at(double load) const;
    // In which a breaker that has grown warm cools by a factor of e: as slowly as the slowest trip that the
    // curve has a point for.
    double cooling_seconds() const { return points_.front().seconds; }

  private:
    std::vector<Point> points_;
};

TripCurve read_trip_curve(Catalogue& catalogue);

// Warmth runs from 0, cold, to 1, where it trips:
//
//     load > 1:   d warmth / dt = 1 / seconds_at(load)
//     load <= 1:  d warmth / dt = - warmth / cooling_seconds
class Breaker {
  public:
    Breaker(TripCurve curve, Watts rating) : curve_(std::move(curve)), rating_(rating) {}

    Watts rating() const { return rating_; }
    double warmth() const { return warmth_; }
    void reset() { warmth_ = 0; }
    // What is behind it has drawn this for so long; warmth stops at 1.
    void carry(Watts load, Duration time);
    // The same, of a cycle that goes on for so long.
    void carry(const PowerProfile& load, Duration time);
    // When it trips if this goes on; nullopt: never.
    std::optional<Duration> until_trip(const PowerProfile& load) const;

  private:
    struct Cycle;
    Cycle cycle_of(const PowerProfile& load) const;
    double after(double warmth, Watts load, double seconds) const;

    TripCurve curve_;
    Watts rating_;
    double warmth_ = 0;
};

}  // namespace railyard
