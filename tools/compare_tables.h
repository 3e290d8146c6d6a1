#pragma once
// What 'railyard compare' prints.

#include "tools/compared_arms.h"

namespace railyard {

struct Comparison {
    std::vector<ComparedArm> arms;
    std::string metric;  // that decides
    Better better = Better::higher;
    double confidence = 0.95;  // of each interval on `metric`, so that all hold together at 95 %
    std::vector<MetricComparison> metrics;  // of all pairs of arms, pair by pair

    // On the metric that decides, one for each pair.
    std::vector<MetricComparison> verdicts() const;
    // The arm that beats every other; none: undecided, or some are equal.
    std::optional<std::size_t> winner() const;
    // Arms that no other beats.
    std::vector<std::size_t> unbeaten() const;
};

void print_comparison(const Comparison& comparison);
std::string comparison_json(const Comparison& comparison, const std::string& version);

}  // namespace railyard
