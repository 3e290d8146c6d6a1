#pragma once
// JSON as text.

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace railyard {

using Json = nlohmann::ordered_json;

// On one line. What is not UTF-8, such as a file's name may be, becomes replacement characters; the library
// would throw.
template <class Any>
std::string one_line(const Any& json) {
    return json.dump(-1, ' ', false, Any::error_handler_t::replace);
}

// A number; null where there is none (infinite, or not a number).
inline Json json_number(double value) {
    return std::isfinite(value) ? Json(value) : Json(nullptr);
}
inline Json json_number(const std::optional<double>& value) {
    return value ? json_number(*value) : Json(nullptr);
}

// An interval, or another range: its two ends.
template <class Range>
Json ends_json(const Range& range) {
    return Json::array({json_number(range.low), json_number(range.high)});
}

// What `of` makes of each.
template <class Range, class Function>
Json json_array(const Range& range, Function of) {
    Json out = Json::array();
    for (const auto& each : range) out.push_back(std::invoke(of, each));
    return out;
}

// To six digits: the last ones of a fit depend on compiler and processor.
inline Json six_digits(double value) {
    return json_number(std::isfinite(value) ? std::stod(fmt::format("{:.6g}", value)) : value);
}
inline Json six_digits(const std::optional<double>& value) {
    return value ? six_digits(*value) : Json(nullptr);
}

}  // namespace railyard
