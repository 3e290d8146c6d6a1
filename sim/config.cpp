#include "sim/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "sim/text.h"

namespace railyard {

// ---- numbers ----

std::string ValueReader::place(Position at) const {
    if (at.file) return *at.file;
    if (at.line > 0 || file_.empty()) return file_.empty() ? "railyard" : file_;
    return file_ + " with --set";
}

void ValueReader::error(Position at, const std::string& path, std::string message,
                        std::string help) {
    diagnostics_.error(place(at), at, path, std::move(message), std::move(help));
}

void ValueReader::warning(Position at, const std::string& path, std::string message,
                          std::string help) {
    diagnostics_.warning(place(at), at, path, std::move(message), std::move(help));
}

double ValueReader::factor(const std::string& path) const {
    double product = 1;
    for (const Perturbation& perturbation : perturbations_) {
        if (perturbation.path == path) product *= perturbation.factor;
    }
    return product;
}

std::optional<double> plain_number(const Value& value) {
    if (value.kind == Value::Kind::integer || value.kind == Value::Kind::real) return value.real;
    if (value.kind != Value::Kind::string) return std::nullopt;
    std::string why;
    const std::optional<Quantity> q = parse_quantity(value.text, why);
    return q ? std::optional(q->value) : std::nullopt;
}

const Value& ValueReader::unwrap(const Value& value, const std::string& path) {
    if (value.kind != Value::Kind::table) return value;
    const Value* inner = value.find("value");
    if (inner == nullptr) return value;
    static const std::vector<std::string> members = {
        "value", "class", "source", "note", "low", "high", "seed", "seed_source", "recalled"};
    static const std::vector<std::string> classes = {"datasheet", "paper", "seed", "estimate"};
    for (const auto& [key, member] : value.members) {
        if (std::ranges::find(members, key) == members.end()) {
            error(member.at, path + "." + key, "unknown key in a value with a source",
                  suggest(key, members));
        }
    }
    const Value* kind = value.find("class");
    if (kind != nullptr && std::ranges::find(classes, kind->text) == classes.end()) {
        error(kind->at, path + ".class", fmt::format("unknown class, found {}", kind->describe()),
              suggest(kind->text, classes));
    }
    if (kind != nullptr && kind->text == "estimate") {
        Estimate estimate{path,
                          inner->kind == Value::Kind::string ? inner->text : "",
                          "",
                          estimate_spread_low,
                          estimate_spread_high,
                          false};
        if (estimate.value.empty()) estimate.value = fmt::format("{}", inner->real);
        if (const Value* source = value.find("source")) estimate.source = source->text;
        const std::optional<double> middle = plain_number(*inner);
        // A plain number up to 1 is a fraction: there is no more than all of it.
        const bool plain = inner->kind == Value::Kind::integer || inner->kind == Value::Kind::real;
        if (middle && plain && *middle > 0 && *middle <= 1) {
            estimate.high_factor = std::min(estimate.high_factor, 1 / *middle);
        }
        const Value* low = value.find("low");
        const Value* high = value.find("high");
        if (middle && *middle != 0 && low && high) {
            const std::optional<double> low_number = plain_number(*low);
            const std::optional<double> high_number = plain_number(*high);
            if (low_number && high_number) {
                estimate.low_factor = *low_number / *middle;
                estimate.high_factor = *high_number / *middle;
                estimate.range_given = true;
            }
        }
        const auto at = std::lower_bound(
            estimates_.begin(), estimates_.end(), path,
            [](const Estimate& each, const std::string& sought) { return each.path < sought; });
        const bool seen = at != estimates_.end() && at->path == path;
        if (middle && !seen) estimates_.insert(at, std::move(estimate));
    }
    return *inner;
}

bool ValueReader::check_bound(double v, Bound bound, const Value& value, const std::string& path) {
    const char* expected = nullptr;
    if (std::isnan(v) || std::isinf(v)) {
        expected = "a finite number";
    } else if (bound == Bound::positive && v <= 0) {
        expected = "more than zero";
    } else if (bound == Bound::non_negative && v < 0) {
        expected = "zero or more";
    } else if (bound == Bound::fraction && (v < 0 || v > 1)) {
        expected = "a fraction from 0 to 1";
    } else if (bound == Bound::at_least_one && v < 1) {
        expected = "1 or more";
    } else if (bound == Bound::count && (v < 1 || v > 1e6)) {
        expected = "a number from 1 to 1000000";
    }
    if (expected != nullptr) {
        error(value.at, path, fmt::format("expected {}, found {}", expected, value.describe()),
              bound == Bound::fraction && v >= 2 && v <= 100
                  ? fmt::format("{:g} % is {:g}", v, v / 100)
                  : "");
    }
    return expected == nullptr;
}

std::optional<Quantity> ValueReader::quantity(const Value& outer, const std::string& path,
                                              std::initializer_list<Dimension> wanted,
                                              Bound bound) {
    const Value& value = unwrap(outer, path);
    const Dimension first = *wanted.begin();
    const std::string expected =
        fmt::format("expected {} such as {}", dimension_name(first), dimension_example(first));
    if (value.kind == Value::Kind::integer || value.kind == Value::Kind::real) {
        error(value.at, path,
              fmt::format("{}, found {} without a unit", expected, value.describe()));
        return std::nullopt;
    }
    if (value.kind != Value::Kind::string) {
        error(value.at, path, fmt::format("{}, found {}", expected, value.describe()));
        return std::nullopt;
    }
    std::string why;
    std::optional<Quantity> q = parse_quantity(value.text, why, first);
    if (!q) {
        error(value.at, path,
              fmt::format("{}, found {}, which {}", expected, value.describe(), why));
        return std::nullopt;
    }
    if (std::ranges::find(wanted, q->dimension) == wanted.end()) {
        error(value.at, path,
              fmt::format("{}, found {}, which is {}", expected, value.describe(),
                          dimension_name(q->dimension)),
              first == Dimension::time && q->dimension == Dimension::length ? "minutes are \"min\""
                                                                            : "");
        return std::nullopt;
    }
    const bool whole = q->dimension == Dimension::time || q->dimension == Dimension::data ||
                       q->dimension == Dimension::bandwidth || q->dimension == Dimension::steps;
    if (whole && !q->integer) {
        error(value.at, path,
              fmt::format("{}, found {}: overflow, more than the simulator can hold", expected,
                          value.describe()),
              "times reach 100 years, data 9.2 EB, bandwidths 1.15 EB/s");
        return std::nullopt;
    }
    if (const double f = factor(path); f != 1.0) {
        q->value *= f;
        if (q->integer) q->integer = std::llround(std::min(real(*q->integer) * f, 9.2e18));
    }
    // What rounds to nothing would pass for more than zero: judge the number that will be used.
    if (!check_bound(whole ? real(*q->integer) : q->value, bound, value, path)) return std::nullopt;
    if (q->dimension == Dimension::time && Duration(*q->integer) > time_max) {
        error(value.at, path,
              fmt::format("expected at most 100 years, found {}", value.describe()));
        return std::nullopt;
    }
    return q;
}

std::optional<double> ValueReader::number(const Value& outer, const std::string& path,
                                          Bound bound) {
    const Value& value = unwrap(outer, path);
    if (value.kind != Value::Kind::integer && value.kind != Value::Kind::real) {
        error(value.at, path, fmt::format("expected a number, found {}", value.describe()));
        return std::nullopt;
    }
    const double scaled = value.real * factor(path);
    if (!check_bound(scaled, bound, value, path)) return std::nullopt;
    return scaled;
}

std::optional<std::int64_t> ValueReader::integer(const Value& outer, const std::string& path,
                                                 Bound bound) {
    const Value& value = unwrap(outer, path);
    if (value.kind != Value::Kind::integer) {
        error(value.at, path, fmt::format("expected a whole number, found {}", value.describe()));
        return std::nullopt;
    }
    const double f = factor(path);
    const std::int64_t scaled =
        f == 1.0 ? value.integer : std::llround(std::min(value.real * f, 9.2e18));
    if (!check_bound(real(scaled), bound, value, path)) return std::nullopt;
    return scaled;
}

// ---- sections ----

Section::Section(ValueReader& reader, const Value* table, std::string path, Position parent_at,
                 std::vector<SchemaRow>* schema)
    : reader_(reader),
      table_(table),
      path_(std::move(path)),
      parent_at_(parent_at),
      schema_(schema) {
    if (table_ != nullptr && table_->kind != Value::Kind::table) {
        reader_.error(table_->at, path_,
                      fmt::format("expected a table, found {}", table_->describe()));
        table_ = nullptr;
    }
}

std::string Section::path(std::string_view key) const {
    if (path_.empty() || key.empty()) return path_ + std::string(key);
    return fmt::format("{}.{}", path_, key);
}

Position Section::at(std::string_view key) const {
    const Value* value = table_ ? table_->find(key) : nullptr;
    return value ? value->at : at();
}

void Section::know(const char* key) {
    if (std::ranges::find(known_, key) == known_.end()) known_.emplace_back(key);
    if (!no_effect_.empty() && has(key)) warning(key, "has no effect " + no_effect_);
}

const Value* Section::take(const char* key, const std::string& type, const std::string& otherwise,
                           const char* doc, bool required, const AllowedValues& allowed) {
    know(key);
    if (schema_ != nullptr) {
        schema_->push_back({path(key), type, otherwise, doc, required, allowed.bound,
                            allowed.dimensions,
                            allowed.words ? *allowed.words : std::vector<std::string>()});
    }
    const Value* value = table_ ? table_->find(key) : nullptr;
    if (value == nullptr && required && schema_ == nullptr) {
        reader_.error(at(), path(key), fmt::format("is missing: {}", doc),
                      fmt::format("expected {}", type));
    }
    return value;
}

Section Section::section(const char* key) {
    know(key);
    return {reader_, table_ ? table_->find(key) : nullptr, path(key), at(), schema_};
}

std::vector<Section> Section::sections(const char* key, const char* doc) {
    std::vector<Section> out;
    const Value* value = take(key, "an array of tables", "none", doc, false);
    if (schema_ != nullptr) {
        out.emplace_back(reader_, nullptr, path(key), at(), schema_);
        return out;
    }
    if (value == nullptr) return out;
    if (value->kind != Value::Kind::array) {
        reader_.error(value->at, path(key),
                      fmt::format("expected an array of tables ([[{}]]), found {}", path(key),
                                  value->describe()));
        return out;
    }
    for (std::size_t i = 0; i < value->items.size(); ++i) {
        out.emplace_back(reader_, &value->items[i], fmt::format("{}[{}]", path(key), i), value->at,
                         schema_);
    }
    return out;
}

namespace {

std::string shown(const KeyRules& rules, std::string value) {
    if (rules.required) return "required";
    return rules.otherwise ? rules.otherwise : value;
}

}  // namespace

void Section::read(const char* key, bool& out, const char* doc, KeyRules rules) {
    const Value* value =
        take(key, "true or false", shown(rules, out ? "true" : "false"), doc, rules.required);
    if (value == nullptr) return;
    if (value->kind != Value::Kind::boolean) {
        reader_.error(value->at, path(key),
                      fmt::format("expected true or false, found {}", value->describe()));
        return;
    }
    out = value->integer != 0;
}

void Section::read(const char* key, std::int64_t& out, const char* doc, KeyRules rules) {
    const Value* value = take(key, "whole number", shown(rules, fmt::format("{}", out)), doc,
                              rules.required, {rules.bound});
    if (value == nullptr) return;
    if (const auto n = reader_.integer(*value, path(key), rules.bound)) out = *n;
}

void Section::read(const char* key, double& out, const char* doc, KeyRules rules) {
    const char* type = rules.bound == Bound::fraction ? "fraction" : "number";
    const Value* value =
        take(key, type, shown(rules, fmt::format("{}", out)), doc, rules.required, {rules.bound});
    if (value == nullptr) return;
    if (const auto n = reader_.number(*value, path(key), rules.bound)) out = *n;
}

void Section::read(const char* key, std::string& out, const char* doc, KeyRules rules) {
    read_text(key, "text", out, doc, rules);
}

std::string Section::file(const char* key, const char* doc, KeyRules rules) {
    if (rules.otherwise == nullptr) rules.otherwise = "none";
    std::string name;
    read_text(key, file_type, name, doc, rules);
    const Value* given = table_ ? table_->find(key) : nullptr;
    if (given != nullptr && given->kind == Value::Kind::string && name.empty()) {
        error(key, "expected the name of a file, found an empty text");
    }
    if (name.empty()) return name;
    return file_beside(*given, reader_.file());
}

void Section::read_text(const char* key, const char* type, std::string& out, const char* doc,
                        const KeyRules& rules) {
    const Value* value =
        take(key, type, shown(rules, fmt::format("\"{}\"", out)), doc, rules.required);
    if (value == nullptr) return;
    if (value->kind != Value::Kind::string) {
        reader_.error(value->at, path(key),
                      fmt::format("expected text in quotes, found {}", value->describe()));
        return;
    }
    if (value->text.find('\n') != std::string::npos) {
        reader_.error(value->at, path(key), "expected a text of one line");
        return;
    }
    out = value->text;
}

void Section::read(const char* key, std::vector<std::string>& out, const char* doc,
                   KeyRules rules) {
    const Value* value = take(key, "a list of names", shown(rules, "none"), doc, rules.required);
    if (value == nullptr) return;
    const bool texts = value->kind == Value::Kind::array && !value->items.empty() &&
                       std::ranges::all_of(value->items, [](const Value& item) {
                           return item.kind == Value::Kind::string;
                       });
    if (!texts) {
        const bool empty = value->kind == Value::Kind::array && value->items.empty();
        reader_.error(value->at, path(key),
                      fmt::format("expected a list of names, found {}",
                                  empty ? "one without any" : value->describe()),
                      "[\"one\", \"another\"]");
        return;
    }
    out.clear();
    for (const Value& item : value->items) out.push_back(item.text);
}

std::optional<Quantity> Section::take_quantity(const char* key, Dimension dimension,
                                               const std::string& otherwise, const char* doc,
                                               const KeyRules& rules) {
    std::string type(dimension_name(dimension));
    type.erase(0, type.find(' ') + 1);
    const Value* value =
        take(key, type, otherwise, doc, rules.required, {rules.bound, {dimension}});
    if (value == nullptr) return std::nullopt;
    return reader_.quantity(*value, path(key), {dimension}, rules.bound);
}

namespace {

// How a type is read: its dimension, its default's text, and what is made of a quantity.
template <class T>
struct QuantityType {
    Dimension dimension;
    std::string (*text)(T);
    T (*made)(const Quantity&) = [](const Quantity& q) { return T{q.value}; };
};

constexpr std::tuple quantity_types{
    QuantityType<Duration>{Dimension::time, to_text,
                           [](const Quantity& q) { return Duration(*q.integer); }},
    QuantityType<Bytes>{Dimension::data, to_text,
                        [](const Quantity& q) { return Bytes::of(*q.integer); }},
    QuantityType<Bandwidth>{
        Dimension::bandwidth, to_text,
        [](const Quantity& q) { return Bandwidth::bits_per_second(*q.integer); }},
    QuantityType<Rate>{Dimension::rate, [](Rate r) { return fmt::format("{} /s", r.per_second); }},
    QuantityType<Money>{Dimension::money, [](Money m) { return fmt::format("{} USD", m.usd); }},
    QuantityType<Metres>{Dimension::length,
                         [](Metres m) { return fmt::format("{:g} m", m.value); }},
    QuantityType<Watts>{Dimension::power, to_text},
    QuantityType<Celsius>{Dimension::temperature,
                          [](Celsius t) { return fmt::format("{:g} degC", t.value); }},
    QuantityType<KelvinPerWatt>{Dimension::thermal_resistance,
                                [](KelvinPerWatt r) { return fmt::format("{:g} K/W", r.value); }},
    QuantityType<GramsPerKilowattHour>{
        Dimension::carbon_intensity,
        [](GramsPerKilowattHour c) { return fmt::format("{:g} gCO2/kWh", c.value); }},
};

}  // namespace

template <class T>
void Section::read(const char* key, T& out, const char* doc, KeyRules rules) {
    const auto& type = std::get<QuantityType<T>>(quantity_types);
    const auto q = take_quantity(key, type.dimension, shown(rules, type.text(out)), doc, rules);
    if (q) out = type.made(*q);
}
template void Section::read(const char*, Duration&, const char*, KeyRules);
template void Section::read(const char*, Bytes&, const char*, KeyRules);
template void Section::read(const char*, Bandwidth&, const char*, KeyRules);
template void Section::read(const char*, Rate&, const char*, KeyRules);
template void Section::read(const char*, Money&, const char*, KeyRules);
template void Section::read(const char*, Metres&, const char*, KeyRules);
template void Section::read(const char*, Watts&, const char*, KeyRules);
template void Section::read(const char*, Celsius&, const char*, KeyRules);
template void Section::read(const char*, KelvinPerWatt&, const char*, KeyRules);
template void Section::read(const char*, GramsPerKilowattHour&, const char*, KeyRules);

void Section::read_time_or_steps(const char* key, Duration& time, std::int64_t& step_count,
                                 const char* doc, KeyRules rules) {
    const Value* value = take(key, "time or number of steps", shown(rules, to_text(time)), doc,
                              rules.required, {rules.bound, {Dimension::time, Dimension::steps}});
    if (value == nullptr) return;
    const auto q =
        reader_.quantity(*value, path(key), {Dimension::time, Dimension::steps}, rules.bound);
    if (!q) return;
    time = Duration(q->dimension == Dimension::time ? *q->integer : 0);
    step_count = q->dimension == Dimension::steps ? *q->integer : 0;
}

void Section::choose(const char* key, int& out, const std::vector<std::string>& words,
                     const char* doc) {
    const Value* value = take(key, fmt::format("one of {}", fmt::join(words, ", ")), words[out],
                              doc, false, {Bound::any, {}, &words});
    if (value == nullptr) return;
    const auto found = std::ranges::find(words, value->text);
    if (value->kind != Value::Kind::string || found == words.end()) {
        reader_.error(
            value->at, path(key),
            fmt::format("expected one of {}, found {}", fmt::join(words, ", "), value->describe()),
            value->kind == Value::Kind::string ? suggest(value->text, words) : "");
        return;
    }
    out = static_cast<int>(found - words.begin());
}

void Section::name(const char* key, std::string& out, const std::vector<std::string>& names,
                   const char* what, const char* doc, KeyRules rules) {
    const Value* value =
        take(key, fmt::format("name of {}", what), shown(rules, out.empty() ? "none" : out), doc,
             rules.required, {Bound::any, {}, &names});
    if (value == nullptr) return;
    if (value->kind != Value::Kind::string ||
        std::ranges::find(names, value->text) == names.end()) {
        reader_.error(value->at, path(key),
                      fmt::format("expected the name of {}, found {}", what, value->describe()),
                      value->kind == Value::Kind::string ? suggest(value->text, names) : "");
        return;
    }
    out = value->text;
}

const Value* Section::open_table(const char* key, const char* doc) {
    const Value* value = take(key, "table", "none", doc, false);
    if (value != nullptr && value->kind != Value::Kind::table) {
        reader_.error(value->at, path(key),
                      fmt::format("expected a table, found {}", value->describe()));
        return nullptr;
    }
    return value;
}

void Section::error(std::string_view key, std::string message, std::string help) {
    reader_.error(at(key), path(key), std::move(message), std::move(help));
}

void Section::warning(std::string_view key, std::string message, std::string help) {
    reader_.warning(at(key), path(key), std::move(message), std::move(help));
}

void Section::finish() {
    if (table_ == nullptr) return;
    for (const auto& [key, value] : table_->members) {
        if (std::ranges::find(known_, key) == known_.end()) {
            reader_.error(value.at, path(key), "unknown key", suggest(key, known_));
        }
    }
}

}  // namespace railyard
