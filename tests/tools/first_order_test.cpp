// First-order indices, against functions whose answers are published.

#include "tools/study/first_order.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

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
