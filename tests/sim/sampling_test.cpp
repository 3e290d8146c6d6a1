// Designs of experiments, against what their definitions and the literature say.

#include "sim/sampling.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <set>

using namespace railyard;

TEST_CASE("a Latin hypercube has one point in each stratum of each axis") {
    for (const std::int64_t n : {1, 7, 100}) {
        const UnitPoints points = latin_hypercube(n, 5, 3);
        REQUIRE(points.size() == static_cast<std::size_t>(n));
        for (std::size_t axis = 0; axis < 5; ++axis) {
            std::set<int> strata;
            for (const auto& p : points)
                strata.insert(static_cast<int>(p[axis] * static_cast<double>(n)));
            CHECK(strata.size() == static_cast<std::size_t>(n));
            CHECK(*strata.begin() == 0);
            CHECK(*strata.rbegin() == n - 1);
        }
    }
}

TEST_CASE("a Latin hypercube's axes are shuffled apart, by seed") {
    const UnitPoints points = latin_hypercube(400, 2, 3);
    CHECK(points == latin_hypercube(400, 2, 3));
    CHECK(points != latin_hypercube(400, 2, 4));
    double covariance = 0;
    for (const auto& p : points) covariance += (p[0] - 0.5) * (p[1] - 0.5) / 400;
    CHECK(std::abs(covariance * 12) < 0.2);  // correlation; its standard error is 0.05
}

TEST_CASE("the Sobol sequence is Joe and Kuo's, from the first point") {
    // The first ten points in three dimensions that their program prints with new-joe-kuo-6.21201
    // (https://web.maths.unsw.edu.au/~fkuo/sobol/).
    const std::array<std::array<double, 3>, 10> published{{{0, 0, 0},
                                                           {0.5, 0.5, 0.5},
                                                           {0.75, 0.25, 0.25},
                                                           {0.25, 0.75, 0.75},
                                                           {0.375, 0.375, 0.625},
                                                           {0.875, 0.875, 0.125},
                                                           {0.625, 0.125, 0.875},
                                                           {0.125, 0.625, 0.375},
                                                           {0.1875, 0.3125, 0.9375},
                                                           {0.6875, 0.8125, 0.4375}}};
    const UnitPoints points = sobol_sequence(10, 3, 0);
    for (std::size_t i = 0; i < published.size(); ++i) {
        for (std::size_t axis = 0; axis < 3; ++axis) CHECK(points[i][axis] == published[i][axis]);
    }
}

TEST_CASE("a shifted Sobol sequence still has one point in each elementary interval") {
    for (const std::uint64_t seed : {0, 1, 2}) {
        const UnitPoints points = sobol_sequence(256, 8, seed);
        for (std::size_t axis = 0; axis < 8; ++axis) {
            std::set<int> intervals;
            for (const auto& p : points) intervals.insert(static_cast<int>(p[axis] * 256));
            CHECK(intervals.size() == 256);
        }
        // The first two axes together are a (0, m, 2)-net: 16 x 16 boxes with a point each.
        std::set<int> boxes;
        for (const auto& p : points) {
            boxes.insert(16 * static_cast<int>(p[0] * 16) + static_cast<int>(p[1] * 16));
        }
        CHECK(boxes.size() == 256);
    }
    CHECK(sobol_sequence(4, 2, 1) != sobol_sequence(4, 2, 2));
}
