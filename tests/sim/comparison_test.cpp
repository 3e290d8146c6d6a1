// Comparisons in pairs, against toys whose answer is known.

#include "sim/comparison.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>

#include "sim/rng.h"

using namespace railyard;

namespace {

struct Toy {
    std::vector<double> a;
    std::vector<double> b;
};

// Both have the same luck, far larger than their difference and their own noise.
Toy toy(std::size_t pairs, double difference, std::uint64_t trial) {
    RandomStream random(21, trial, "toy");
    Toy out;
    for (std::size_t i = 0; i < pairs; ++i) {
        const double luck = 50 * random.exponential();
        out.a.push_back(luck + random.normal());
        out.b.push_back(luck + difference + random.normal());
    }
    return out;
}

// Within four standard errors of a binomial share.
void check_share(int hits, int trials, double expected) {
    const double share = hits / static_cast<double>(trials);
    CHECK(std::abs(share - expected) < 4 * std::sqrt(expected * (1 - expected) / trials));
}

}  // namespace

TEST_CASE("paired intervals cover the true difference 95 % of the time") {
    constexpr int trials = 1000;
    for (const std::size_t pairs : {3, 10, 40}) {
        int covered = 0;
        for (int t = 0; t < trials; ++t) {
            const Toy x = toy(pairs, 0.5, static_cast<std::uint64_t>(t));
            covered += compare_paired(x.a, x.b, Better::higher).interval.contains(0.5) ? 1 : 0;
        }
        check_share(covered, trials, 0.95);
    }
}

TEST_CASE("corrected intervals all cover their differences 95 % of the time, or more") {
    constexpr int trials = 1000;
    constexpr int arms = 4;  // against one baseline, with which all of them share its noise
    int all_covered = 0;
    for (int t = 0; t < trials; ++t) {
        RandomStream random(22, static_cast<std::uint64_t>(t), "arms");
        std::array<std::vector<double>, arms + 1> values;
        for (int i = 0; i < 12; ++i) {
            for (auto& v : values) v.push_back(random.normal());
        }
        bool covered = true;
        for (int arm = 1; arm <= arms; ++arm) {
            covered = covered && compare_paired(values[0], values[static_cast<std::size_t>(arm)],
                                                Better::higher, corrected_confidence(0.95, arms))
                                     .interval.contains(0);
        }
        all_covered += covered ? 1 : 0;
    }
    CHECK(all_covered / double{trials} > 0.95 - 4 * std::sqrt(0.95 * 0.05 / trials));
    CHECK(all_covered / double{trials} < 0.98);  // dependent, so above 95 %, but not wastefully
}

TEST_CASE(
    "an equal pair is called different 5 % of the time, and a different one wrongly hardly ever") {
    constexpr int trials = 1000;
    int called = 0;
    int wrong = 0;
    for (int t = 0; t < trials; ++t) {
        const Toy none = toy(8, 0, static_cast<std::uint64_t>(t));
        called += compare_paired(none.a, none.b, Better::higher).verdict != Verdict::undecided;
        const Toy small = toy(8, 1, static_cast<std::uint64_t>(t));
        wrong += compare_paired(small.a, small.b, Better::higher).verdict == Verdict::first;
    }
    check_share(called, trials, 0.05);
    CHECK(wrong < 5);
}

TEST_CASE("the verdict follows the direction that is better") {
    const std::array<double, 3> a{1, 2, 3};
    const std::array<double, 3> b{2, 3.1, 4};
    CHECK(compare_paired(a, b, Better::higher).verdict == Verdict::second);
    CHECK(compare_paired(a, b, Better::lower).verdict == Verdict::first);
    CHECK(compare_paired(b, a, Better::higher).verdict == Verdict::first);
    CHECK(compare_paired(b, a, Better::higher).difference == doctest::Approx(-3.1 / 3));
    CHECK(compare_paired(a, a, Better::higher).verdict == Verdict::equal);
    CHECK_FALSE(compare_paired(a, a, Better::higher).pairs_to_settle);
}

TEST_CASE("one pair and none leave everything open") {
    const std::array<double, 1> a{1};
    const std::array<double, 1> b{2};
    const PairedComparison one = compare_paired(a, b, Better::higher);
    CHECK(one.verdict == Verdict::undecided);
    CHECK(std::isinf(one.interval.high));
    CHECK_FALSE(one.pairs_to_settle);
    const std::array<double, 1> nothing{std::numeric_limits<double>::quiet_NaN()};
    const PairedComparison none = compare_paired(nothing, b, Better::higher);
    CHECK(none.pairs == 0);
    CHECK(none.verdict == Verdict::undecided);
    CHECK(std::isnan(none.difference));
}

TEST_CASE("as many pairs as are said to settle it do so four times of five") {
    // The truth itself as the pilot: difference 0.5, spread sqrt(2).
    std::vector<double> a;
    std::vector<double> b;
    for (int i = 0; i < 10; ++i) {
        a.push_back(0);
        b.push_back(0.5 + std::sqrt(2.0) * (i % 2 == 0 ? 1 : -1) * std::sqrt(0.9));
    }
    const PairedComparison pilot = compare_paired(a, b, Better::higher);
    REQUIRE(pilot.verdict == Verdict::undecided);
    REQUIRE(pilot.pairs_to_settle);
    // ((1.96 + 0.84) sqrt(2) / 0.5)^2 = 62.8, and a little more for Student's t.
    CHECK(*pilot.pairs_to_settle > 62);
    CHECK(*pilot.pairs_to_settle < 67);
    constexpr int trials = 1000;
    int settled = 0;
    for (int t = 0; t < trials; ++t) {
        const Toy x = toy(static_cast<std::size_t>(*pilot.pairs_to_settle), 0.5,
                          static_cast<std::uint64_t>(t));
        settled += compare_paired(x.a, x.b, Better::higher).verdict == Verdict::second;
    }
    check_share(settled, trials, 0.8);
}

TEST_CASE(
    "ratios are compared by all sums over all counts, with the interval of the ratio itself") {
    const std::array<double, 4> sums{10, 0, 31, 19};
    const std::array<double, 4> counts{1, 0, 3, 2};
    const std::vector<double> values = ratio_values(sums, counts);
    const Summary s = summarise(values);
    CHECK(s.mean == doctest::Approx(60.0 / 6));
    const Summary direct = summarise_ratio(sums, counts);
    CHECK(s.ci95.high == doctest::Approx(direct.ci95.high));
    const std::array<double, 2> none{0, 0};
    CHECK(std::isnan(ratio_values(none, none)[0]));
    MetricTable table;
    table.add(std::array{mean_metric("x", 10, 1)});
    table.add(std::array{mean_metric("x", 31, 3)});
    CHECK(summarise(paired_values(*table.find("x"))).mean == doctest::Approx(41.0 / 4));
}

TEST_CASE("what the two have in common is said") {
    const Toy x = toy(50, 0, 3);
    CHECK(compare_paired(x.a, x.b, Better::higher).correlation > 0.99);
    const std::vector<double> constant(50, 1.0);
    CHECK(compare_paired(x.a, constant, Better::higher).correlation == 0);
    CHECK(compare_paired(x.a, constant, Better::higher).unpaired_effort == doctest::Approx(1));
    CHECK(compare_paired(constant, constant, Better::higher).unpaired_effort == 1);
    // Luck of variance 2,500 in both, noise of variance 1 in each: (2 x 2,501) / 2.
    const Toy many = toy(20'000, 0, 4);
    CHECK(compare_paired(many.a, many.b, Better::higher).unpaired_effort ==
          doctest::Approx(2501).epsilon(0.1));
    // Wholly correlated, and the pairing is worth next to nothing: b varies a hundred times as much.
    std::vector<double> larger;
    for (const double v : x.a) larger.push_back(100 * v);
    CHECK(compare_paired(x.a, larger, Better::higher).correlation == doctest::Approx(1));
    CHECK(compare_paired(x.a, larger, Better::higher).unpaired_effort ==
          doctest::Approx(10'001.0 / (99 * 99)));
}
