#pragma once
// How long a part lives.

#include "sim/rng.h"

namespace railyard {

// Weibull: the exponential law at shape 1, infant mortality below, wear-out above.
struct Hazard {
    Rate rate;  // one over the mean life of a new part; 0: it lives for ever
    double shape = 1;

    // What is left to a part of this age, as drawn: one draw. Duration::max() when it outlives the clock.
    Duration rest_of_life(RandomStream& stream, Duration age) const;
};

constexpr double hazard_shape_min = 0.2;
constexpr double hazard_shape_max = 10;

// Gamma(x) for 1 <= x <= 6, to ten digits, from IEEE basic operations only.
double portable_gamma(double x);

}  // namespace railyard
