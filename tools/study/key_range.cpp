#include "tools/study/key_range.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "sim/error.h"
#include "sim/text.h"
#include "sim/units.h"

namespace railyard {

namespace {

// A number alone has no unit, and is in the base.
struct End : Quantity {
    bool whole = false;
};

End parse_end(const std::string& text, const std::string& what,
              std::optional<Dimension> wanted = {}) {
    std::string why;
    if (const auto quantity = parse_quantity(text, why, wanted)) return {*quantity, false};
    std::string digits(trimmed(text));
    std::erase(digits, '_');
    if (digits.starts_with('+')) digits.erase(0, 1);
    const std::optional<double> plain = real_value(digits);
    if (!plain) {
        const bool words = why.starts_with("does not");
        throw ScenarioError(fmt::format("{}: '{}' {}", what, text, why),
                            words ? "a number, or a quantity such as \"10 min\"" : "");
    }
    End end;
    end.number = end.value = *plain;
    end.whole = text.find_first_of(".eE") == std::string::npos;
    return end;
}

}  // namespace

KeyRange::KeyRange(std::string key, const std::string& low, const std::string& high,
                   bool logarithmic, const std::string& what)
    : key_(std::move(key)), logarithmic_(logarithmic) {
    const End from = parse_end(low, what);
    const End to =
        parse_end(high, what, from.unit.empty() ? std::nullopt : std::optional(from.dimension));
    if (from.dimension != to.dimension || from.unit.empty() != to.unit.empty()) {
        throw ScenarioError(
            fmt::format("{}: '{}' and '{}' are not of the same kind", what, low, high),
            "give both with a unit of one dimension, or both without");
    }
    if (!from.unit.empty()) unit_ = fmt::format(" {}", from.unit);
    low_ = from.number;
    high_ = to.in_unit_of(from);
    whole_ = (from.whole && to.whole) || from.dimension == Dimension::steps;
    if (low_ >= high_) {
        throw ScenarioError(fmt::format("{}: the range from {} to {} is {}", what, low, high,
                                        low_ == high_ ? "one point" : "reversed"),
                            low_ == high_ ? "two different ends" : "the lower end comes first");
    }
    if (logarithmic_ && low_ <= 0) {
        throw ScenarioError(
            fmt::format("{}: a logarithmic range begins above 0, not at {}", what, low));
    }
}

KeyRange KeyRange::parse(const std::string& text, bool logarithmic, const std::string& option) {
    const std::size_t equals = text.find('=');
    const std::size_t colon = text.find(':', equals == std::string::npos ? 0 : equals);
    if (equals == std::string::npos || equals == 0 || colon == std::string::npos) {
        throw ScenarioError(fmt::format("{} '{}': expected KEY=LOW:HIGH", option, text),
                            fmt::format("{} job.checkpoint.interval=\"5 min:1 h\"", option));
    }
    return {text.substr(0, equals), text.substr(equals + 1, colon - equals - 1),
            text.substr(colon + 1), logarithmic,
            fmt::format("{} {}", option, text.substr(0, equals))};
}

double KeyRange::at(double share) const {
    const double x =
        logarithmic_ ? low_ * std::pow(high_ / low_, share) : low_ + (high_ - low_) * share;
    return whole_ ? std::round(x) : x;
}

std::string KeyRange::value(double x) const {
    if (whole_) return fmt::format("{:.0f}{}", x, unit_);
    return fmt::format("{:.12g}{}", x, unit_);
}

std::string KeyRange::short_value(double x) const {
    constexpr double digits_max = 1e9;
    const bool whole = whole_ || (std::abs(x) >= 1e4 && std::abs(x) < digits_max);
    return whole ? fmt::format("{:.0f}{}", x, unit_) : fmt::format("{:.4g}{}", x, unit_);
}

std::string KeyRange::setting(double x) const {
    return fmt::format("{}={}", key_, value(x));
}

}  // namespace railyard
