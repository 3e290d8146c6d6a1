#include "sim/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "sim/check.h"

namespace railyard {

std::string_view verdict_name(Verdict verdict) {
    constexpr std::string_view names[] = {"a", "b", "equal", "undecided"};
    return names[static_cast<std::size_t>(verdict)];
}

std::size_t draws_of_pairs(std::size_t a, std::size_t b) {
    return std::gcd(a, b);  // of 0 and n: n
}

double corrected_confidence(double confidence, std::int64_t comparisons) {
    RY_CHECK(comparisons >= 1);
    return 1 - (1 - confidence) / static_cast<double>(comparisons);
}

namespace {

// The least number of pairs whose interval leaves out zero with this power, if the truth is as seen.
std::optional<std::int64_t> pairs_needed(double difference, double deviation, double confidence) {
    constexpr double power = 0.8;
    constexpr std::int64_t pairs_max = 1'000'000'000;
    const auto enough = [&](std::int64_t pairs) {
        const double n = static_cast<double>(pairs);
        const double quantiles =
            student_t_quantile(1 - (1 - confidence) / 2, n - 1) + student_t_quantile(power, n - 1);
        return quantiles * deviation <= std::abs(difference) * std::sqrt(n);
    };
    if (!enough(pairs_max)) return std::nullopt;
    std::int64_t low = 1;  // not enough, or not tried
    std::int64_t high = 2;
    while (!enough(high)) {
        low = high;
        high *= 2;
    }
    while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        (enough(middle) ? high : low) = middle;
    }
    return high;
}

}  // namespace

PairedComparison compare_paired(std::span<const double> all_a, std::span<const double> all_b,
                                Better better, double confidence, SharedLuck all_luck) {
    RY_CHECK(all_a.size() == all_b.size());
    std::vector<double> a;
    std::vector<double> b;
    std::vector<std::size_t> luck;
    for (std::size_t i = 0; i < all_a.size(); ++i) {
        if (std::isnan(all_a[i]) || std::isnan(all_b[i])) continue;
        a.push_back(all_a[i]);
        b.push_back(all_b[i]);
        if (!all_luck.empty()) luck.push_back(all_luck[i]);
    }
    const Summary sa = summarise(a);
    const Summary sb = summarise(b);
    const Summary difference = summarise_paired(b, a, luck);
    PairedComparison out;
    out.pairs = a.size();
    out.mean_a = sa.mean;
    out.mean_b = sb.mean;
    out.difference = difference.mean;
    out.interval = mean_interval(difference, confidence);
    out.confidence = confidence;
    out.correlation = correlation(a, b);
    const double apart = sa.deviation * sa.deviation + sb.deviation * sb.deviation;
    if (apart > 0) out.unpaired_effort = apart / (difference.deviation * difference.deviation);
    if (a.empty()) {
        constexpr double infinity = std::numeric_limits<double>::infinity();
        out.mean_a = out.mean_b = out.difference = std::numeric_limits<double>::quiet_NaN();
        out.interval = {-infinity, infinity};
        return out;
    }
    if (std::equal(a.begin(), a.end(), b.begin())) {
        out.verdict = Verdict::equal;
    } else if (!out.interval.contains(0)) {
        const bool second = (out.difference > 0) == (better == Better::higher);
        out.verdict = second ? Verdict::second : Verdict::first;
    } else if (out.pairs > 1 && out.difference != 0) {
        out.pairs_to_settle = pairs_needed(out.difference, difference.spread, confidence);
        // What was seen can be lucky enough to need fewer than there are.
        if (out.pairs_to_settle) {
            out.pairs_to_settle =
                std::max(*out.pairs_to_settle, static_cast<std::int64_t>(out.pairs) + 1);
        }
    }
    return out;
}

std::vector<double> ratio_values(std::span<const double> sums, std::span<const double> counts) {
    RY_CHECK(sums.size() == counts.size());
    const double mean_count = summarise(counts).mean;
    const double ratio = summarise(sums).mean / mean_count;
    std::vector<double> out(sums.size(), std::numeric_limits<double>::quiet_NaN());
    if (!(mean_count > 0)) return out;
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = ratio + (sums[i] - ratio * counts[i]) / mean_count;
    }
    return out;
}

std::vector<double> paired_values(const MetricTable::Column& replicas) {
    return replicas.plain ? replicas.values : ratio_values(replicas.values, replicas.counts);
}

}  // namespace railyard
