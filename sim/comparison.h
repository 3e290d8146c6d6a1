#pragma once
// Two designs that ran on the same random numbers, replica by replica: which is better, how sure is that,
// and how many more replicas would settle it. Pure functions of the values.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/metrics.h"

namespace railyard {

enum class Better : std::uint8_t { higher, lower };
constexpr const char* better_name(Better better) {
    return better == Better::higher ? "higher" : "lower";
}
constexpr bool better_than(double a, double b, Better better) {
    return better == Better::higher ? a > b : a < b;
}

// equal: every replica gave both the same value, so that no number of them will tell the two apart.
enum class Verdict : std::uint8_t { first, second, equal, undecided };
std::string_view verdict_name(Verdict verdict);  // "a", "b", "equal", "undecided"

struct PairedComparison {
    std::size_t pairs = 0;
    double mean_a = 0;
    double mean_b = 0;
    double difference = 0;  // b - a
    Interval interval;  // of the difference, Student's t at `confidence`; infinite with one pair
    double confidence = 0;  // of this interval, corrected for how many there are
    double correlation =
        0;  // of a and b over the pairs: how much they have in common; 0 when one is constant
    // Replicas that two designs on random numbers of their own take for the same interval, for each of these
    // pairs: (var a + var b) / var (b - a). Infinite when the difference never varies, 1 when nothing does.
    double unpaired_effort = 1;
    Verdict verdict = Verdict::undecided;
    // Pairs in all that settle an undecided one: if the true difference and spread are those seen, the
    // interval then leaves out zero with a probability of 80 %. None: settled, or a billion would not do.
    std::optional<std::int64_t> pairs_to_settle;
};

// a[i] and b[i] come from the same random numbers. Sizes must agree; pairs where one is not a number are
// left out. The verdict goes to the better mean when the interval leaves out zero.
PairedComparison compare_paired(std::span<const double> a, std::span<const double> b, Better better,
                                double confidence = 0.95, SharedLuck luck = {});

// Over how many draws pairs are dealt out when the replicas of either design are over so many; 0: over none.
std::size_t draws_of_pairs(std::size_t a, std::size_t b);

// Bonferroni: the confidence that each of `comparisons` needs for all of them to hold together at
// `confidence`, however they depend on each other (on common random numbers they do).
double corrected_confidence(double confidence, std::int64_t comparisons);

// Values with the mean sum(sums) / sum(counts) and the spread of that ratio's linearisation, so that ratios
// can be compared in pairs like plain values. All not a number when nothing was counted. Sizes must agree.
std::vector<double> ratio_values(std::span<const double> sums, std::span<const double> counts);

// One metric over replicas, ready to be paired: plain values, or those of a ratio.
std::vector<double> paired_values(const MetricTable::Column& replicas);

// Two of several designs, by their numbers, in one metric.
struct MetricComparison {
    std::string metric;
    Better better = Better::higher;
    std::size_t a = 0;
    std::size_t b = 0;
    PairedComparison pairs;
};

}  // namespace railyard
