#pragma once
// Whole-number arithmetic that the language leaves out.

#include <cstdint>

namespace railyard {

// a / b, rounded up. Needs a >= 0 and b > 0, and a + b to fit.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

// So many of `from` are as many of `to`, rounded down.
constexpr std::int64_t in_proportion(std::int64_t part, std::int64_t from, std::int64_t to) {
    using Wide = __int128;
    return from == to ? part : static_cast<std::int64_t>(Wide{part} * to / from);
}

}  // namespace railyard
