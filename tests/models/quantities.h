#pragma once

#include <cstdint>

#include "sim/units.h"

namespace railyard {

constexpr Bytes gigabytes(std::int64_t n) {
    return Bytes::of(n * 1'000'000'000);
}
constexpr Bandwidth gb_per_s(double n) {
    return Bandwidth::bits_per_second(static_cast<std::int64_t>(n * 8e9));
}

}  // namespace railyard
