#pragma once
// base^exponent with the same bits everywhere, since it enters when things happen.

#include "sim/rng.h"

namespace railyard {

// base >= 0.
inline double portable_power(double base, double exponent) {
    if (base <= 0) return exponent == 0 ? 1 : 0;
    return portable_exp(exponent * portable_log(base));
}

}  // namespace railyard
