#pragma once
// What 'railyard compare' prints.

#include "tools/study/arms.h"
#include "tools/study/verdict_estimates.h"

namespace railyard {

struct Comparison {
    std::vector<ComparedArm> arms;
    DecidingMetric decided_by;
    double confidence = 0.95;  // of each of its intervals, so that all hold together at 95 %
    std::vector<MetricComparison> metrics;      // of all pairs of arms, pair by pair
    std::optional<VerdictEstimates> estimates;  // between the front runners

    // On that metric, one for each pair.
    std::vector<MetricComparison> verdicts() const;
    // The arm that beats every other; none: undecided, or some are equal.
    std::optional<std::size_t> winner() const;
    // The two best by their means, which the verdict is between.
    const MetricComparison& front_runners() const;
    // Arms that no other beats.
    std::vector<std::size_t> unbeaten() const;
};

void print_comparison(const Comparison& comparison);
std::string comparison_json(const Comparison& comparison, const std::string& version);

}  // namespace railyard
