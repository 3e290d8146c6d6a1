#include "sim/statistics.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "sim/rng.h"

using namespace railyard;

TEST_CASE("Student's t quantiles are those of the tables") {
    CHECK(student_t_quantile(0.975, 1) == doctest::Approx(12.7062047));
    CHECK(student_t_quantile(0.975, 9) == doctest::Approx(2.2621572));
    CHECK(student_t_quantile(0.975, 1e6) == doctest::Approx(1.9599664).epsilon(1e-5));
}

TEST_CASE("a small sample has the interval of the book") {
    const std::array<double, 4> values{1, 2, 3, 4};
    const Summary s = summarise(values);
    CHECK(s.mean == 2.5);
    CHECK(s.deviation == doctest::Approx(1.2909944));
    CHECK(s.ci95.half_width() == doctest::Approx(3.1824463 * 1.2909944 / 2));
}

TEST_CASE("equal values have their value as mean, exactly, and no width") {
    const std::array<double, 3> values{0.1, 0.1, 0.1};
    const Summary s = summarise(values);
    CHECK(s.mean == 0.1);
    CHECK(s.ci95.low == 0.1);
    CHECK(s.ci95.high == 0.1);
}

TEST_CASE("one value has no interval") {
    const std::array<double, 1> values{7};
    CHECK(std::isinf(summarise(values).ci95.high));
}

TEST_CASE("the 95 % interval covers the mean 95 % of the time") {
    int covered = 0;
    constexpr int trials = 4000;
    RandomStream stream(11, 0, "coverage");
    for (int t = 0; t < trials; ++t) {
        std::array<double, 10> values;
        for (double& v : values) v = stream.normal();
        covered += summarise(values).ci95.contains(0) ? 1 : 0;
    }
    // Four binomial standard errors.
    CHECK(std::abs(covered / double{trials} - 0.95) < 4 * std::sqrt(0.95 * 0.05 / trials));
}

TEST_CASE(
    "values that share a draw cover the mean over all draws; taken as independent they don't") {
    constexpr int trials = 2000;
    constexpr std::size_t draws = 8;
    for (const double own : {0.0, 0.3, 3.0}) {
        CAPTURE(own);
        int shared = 0;
        int naive = 0;
        for (int t = 0; t < trials; ++t) {
            RandomStream stream(13, static_cast<std::uint64_t>(t), "draws");
            std::array<double, draws> luck;
            for (double& v : luck) v = stream.normal();
            std::array<double, 42> values;  // some draws have one value more
            for (std::size_t i = 0; i < values.size(); ++i) {
                values[i] = luck[i % draws] + own * stream.normal();
            }
            shared += summarise(values, dealt_over(values.size(), draws)).ci95.contains(0) ? 1 : 0;
            naive += summarise(values).ci95.contains(0) ? 1 : 0;
        }
        CHECK(shared / double{trials} > 0.935);
        CHECK(shared / double{trials} < 0.97);
        if (own < 1) CHECK(naive / double{trials} < 0.7);
    }
}

TEST_CASE("values with a draw each are as if nothing were shared") {
    const std::array<double, 5> values{1, 2, 4, 8, 16};
    const Summary alone = summarise(values);
    const Summary each = summarise(values, dealt_over(5, 8));
    CHECK(each.ci95.low == doctest::Approx(alone.ci95.low));
    CHECK(each.ci95.high == doctest::Approx(alone.ci95.high));
    CHECK(std::isinf(summarise(values, dealt_over(5, 1)).ci95.high));
}

TEST_CASE("pairing removes what both have in common") {
    RandomStream stream(12, 0, "pairs");
    std::array<double, 20> a, b;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double luck = 100 * stream.normal();
        a[i] = luck + 1 + 0.1 * stream.normal();
        b[i] = luck;
    }
    const Summary difference = summarise_paired(a, b);
    CHECK(difference.ci95.contains(1));
    CHECK(difference.ci95.half_width() < 0.1);
}

TEST_CASE("the correlation of pairs is Pearson's") {
    const std::vector<double> a = {1, 2, 3, 4};
    CHECK(correlation(a, std::vector<double>{2, 4, 6, 8}) == doctest::Approx(1));
    CHECK(correlation(a, std::vector<double>{4, 3, 2, 1}) == doctest::Approx(-1));
    CHECK(correlation(a, std::vector<double>{1, 3, 2, 4}) == doctest::Approx(0.8));
    CHECK(correlation(a, std::vector<double>{5, 5, 5, 5}) == 0);
    CHECK(correlation({}, {}) == 0);
}

TEST_CASE("the expected largest of n normal values is the integral's") {
    CHECK(expected_max_normal(1) == doctest::Approx(0).epsilon(1e-4));
    CHECK(expected_max_normal(2) == doctest::Approx(0.5641896).epsilon(1e-5));  // 1 / sqrt(pi)
    CHECK(expected_max_normal(3) == doctest::Approx(0.8462844).epsilon(1e-5));
    CHECK(expected_max_normal(512) == doctest::Approx(3.0439032).epsilon(1e-5));
    CHECK(expected_max_normal(4096) == doctest::Approx(3.6260822).epsilon(1e-5));
}
