#include "sim/sampling.h"

#include <boost/random/sobol.hpp>

#include "sim/check.h"
#include "sim/rng.h"

namespace railyard {

namespace {

// The upper 53 bits, as a fraction of one.
double unit(std::uint64_t bits) {
    return real(bits >> 11) * 0x1p-53;
}

UnitPoints grid(std::int64_t points, std::size_t axes) {
    return UnitPoints(static_cast<std::size_t>(points), std::vector<double>(axes, 0));
}

}  // namespace

UnitPoints latin_hypercube(std::int64_t points, std::size_t axes, std::uint64_t seed) {
    RY_CHECK(points >= 1);
    UnitPoints out = grid(points, axes);
    const auto n = static_cast<std::size_t>(points);
    std::vector<std::size_t> strata(n);
    for (std::size_t axis = 0; axis < axes; ++axis) {
        RandomStream random(seed, axis, "design/latin_hypercube");
        for (std::size_t i = 0; i < n; ++i) {  // a shuffle from the inside out
            const std::size_t j = random.below(i + 1);
            strata[i] = strata[j];
            strata[j] = i;
        }
        for (std::size_t i = 0; i < n; ++i) {
            out[i][axis] = (real(strata[i]) + random.uniform()) / real(n);
        }
    }
    return out;
}

UnitPoints sobol_sequence(std::int64_t points, std::size_t axes, std::uint64_t seed) {
    RY_CHECK(points >= 1 && axes >= 1 && axes <= sobol_axes_max);
    UnitPoints out = grid(points, axes);
    std::vector<std::uint64_t> shift(axes, 0);
    for (std::size_t axis = 0; axis < axes && seed != 0; ++axis) {
        shift[axis] = RandomStream(seed, axis, "design/sobol").next_u64();
    }
    boost::random::sobol generator(axes);  // begins behind the origin
    for (std::size_t i = 0; i < out.size(); ++i) {
        for (std::size_t axis = 0; axis < axes; ++axis) {
            out[i][axis] = unit((i == 0 ? 0 : generator()) ^ shift[axis]);
        }
    }
    return out;
}

}  // namespace railyard
