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
    // What the interval is made of: the deviation that as many independent values had whose mean is as
    // uncertain, and the degrees of freedom. Of independent values: `deviation`, and count - 1.
    double spread = 0;
    double degrees = 0;
};

// Which values share luck: those with the same number. None: each has its own.
using SharedLuck = std::span<const std::size_t>;
// The draw of each value, when values are dealt out over draws in turn; 0 draws: each has its own.
std::vector<std::size_t> dealt_over(std::size_t values, std::size_t draws);

// Quantile p of Student's t with `degrees` > 0 degrees of freedom.
double student_t_quantile(double p, double degrees);

// Quantile p of values that are sorted, at least one: between two neighbours on the line that joins them.
double sorted_quantile(std::span<const double> sorted, double p);

// Places among n sorted values, at least one: the one that is nearest to a share p, 0 to 1, of the way from
// the first to the last; and, with p < 1, the first that has a share p of them before it.
std::size_t nearest_place(double p, std::size_t n);
std::size_t place_after(double p, std::size_t n);

// The expected largest of n >= 1 independent standard normal values, within 1e-4, from IEEE basic
// operations only.
double expected_max_normal(std::int64_t n);

// The mean that summarise() has, to the bit, of values that come one by one and are not kept.
class RunningMean {
  public:
    void add(double value) {
        if (count_ == 0) first_ = value;
        off_first_ += value - first_;
        ++count_;
    }
    double mean() const {
        return count_ == 0 ? 0 : first_ + off_first_ / static_cast<double>(count_);
    }

  private:
    double first_ = 0;
    double off_first_ = 0;
    std::int64_t count_ = 0;
};

// Two-pass, in the order given: the same bits for the same values. Values that share luck are one witness
// together, however many they are: the interval has the spread among the witnesses and their degrees of
// freedom (cluster-robust: models/README.md), and is infinite with one.
Summary summarise(std::span<const double> values, SharedLuck luck = {});

// Summary of a[i] - b[i]: two designs run on the same random numbers. Sizes must agree.
Summary summarise_paired(std::span<const double> a, std::span<const double> b,
                         SharedLuck luck = {});

// Ratio of two sums, sum(a) / sum(b), with the interval of its linearisation. Not a number when sum(b) is
// zero.
Summary summarise_ratio(std::span<const double> a, std::span<const double> b, SharedLuck luck = {});

// Pearson's, over pairs. Sizes must agree; 0 when either is constant.
double correlation(std::span<const double> a, std::span<const double> b);

// The interval of the mean that `s` summarises, Student's t at any confidence in (0, 1).
Interval mean_interval(const Summary& s, double confidence);

}  // namespace railyard
