#include "sim/statistics.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

#include "sim/check.h"

namespace railyard {

double student_t_quantile(double p, double degrees) {
    return boost::math::quantile(boost::math::students_t(degrees), p);
}

Summary summarise(std::span<const double> values) {
    Summary s;
    s.count = values.size();
    if (values.empty()) return s;
    // Around the first value, so that equal values have exactly that mean and no deviation.
    double sum = 0;
    for (const double v : values) sum += v - values[0];
    const double n = static_cast<double>(values.size());
    s.mean = values[0] + sum / n;
    if (values.size() == 1) {
        constexpr double infinity = std::numeric_limits<double>::infinity();
        s.ci95 = {-infinity, infinity};
        return s;
    }
    double squares = 0;
    for (const double v : values) squares += (v - s.mean) * (v - s.mean);
    s.deviation = std::sqrt(squares / (n - 1));
    const double half = student_t_quantile(0.975, n - 1) * s.deviation / std::sqrt(n);
    s.ci95 = {s.mean - half, s.mean + half};
    return s;
}

Summary summarise_paired(std::span<const double> a, std::span<const double> b) {
    RY_CHECK(a.size() == b.size());
    std::vector<double> differences(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) differences[i] = a[i] - b[i];
    return summarise(differences);
}

Summary summarise_ratio(std::span<const double> a, std::span<const double> b) {
    RY_CHECK(a.size() == b.size());
    const double n = static_cast<double>(a.size());
    const double mean_b = summarise(b).mean;
    const double ratio = summarise(a).mean / mean_b;
    // a - ratio b has mean zero; its spread over the mean of b is the ratio's.
    std::vector<double> residuals(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) residuals[i] = (a[i] - ratio * b[i]) / mean_b;
    Summary s = summarise(residuals);
    const double half = n > 1 ? s.ci95.half_width() : std::numeric_limits<double>::infinity();
    s.mean = mean_b == 0 ? std::numeric_limits<double>::quiet_NaN() : ratio;
    s.ci95 = {s.mean - half, s.mean + half};
    return s;
}

}  // namespace railyard
