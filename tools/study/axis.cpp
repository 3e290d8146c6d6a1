#include "tools/study/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/rng.h"
#include "tools/language/settings_diff.h"
#include "tools/program/json_text.h"

namespace railyard {

namespace {

// JSON's escapes are TOML's, too.
std::string quoted(const std::string& text) {
    return one_line(nlohmann::json(text));
}

std::optional<Quantity> written(const Value& value) {
    std::string why;
    if (value.kind != Value::Kind::string) return std::nullopt;
    return parse_quantity(value.text, why);
}

bool is_number(const Value& v) {
    return v.kind == Value::Kind::integer || v.kind == Value::Kind::real;
}

}  // namespace

std::string toml_text(const Value& value) {
    return value_text(value, quoted);
}

std::vector<AxisBounds> AxisBounds::taken_from(Document& document, const char* section) {
    std::vector<AxisBounds> out;
    Value* table = document.root.find(section);
    Value* axes = table != nullptr ? table->find("axis") : nullptr;
    if (axes == nullptr) return out;
    for (Value& axis : axes->items) {
        const auto taken = [&](const char* key) {
            std::optional<Value> value;
            if (Value* found = axis.find(key)) value = std::move(*found);
            std::erase_if(axis.members, [&](const Member& m) { return m.key == key; });
            return value;
        };
        out.push_back({taken("values"), taken("from"), taken("to")});
    }
    return out;
}

void AxisBounds::describe(const std::string& path, std::vector<SchemaRow>& rows) {
    const auto add = [&](const char* key, const char* type, const char* otherwise,
                         const char* doc) {
        rows.push_back({path + "." + key, type, otherwise, doc, false, Bound::any, {}, {}});
    };
    add("values", "a list of values", "from and to", "The values of the key");
    add("from", "a number or a quantity", "values", "One end of a range");
    add("to", "a number or a quantity", "values", "Its other end");
}

std::optional<Axis> Axis::read(Section& section, const AxisBounds& bounds, bool takes_any_value) {
    Axis axis;
    section.read("key", axis.key_,
                 "The key of the scenario that varies, as job.checkpoint.interval",
                 {.required = true});
    std::int64_t steps = 0;
    section.read("steps", steps, "Values of the range, ends included, in equal parts",
                 {.bound = Bound::count, .otherwise = "not given"});
    int scale = 0;
    section.choose("scale", scale, {"linear", "log"}, "How the range is parted");
    axis.logarithmic_ = scale == 1;
    section.finish();
    const bool ranged = bounds.from || bounds.to;
    if (bounds.values.has_value() == ranged) {
        section.error("values",
                      ranged ? "is given, and so is a range" : "is missing, and so is a range",
                      "give values = [...], or from and to");
        return std::nullopt;
    }
    if (bounds.values) {
        refuse_keys(section, {"steps", "scale"}, "has no effect without a range");
        return axis.read_list(section, *bounds.values) ? std::optional(axis) : std::nullopt;
    }
    if (!bounds.from || !bounds.to) {
        section.error(bounds.from ? "to" : "from", "is missing: a range has two ends");
        return std::nullopt;
    }
    if (!axis.read_range(section, *bounds.from, *bounds.to)) return std::nullopt;
    if (!takes_any_value)
        return axis.part_range(section, steps) ? std::optional(axis) : std::nullopt;
    if (section.has("steps")) {
        section.error("steps", "has no effect: this design takes any value of the range");
    }
    return axis;
}

bool Axis::read_list(Section& section, const Value& list) {
    if (list.kind != Value::Kind::array || list.items.empty()) {
        section.error("values", fmt::format("expected a list of values, found {}",
                                            list.kind == Value::Kind::array ? "an empty one"
                                                                            : list.describe()));
        return false;
    }
    const std::optional<Quantity> first = written(list.items[0]);
    if (first) unit_ = first->unit;
    for (const Value& item : list.items) {
        AxisValue value{toml_text(item), value_text(item), std::nullopt};
        if (is_number(item) && !first) value.value = item.real;
        const std::optional<Quantity> quantity = written(item);
        if (first && quantity && quantity->dimension == first->dimension) {
            value.value = quantity->in_unit_of(*first);
        }
        values_.push_back(std::move(value));
    }
    return true;
}

bool Axis::read_range(Section& section, const Value& from, const Value& to) {
    range_ = true;
    if (is_number(from) && is_number(to)) {
        whole_ = from.kind == Value::Kind::integer && to.kind == Value::Kind::integer;
        from_ = from.real;
        to_ = to.real;
    } else {
        const std::optional<Quantity> first = written(from);
        const std::optional<Quantity> last = written(to);
        if (!first || !last || first->dimension != last->dimension) {
            section.error(
                "from",
                fmt::format("expected two numbers or two quantities of one kind, found {} and {}",
                            from.describe(), to.describe()));
            return false;
        }
        unit_ = first->unit;
        whole_ = first->dimension == Dimension::steps;
        from_ = first->number;
        to_ = last->in_unit_of(*first);
    }
    if (logarithmic_ && (from_ <= 0 || to_ <= 0)) {
        section.error("scale", "a logarithmic range is of numbers above zero");
        return false;
    }
    return true;
}

bool Axis::part_range(Section& section, std::int64_t steps) {
    constexpr std::int64_t steps_min = 2;
    if (steps < steps_min) {
        section.error("steps", section.has("steps")
                                   ? fmt::format("expected 2 or more, found {}", steps)
                                   : "is missing: how many values of the range?");
        return false;
    }
    for (std::int64_t i = 0; i < steps; ++i) {
        values_.push_back(in_range(static_cast<double>(i) / static_cast<double>(steps - 1)));
        if (i > 0 && values_.back().toml == values_[values_.size() - 2].toml) {
            section.error("steps",
                          fmt::format("{} steps make {} twice", steps, values_.back().text),
                          "fewer steps, or a longer range");
            return false;
        }
    }
    return true;
}

AxisValue Axis::at(double fraction) const {
    if (!range_) {
        const auto i = static_cast<std::size_t>(fraction * static_cast<double>(values_.size()));
        return values_[std::min(i, values_.size() - 1)];
    }
    if (!whole_) return in_range(fraction);
    // Each whole number has a like share.
    const double least = std::min(from_, to_);
    const double most = std::max(from_, to_);
    if (logarithmic_) {
        const double x =
            (least - 0.5) * portable_exp(fraction * portable_log((most + 0.5) / (least - 0.5)));
        return number(std::clamp(std::round(x), least, most));
    }
    return number(std::min(most, std::floor(least + fraction * (most - least + 1))));
}

AxisValue Axis::in_range(double fraction) const {
    if (fraction <= 0) return number(from_);
    if (fraction >= 1) return number(to_);
    const double value = logarithmic_ ? from_ * portable_exp(fraction * portable_log(to_ / from_))
                                      : from_ + fraction * (to_ - from_);
    return number(whole_ ? std::round(value) : value);
}

AxisValue Axis::number(double value) const {
    AxisValue out;
    // Ten digits: as good as any input, and 0.3 is not 0.30000000000000004.
    const std::string digits = fmt::format("{:.10g}", value);
    out.value = std::stod(digits);
    const bool plain_real = !whole_ && digits.find_first_of(".e") == std::string::npos;
    out.text = unit_.empty() ? digits : digits + " " + unit_;
    out.toml = unit_.empty() ? digits + (plain_real ? ".0" : "") : "\"" + out.text + "\"";
    return out;
}

}  // namespace railyard
