#pragma once
// Whole-number arithmetic that the language leaves out.

#include <cstdint>

namespace railyard {

// a / b, rounded up. Needs a >= 0 and b > 0, and a + b to fit.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

}  // namespace railyard
