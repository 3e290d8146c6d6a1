#pragma once
// How much of a result's variance each input decides by itself: first-order Sobol indices, by regression.
//
// Inputs are uniform on [0, 1] and independent. The result is fitted by a sum of polynomials of one input
// each, in Legendre's basis, which is orthonormal there: an input's part of the variance is then the sum of
// its squared coefficients, less what noise adds to squares (Sudret 2008, without the interactions). What the
// inputs only do together stays in the residual, so R2 is at most the sum of all first-order indices.

#include <vector>

#include "sim/rng.h"
#include "sim/statistics.h"

namespace railyard {

struct FirstOrderIndex {
    double index = 0;  // share of the variance, 0 to 1
    Interval ci95;     // percentiles of a bootstrap over the points
};

struct FirstOrderFit {
    std::vector<FirstOrderIndex> inputs;
    double mean = 0;
    double deviation = 0;  // of the results
    std::size_t degree =
        0;          // of the polynomials: the one that predicts points it has not seen best
    double r2 = 0;  // share of the variance that the fit has
    double q2 =
        0;  // the same of points left out one by one: far below r2, the fit is not to be trusted
};

// Needs more points than inputs + 1. All zero, and degree 0, when the results are all the same or the points
// don't tell the inputs apart.
FirstOrderFit first_order_indices(const std::vector<std::vector<double>>& points,
                                  const std::vector<double>& results, RandomStream& bootstrap);

}  // namespace railyard
