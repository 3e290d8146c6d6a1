#include "sim/statistics.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <map>

#include "sim/check.h"
#include "sim/rng.h"

namespace railyard {

double student_t_quantile(double p, double degrees) {
    // Many summaries of as many values follow each other, and the quantile takes longer than all the rest.
    struct Last {
        double p = 0;
        double degrees = 0;
        double quantile = 0;
    };
    thread_local Last last;
    if (last.p != p || last.degrees != degrees) {
        last = {p, degrees, boost::math::quantile(boost::math::students_t(degrees), p)};
    }
    return last.quantile;
}

std::vector<std::size_t> dealt_over(std::size_t values, std::size_t draws) {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; draws > 0 && i < values; ++i) out.push_back(i % draws);
    return out;
}

namespace {

// Sets spread and degrees from what each witness is off the mean, all its values together.
void judge_witnesses(std::span<const double> values, SharedLuck luck, Summary& s) {
    RY_CHECK(luck.size() == values.size());
    std::map<std::size_t, double> off;
    for (std::size_t i = 0; i < values.size(); ++i) off[luck[i]] += values[i] - s.mean;
    const double witnesses = real(off.size());
    s.degrees = witnesses - 1;
    if (s.degrees == 0) return;
    double squares = 0;
    for (const auto& [number, sum] : off) squares += sum * sum;
    s.spread = std::sqrt(witnesses / s.degrees * squares / real(s.count));
}

}  // namespace

Interval mean_interval(const Summary& s, double confidence) {
    RY_CHECK(confidence > 0 && confidence < 1);
    if (s.count < 1) return s.ci95;
    if (s.degrees <= 0) {
        constexpr double infinity = std::numeric_limits<double>::infinity();
        return {-infinity, infinity};
    }
    const double half = student_t_quantile(1 - (1 - confidence) / 2, s.degrees) * s.spread /
                        std::sqrt(real(s.count));
    return {s.mean - half, s.mean + half};
}

Summary summarise(std::span<const double> values, SharedLuck luck) {
    Summary s;
    s.count = values.size();
    if (values.empty()) return s;
    // Around the first value, so that equal values have exactly that mean and no deviation.
    double sum = 0;
    for (const double v : values) sum += v - values[0];
    const double n = real(values.size());
    s.mean = values[0] + sum / n;
    double squares = 0;
    for (const double v : values) squares += (v - s.mean) * (v - s.mean);
    if (values.size() > 1) s.deviation = std::sqrt(squares / (n - 1));
    if (luck.empty()) {
        s.spread = s.deviation;
        s.degrees = n - 1;
    } else {
        judge_witnesses(values, luck, s);
    }
    s.ci95 = mean_interval(s, 0.95);
    return s;
}

double correlation(std::span<const double> a, std::span<const double> b) {
    RY_CHECK(a.size() == b.size());
    const Summary sa = summarise(a);
    const Summary sb = summarise(b);
    if (a.size() < 2 || sa.deviation == 0 || sb.deviation == 0) return 0;
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - sa.mean) * (b[i] - sb.mean);
    return sum / (real(a.size() - 1) * sa.deviation * sb.deviation);
}

double sorted_quantile(std::span<const double> sorted, double p) {
    RY_CHECK(!sorted.empty() && p >= 0 && p <= 1);
    const double at = p * real(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    if (sorted[below] == sorted[above]) return sorted[below];  // also when both are infinite
    return sorted[below] + (at - real(below)) * (sorted[above] - sorted[below]);
}

std::size_t nearest_place(double p, std::size_t n) {
    RY_CHECK(n > 0 && p >= 0 && p <= 1);
    return static_cast<std::size_t>(std::llround(p * real(n - 1)));
}

std::size_t place_after(double p, std::size_t n) {
    RY_CHECK(n > 0 && p >= 0 && p < 1);
    return static_cast<std::size_t>(p * real(n));
}

double expected_max_normal(std::int64_t n) {
    RY_CHECK(n >= 1);
    // E[max] is the integral of [x > 0] - F(x)^n, with F summed up by Simpson's rule on the way and the
    // density continued from point to point: f(x + d) = f(x) exp(-d x - d^2 / 2).
    constexpr double from = -8;
    constexpr double half_step = 1.0 / 16;
    constexpr int steps = 128;  // to +8
    constexpr double two_pi = 6.283185307179586;
    static const double curve = portable_exp(-half_step * half_step);
    double density = portable_exp(-from * from / 2) / std::sqrt(two_pi);
    double growth = portable_exp(-half_step * from - half_step * half_step / 2);
    const auto next_density = [&] {
        density *= growth;
        growth *= curve;
        return density;
    };
    double below = 0;  // F at the current point
    double integral = 0;
    for (int i = 1; i <= steps; ++i) {
        const double left = density;
        const double middle = next_density();
        below += 2 * half_step / 6 * (left + 4 * middle + next_density());
        double power = 1;
        double square = std::min(below, 1.0);
        for (std::int64_t bits = n; bits > 0; bits >>= 1) {
            if ((bits & 1) != 0) power *= square;
            square *= square;
        }
        const int distance = i - steps / 2;  // from zero, where half of the jump counts
        integral += (distance > 0 ? 1.0 : distance == 0 ? 0.5 : 0.0) - power;
    }
    // The trapezoid's far end, where the integrand is zero, has half a weight; nothing to take off.
    return 2 * half_step * integral;
}

Summary summarise_paired(std::span<const double> a, std::span<const double> b, SharedLuck luck) {
    RY_CHECK(a.size() == b.size());
    std::vector<double> differences(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) differences[i] = a[i] - b[i];
    return summarise(differences, luck);
}

Summary summarise_ratio(std::span<const double> a, std::span<const double> b, SharedLuck luck) {
    RY_CHECK(a.size() == b.size());
    const double mean_b = summarise(b).mean;
    const double ratio = summarise(a).mean / mean_b;
    // a - ratio b has mean zero; its spread over the mean of b is the ratio's.
    std::vector<double> residuals(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) residuals[i] = (a[i] - ratio * b[i]) / mean_b;
    Summary s = summarise(residuals, luck);
    const double half =
        s.degrees > 0 ? s.ci95.half_width() : std::numeric_limits<double>::infinity();
    s.mean = mean_b == 0 ? std::numeric_limits<double>::quiet_NaN() : ratio;
    s.ci95 = {s.mean - half, s.mean + half};
    return s;
}

}  // namespace railyard
