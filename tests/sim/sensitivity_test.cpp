// Morris's screening and first-order indices, against functions whose answers are published.

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include "sim/first_order.h"
#include "sim/morris.h"
#include "sim/sampling.h"

using namespace railyard;

namespace {

// Ishigami and Homma (1990), a = 7, b = 0.1, on [-pi, pi]^3. Saltelli et al. (2000) give S1 = 0.314, S2 =
// 0.442, S3 = 0; interactions of 1 and 3 have the remaining 0.244.
double ishigami(const std::vector<double>& u) {
    const auto x = [&](std::size_t i) { return std::numbers::pi * (2 * u[i] - 1); };
    const double sine = std::sin(x(1));
    return std::sin(x(0)) + 7 * sine * sine + 0.1 * std::pow(x(2), 4) * std::sin(x(0));
}

template <class Function>
FirstOrderFit indices_of(std::int64_t points, std::size_t inputs, const Function& f) {
    const UnitPoints design = latin_hypercube(points, inputs, 3);
    std::vector<double> results;
    for (const auto& point : design) results.push_back(f(point));
    RandomStream bootstrap(4, 0, "bootstrap");
    return first_order_indices(design, results, bootstrap);
}

}  // namespace

TEST_CASE("first-order indices of Ishigami's function are the published ones") {
    const FirstOrderFit fit = indices_of(2000, 3, ishigami);
    CHECK(std::abs(fit.inputs[0].index - 0.314) < 0.02);
    CHECK(std::abs(fit.inputs[1].index - 0.442) < 0.02);
    CHECK(fit.inputs[2].index < 0.01);
    CHECK(fit.inputs[0].ci95.contains(0.314));
    CHECK(fit.inputs[1].ci95.contains(0.442));
    // The interaction stays in the residual: 1 - 0.244.
    CHECK(std::abs(fit.r2 - 0.756) < 0.03);
    CHECK(std::abs(fit.r2 - fit.q2) < 0.03);
    CHECK(fit.mean == doctest::Approx(3.5).epsilon(0.03));
}

TEST_CASE(
    "a few hundred runs of Ishigami's function give intervals that hold the published indices") {
    const FirstOrderFit fit = indices_of(256, 3, ishigami);
    CHECK(fit.inputs[0].ci95.contains(0.314));
    CHECK(fit.inputs[1].ci95.contains(0.442));
    CHECK(fit.inputs[0].ci95.half_width() < 0.15);
}

TEST_CASE("a linear function's indices are the squares of its coefficients") {
    const FirstOrderFit fit =
        indices_of(64, 3, [](const auto& u) { return 1 + 3 * u[0] - 4 * u[1]; });
    CHECK(fit.degree == 1);
    CHECK(fit.inputs[0].index == doctest::Approx(9.0 / 25).epsilon(0.03));
    CHECK(fit.inputs[1].index == doctest::Approx(16.0 / 25).epsilon(0.03));
    CHECK(fit.inputs[2].index < 1e-9);
    CHECK(fit.r2 == doctest::Approx(1.0));
}

TEST_CASE("noise alone is nobody's share, and the fit says that it explains nothing") {
    RandomStream noise(8, 0, "noise");
    const FirstOrderFit fit = indices_of(400, 4, [&](const auto&) { return noise.normal(); });
    for (const FirstOrderIndex& input : fit.inputs) CHECK(input.index < 0.02);
    CHECK(fit.q2 < 0.01);
}

TEST_CASE("a constant has no indices") {
    const FirstOrderFit fit = indices_of(20, 2, [](const auto&) { return 0.1; });
    CHECK(fit.degree == 0);
    CHECK(fit.inputs[0].index == 0);
    CHECK(fit.deviation < 1e-12);
}

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
