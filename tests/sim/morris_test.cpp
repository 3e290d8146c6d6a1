// Morris's screening, against functions whose answers are known.

#include "sim/morris.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace railyard;

TEST_CASE("Morris's effects of a linear function are its coefficients, with no spread") {
    RandomStream random(2, 0, "morris");
    const MorrisDesign design = morris_design(4, 6, random);
    std::vector<double> results;
    for (const auto& u : design.points) results.push_back(5 + 2 * u[0] - 3 * u[1] + 0.5 * u[3]);
    const auto effects = elementary_effects(design, results);
    const std::vector<double> coefficients = {2, -3, 0, 0.5};
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(effects[i].count == 6);
        CHECK(effects[i].mean == doctest::Approx(coefficients[i]));
        CHECK(effects[i].mean_absolute == doctest::Approx(std::abs(coefficients[i])));
        CHECK(effects[i].deviation < 1e-9);
    }
}

TEST_CASE("effects that cancel in the mean are seen in mu*, and as spread") {
    // (u - 1/2)^2 has effects of +-(2/3 - ...) that sum to zero over the grid.
    RandomStream random(2, 0, "morris");
    const MorrisDesign design = morris_design(2, 400, random);
    std::vector<double> results;
    for (const auto& u : design.points) results.push_back(4 * (u[0] - 0.5) * (u[0] - 0.5) + u[1]);
    const auto effects = elementary_effects(design, results);
    // Steps lead from 0 to 2/3 and from 1/3 to 1: effects -4/3 and +4/3, each half of the time.
    CHECK(std::abs(effects[0].mean) < 4 * (4.0 / 3) / 20);
    CHECK(effects[0].mean_absolute == doctest::Approx(4.0 / 3));
    CHECK(effects[0].deviation == doctest::Approx(4.0 / 3).epsilon(0.02));
    CHECK(effects[1].deviation < 1e-9);
}

TEST_CASE("points of a trajectory stay in the cube, and each input moves once") {
    RandomStream random(7, 0, "morris");
    const MorrisDesign design = morris_design(5, 30, random);
    CHECK(design.points.size() == 30 * 6);
    for (const auto& point : design.points) {
        for (const double x : point) CHECK((x >= 0 && x <= 1 + 1e-12));
    }
    std::vector<int> moves(6, 0);
    for (const std::size_t input : design.moved) ++moves[input];
    for (const int count : moves) CHECK(count == 30);
}

TEST_CASE("a design that is impossible takes two effects with it, not the table") {
    RandomStream random(7, 0, "morris");
    const MorrisDesign design = morris_design(3, 4, random);
    std::vector<double> results;
    for (const auto& u : design.points) results.push_back(u[0] + u[1] + u[2]);
    results[1] = std::nan("");
    const auto effects = elementary_effects(design, results);
    CHECK(effects[0].count + effects[1].count + effects[2].count == 10);
    for (const ElementaryEffects& e : effects) CHECK(e.mean == doctest::Approx(1));
}
