#pragma once
// JSON as text.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace railyard {

// On one line. What is not UTF-8, such as a file's name may be, becomes replacement characters; the library
// would throw.
template <class Json>
std::string one_line(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A number; null where there is none (infinite, or not a number).
inline nlohmann::ordered_json json_number(double value) {
    return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

// To six digits: the last ones of a fit depend on compiler and processor.
inline nlohmann::ordered_json six_digits(double value) {
    return json_number(std::isfinite(value) ? std::stod(fmt::format("{:.6g}", value)) : value);
}

}  // namespace railyard
