#include "sim/morris.h"

#include <cmath>
#include <numeric>

#include "sim/check.h"

namespace railyard {

namespace {

// Morris's choice: with four levels and this step every level is as likely as another.
constexpr std::uint64_t levels = 4;
constexpr double step = 2.0 / 3;

void add_trajectory(MorrisDesign& design, RandomStream& random) {
    std::vector<double> point;
    for (std::size_t i = 0; i < design.inputs; ++i) {
        point.push_back(real(random.below(levels)) / real(levels - 1));
    }
    std::vector<std::size_t> order(design.inputs);
    std::iota(order.begin(), order.end(), std::size_t{0});
    random.shuffle(order);
    design.points.push_back(point);
    design.moved.push_back(design.inputs);
    for (const std::size_t input : order) {
        double& x = point[input];
        x = x < 0.5 ? x + step : x - step;
        design.points.push_back(point);
        design.moved.push_back(input);
    }
}

}  // namespace

MorrisDesign morris_design(std::size_t inputs, std::size_t trajectories, RandomStream& random) {
    MorrisDesign design;
    design.inputs = inputs;
    for (std::size_t t = 0; t < trajectories; ++t) add_trajectory(design, random);
    return design;
}

std::vector<ElementaryEffects> elementary_effects(const MorrisDesign& design,
                                                  std::span<const double> results) {
    RY_CHECK(results.size() == design.points.size());
    std::vector<std::vector<double>> effects(design.inputs);
    for (std::size_t i = 0; i < results.size(); ++i) {
        const std::size_t input = design.moved[i];
        if (input == design.inputs) continue;  // a trajectory begins
        const double by = design.points[i][input] - design.points[i - 1][input];
        const double effect = (results[i] - results[i - 1]) / by;
        if (std::isfinite(effect)) effects[input].push_back(effect);
    }
    std::vector<ElementaryEffects> out;
    for (const std::vector<double>& of_input : effects) {
        ElementaryEffects& e = out.emplace_back();
        e.count = of_input.size();
        if (e.count == 0) continue;
        const auto n = real(e.count);
        for (const double effect : of_input) {
            e.mean += effect / n;
            e.mean_absolute += std::abs(effect) / n;
        }
        if (e.count == 1) continue;
        double absolute = 0;
        for (const double effect : of_input) {
            e.deviation += (effect - e.mean) * (effect - e.mean) / (n - 1);
            const double off = std::abs(effect) - e.mean_absolute;
            absolute += off * off / (n - 1);
        }
        e.deviation = std::sqrt(e.deviation);
        e.standard_error = std::sqrt(absolute / n);
    }
    return out;
}

}  // namespace railyard
