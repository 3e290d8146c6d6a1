#include "models/failure/hazard.h"

#include <algorithm>

#include "sim/check.h"

namespace railyard {

// Lanczos with g = 7 and nine terms.
double portable_gamma(double x) {
    RY_CHECK(x > 0);
    constexpr double g = 7;
    constexpr double terms[] = {0.99999999999980993,  676.5203681218851,     -1259.1392167224028,
                                771.32342877765313,   -176.61502916214059,   12.507343278686905,
                                -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7};
    constexpr double root_two_pi = 2.5066282746310002;
    const double z = x - 1;
    double sum = terms[0];
    for (int i = 1; i < 9; ++i) sum += terms[i] / (z + i);
    const double t = z + g + 0.5;
    return root_two_pi * portable_exp((z + 0.5) * portable_log(t) - t) * sum;
}

Duration Hazard::rest_of_life(RandomStream& stream, Duration age) const {
    RY_CHECK(shape >= hazard_shape_min && shape <= hazard_shape_max);
    const double drawn = stream.exponential();
    if (rate.per_second <= 0) return Duration::max();
    const double mean = 1 / rate.per_second;
    double left = mean * drawn;
    if (shape != 1) {
        const double scale = mean / portable_gamma(1 + 1 / shape);
        const double old = seconds(age) / scale;
        const double until = portable_power(old, shape) + drawn;
        left = scale * (portable_power(until, 1 / shape) - old);
    }
    if (left >= seconds(time_max)) return Duration::max();
    return from_seconds(std::max(0.0, left));
}

}  // namespace railyard
