#pragma once
// A breaker, or the limit of a PDU: what it may carry for ever, and how soon it trips on more. It sees the
// instantaneous sum of what is behind it.

#include <limits>
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
    class Load;

    Breaker(TripCurve curve, Watts rating) : curve_(std::move(curve)), rating_(rating) {}

    Watts rating() const { return rating_; }
    double warmth() const { return warmth_; }
    void reset() { warmth_ = 0; }
    // What a load does to this breaker, worked out once for all the times that it carries it.
    Load load(const PowerProfile& profile) const;
    // It has carried this for so long; warmth stops at 1.
    void carry(const Load& load, Duration time);
    // When it trips if this goes on; nullopt: never.
    std::optional<Duration> until_trip(const Load& load) const;

  private:
    TripCurve curve_;
    Watts rating_;
    double warmth_ = 0;
};

// A cycle that goes on and on. It takes warmth w to gain * w + rise, and on its way it is highest where
// `trips_from` says: from there on upwards at the cycle's start, it trips within the cycle.
class Breaker::Load {
  public:
    Load() = default;  // nothing, for ever

  private:
    friend class Breaker;
    struct Level {
        Duration lasts{};
        double trip_seconds = 0;  // from cold; infinite at the rating and below
        double kept = 1;          // of the warmth, over the whole level
        double gained = 0;

        double after(double warmth) const { return warmth * kept + gained; }
    };
    double after(double warmth, double cycles) const;
    double cycles_borne_from(double warmth) const;

    std::vector<Level> levels_;
    Duration cycle_{};
    double gain_ = 1;
    double log_gain_ = 0;
    double rise_ = 0;
    double trips_from_ = std::numeric_limits<double>::infinity();
};

}  // namespace railyard
