#include "tools/study/key_range.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "sim/error.h"
#include "sim/units.h"

namespace railyard {

namespace {

struct End {
    double number = 0;     // without its unit
    std::string unit;      // " min"; empty without one
    double in_base = 0;    // of its dimension
    double unit_base = 1;  // one of the unit
    std::optional<Dimension> dimension;
    bool whole = false;
};

End parse_end(const std::string& text, const std::string& what,
              std::optional<Dimension> wanted = {}) {
    End end;
    std::size_t used = 0;
    try {
        end.number = std::stod(text, &used);
    } catch (const std::exception&) {
        throw ScenarioError(fmt::format("{}: '{}' does not begin with a number", what, text),
                            "a number, or a quantity such as \"10 min\"");
    }
    if (!std::isfinite(end.number)) {
        throw ScenarioError(fmt::format("{}: '{}' is no finite number", what, text));
    }
    const std::size_t symbol = text.find_first_not_of(' ', used);
    if (symbol == std::string::npos) {
        end.in_base = end.number;
        end.whole = text.find_first_of(".eE") == std::string::npos;
        return end;
    }
    std::string why;
    const std::optional<Quantity> quantity = parse_quantity(text, why, wanted);
    if (!quantity) throw ScenarioError(fmt::format("{}: '{}' {}", what, text, why));
    end.unit = fmt::format(" {}", text.substr(symbol));
    end.in_base = quantity->value;
    end.unit_base = parse_quantity(fmt::format("1{}", end.unit), why)->value;
    end.dimension = quantity->dimension;
    return end;
}

}  // namespace

KeyRange::KeyRange(std::string key, const std::string& low, const std::string& high,
                   bool logarithmic, const std::string& what)
    : key_(std::move(key)), logarithmic_(logarithmic) {
    const End from = parse_end(low, what);
    const End to = parse_end(high, what, from.dimension);
    if (from.dimension != to.dimension) {
        throw ScenarioError(
            fmt::format("{}: '{}' and '{}' are not of the same kind", what, low, high),
            "give both with a unit of one dimension, or both without");
    }
    unit_ = from.unit;
    low_ = from.number;
    high_ = to.in_base / from.unit_base;
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
