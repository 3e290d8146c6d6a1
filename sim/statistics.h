#pragma once
// Sample statistics with Student-t intervals.

#include <cstdint>
#include <span>
#include <vector>

namespace railyard {

struct Interval {
    double low = 0;
    double high = 0;
    double half_width() const { return (high - low) / 2; }
    bool contains(double x) const { return low <= x && x <= high; }
};

struct Summary {
    std::size_t count = 0;
    double mean = 0;
    double deviation = 0;  // sample standard deviation; 0 with one value
    Interval ci95;  // of the mean; [mean, mean] when all values are equal, infinite with one value
};

// Quantile p of Student's t with `degrees` > 0 degrees of freedom.
double student_t_quantile(double p, double degrees);

// The expected largest of n >= 1 independent standard normal values, within 1e-4, from IEEE basic
// operations only.
double expected_max_normal(std::int64_t n);

// Two-pass, in the order given: the same bits for the same values.
Summary summarise(std::span<const double> values);

// Summary of a[i] - b[i]: two designs run on the same random numbers. Sizes must agree.
Summary summarise_paired(std::span<const double> a, std::span<const double> b);

// Ratio of two sums, sum(a) / sum(b), with the interval of its linearisation. Not a number when sum(b) is
// zero.
Summary summarise_ratio(std::span<const double> a, std::span<const double> b);

}  // namespace railyard
