#pragma once
// Designs of experiments: where in the unit cube [0, 1)^axes to look.

#include <cstdint>
#include <vector>

namespace railyard {

// points x axes.
using UnitPoints = std::vector<std::vector<double>>;

// Each axis is cut into as many strata as there are points, and each stratum has one point, at random in it.
UnitPoints latin_hypercube(std::int64_t points, std::size_t axes, std::uint64_t seed);

// The Sobol sequence from its first point, the origin, with the direction numbers of Joe and Kuo (2008), in
// the order of Antonov and Saleev. A seed other than 0 shifts all points by the same random bits (a digital
// shift), which keeps their spread. At most sobol_axes_max axes.
UnitPoints sobol_sequence(std::int64_t points, std::size_t axes, std::uint64_t seed);
constexpr std::size_t sobol_axes_max = 3667;

}  // namespace railyard
