#include "sim/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace railyard {

// ---- the tree
// --------------------------------------------------------------------------------------

const Value* Value::find(std::string_view key) const {
    for (const auto& [name, value] : members) {
        if (name == key) return &value;
    }
    return nullptr;
}

Value* Value::find(std::string_view key) {
    return const_cast<Value*>(std::as_const(*this).find(key));
}

std::string Value::describe() const {
    switch (kind) {
        case Kind::table:
            return "a table";
        case Kind::array:
            return "an array";
        case Kind::string:
            return fmt::format("the string \"{}\"", text);
        case Kind::integer:
            return fmt::format("the number {}", integer);
        case Kind::real:
            return fmt::format("the number {}", real);
        case Kind::boolean:
            return integer ? "true" : "false";
        case Kind::other:
            return "a date or time";
    }
    return "a value";
}

namespace {

Position position_of(const toml::node& node) {
    return {static_cast<int>(node.source().begin.line),
            static_cast<int>(node.source().begin.column)};
}

Value convert(const toml::node& node) {
    Value out;
    out.at = position_of(node);
    if (const toml::table* table = node.as_table()) {
        out.kind = Value::Kind::table;
        for (const auto& [key, child] : *table) {
            out.members.push_back({std::string(key.str()), convert(child)});
            // A value's place is its key's: that is where a reader looks.
            const toml::source_position key_at = key.source().begin;
            if (key_at.line > 0) {
                out.members.back().value.at = {static_cast<int>(key_at.line),
                                               static_cast<int>(key_at.column)};
            }
        }
        std::stable_sort(out.members.begin(), out.members.end(), [](const auto& a, const auto& b) {
            return std::pair(a.value.at.line, a.value.at.column) <
                   std::pair(b.value.at.line, b.value.at.column);
        });
    } else if (const toml::array* array = node.as_array()) {
        out.kind = Value::Kind::array;
        for (const toml::node& item : *array) out.items.push_back(convert(item));
    } else if (const auto* s = node.as_string()) {
        out.kind = Value::Kind::string;
        out.text = s->get();
    } else if (const auto* i = node.as_integer()) {
        out.kind = Value::Kind::integer;
        out.integer = i->get();
        out.real = static_cast<double>(out.integer);
    } else if (const auto* f = node.as_floating_point()) {
        out.kind = Value::Kind::real;
        out.real = f->get();
    } else if (const auto* b = node.as_boolean()) {
        out.kind = Value::Kind::boolean;
        out.integer = b->get() ? 1 : 0;
    } else {
        out.kind = Value::Kind::other;
    }
    return out;
}

}  // namespace

Document parse_document(std::string_view text, std::string name, Diagnostics& diagnostics) {
    Document out;
    out.name = std::move(name);
    const toml::parse_result result = toml::parse(text);
    if (!result) {
        const toml::parse_error& error = result.error();
        diagnostics.error(out.name,
                          {static_cast<int>(error.source().begin.line),
                           static_cast<int>(error.source().begin.column)},
                          "", fmt::format("not TOML: {}", error.description()));
        return out;
    }
    out.root = convert(result.table());
    return out;
}

std::string read_file(const std::string& path) {
    errno = 0;
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    if (in) text << in.rdbuf();
    if (!in || in.bad() || (text.fail() && in.peek() != EOF)) {
        const int reason = errno != 0 ? errno : EIO;
        throw ScenarioError(fmt::format("can't read {}: {}", path, std::strerror(reason)));
    }
    return text.str();
}

void apply_setting(Document& document, std::string_view setting, Diagnostics& diagnostics) {
    const std::string origin = fmt::format("--set {}", setting);
    const std::size_t equals = setting.find('=');
    if (equals == std::string_view::npos || equals == 0) {
        diagnostics.error(origin, {}, "", "expected key.path=value");
        return;
    }
    const std::string value(setting.substr(equals + 1));
    const toml::parse_result parsed = toml::parse("v = " + value);
    Value leaf;
    if (parsed && parsed.table().size() == 1) {
        leaf = convert(*parsed.table().get("v"));
    } else {
        leaf.kind = Value::Kind::string;
        leaf.text = value;
    }
    const auto without_position = [](Value& v, const auto& self) -> void {
        v.at = {};
        for (auto& [key, member] : v.members) self(member, self);
        for (Value& item : v.items) self(item, self);
    };
    without_position(leaf, without_position);

    Value* table = &document.root;
    std::string_view path = setting.substr(0, equals);
    for (;;) {
        const std::size_t dot = path.find('.');
        const std::string key(path.substr(0, dot));
        if (key.empty()) {
            diagnostics.error(origin, {}, "",
                              "expected key.path=value; a name in the path is empty");
            return;
        }
        Value* found = table->find(key);
        if (found == nullptr) {
            table->members.push_back({key, Value{}});
            found = &table->members.back().value;
        }
        if (dot == std::string_view::npos) {
            *found = std::move(leaf);
            return;
        }
        if (found->kind != Value::Kind::table) {
            diagnostics.error(origin, {}, key, fmt::format("{} has no keys", found->describe()));
            return;
        }
        table = found;
        path.remove_prefix(dot + 1);
    }
}

// ---- numbers
// ---------------------------------------------------------------------------------------

void ValueReader::error(Position at, const std::string& path, std::string message,
                        std::string help) {
    // A value without a place came from the command line; its path says which.
    const std::string where = at.line > 0 ? file_ : file_ + " with --set";
    diagnostics_.error(where, at, path, std::move(message), std::move(help));
}

void ValueReader::warning(Position at, const std::string& path, std::string message,
                          std::string help) {
    diagnostics_.warning(file_, at, path, std::move(message), std::move(help));
}

double ValueReader::factor(const std::string& path) const {
    return path == perturb_.path ? perturb_.factor : 1.0;
}

namespace {

// The number in `value`, in whatever unit it is written, or nullopt.
std::optional<double> plain_number(const Value& value) {
    if (value.kind == Value::Kind::integer || value.kind == Value::Kind::real) return value.real;
    if (value.kind != Value::Kind::string) return std::nullopt;
    std::string why;
    const std::optional<Quantity> q = parse_quantity(value.text, why);
    return q ? std::optional(q->value) : std::nullopt;
}

}  // namespace

const Value& ValueReader::unwrap(const Value& value, const std::string& path) {
    if (value.kind != Value::Kind::table) return value;
    const Value* inner = value.find("value");
    if (inner == nullptr) return value;
    static const std::vector<std::string> members = {
        "value", "class", "source", "note", "low", "high", "seed", "seed_source", "recalled"};
    static const std::vector<std::string> classes = {"datasheet", "paper", "seed", "estimate"};
    for (const auto& [key, member] : value.members) {
        if (std::find(members.begin(), members.end(), key) == members.end()) {
            error(member.at, path + "." + key, "unknown key in a value with a source",
                  suggest(key, members));
        }
    }
    const Value* kind = value.find("class");
    if (kind != nullptr && std::find(classes.begin(), classes.end(), kind->text) == classes.end()) {
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
        const bool seen = std::any_of(estimates_.begin(), estimates_.end(),
                                      [&](const Estimate& e) { return e.path == path; });
        if (middle && !seen) estimates_.push_back(std::move(estimate));
    }
    return *inner;
}

void ValueReader::check_bound(double v, Bound bound, const Value& value, const std::string& path) {
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
        error(value.at, path, fmt::format("expected {}, found {}", expected, value.describe()));
    }
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
    std::optional<Quantity> q = parse_quantity(value.text, why);
    if (!q) {
        error(value.at, path,
              fmt::format("{}, found {}, which {}", expected, value.describe(), why));
        return std::nullopt;
    }
    if (std::find(wanted.begin(), wanted.end(), q->dimension) == wanted.end()) {
        error(value.at, path,
              fmt::format("{}, found {}, which is {}", expected, value.describe(),
                          dimension_name(q->dimension)));
        return std::nullopt;
    }
    const bool whole = q->dimension == Dimension::time || q->dimension == Dimension::data ||
                       q->dimension == Dimension::bandwidth || q->dimension == Dimension::steps;
    if (whole && !q->integer) {
        error(value.at, path,
              fmt::format("overflow: {} is more than the simulator can hold", value.describe()),
              "times reach 292 years, data 9.2 EB, bandwidths 1.15 EB/s");
        return std::nullopt;
    }
    // What rounds to nothing would pass for more than zero: judge the number that will be used.
    check_bound(whole ? static_cast<double>(*q->integer) : q->value, bound, value, path);
    if (const double f = factor(path); f != 1.0) {
        q->value *= f;
        if (q->integer) q->integer = std::llround(static_cast<double>(*q->integer) * f);
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
    check_bound(value.real, bound, value, path);
    const double scaled = value.real * factor(path);
    return bound == Bound::fraction ? std::min(scaled, 1.0) : scaled;
}

std::optional<std::int64_t> ValueReader::integer(const Value& outer, const std::string& path,
                                                 Bound bound) {
    const Value& value = unwrap(outer, path);
    if (value.kind != Value::Kind::integer) {
        error(value.at, path, fmt::format("expected a whole number, found {}", value.describe()));
        return std::nullopt;
    }
    check_bound(value.real, bound, value, path);
    const double f = factor(path);
    return f == 1.0 ? value.integer : std::llround(value.real * f);
}

// ---- sections
// --------------------------------------------------------------------------------------

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
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

Position Section::at(std::string_view key) const {
    const Value* value = table_ ? table_->find(key) : nullptr;
    return value ? value->at : at();
}

const Value* Section::take(const char* key, const std::string& type, const std::string& otherwise,
                           const char* doc, bool required) {
    known_.emplace_back(key);
    if (schema_ != nullptr) schema_->push_back({path(key), type, otherwise, doc, required});
    const Value* value = table_ ? table_->find(key) : nullptr;
    if (value == nullptr && required && schema_ == nullptr) {
        reader_.error(at(), path(key), fmt::format("is missing: {}", doc),
                      fmt::format("expected {}", type));
    }
    return value;
}

Section Section::section(const char* key) {
    known_.emplace_back(key);
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
    const Value* value =
        take(key, "whole number", shown(rules, fmt::format("{}", out)), doc, rules.required);
    if (value == nullptr) return;
    if (const auto n = reader_.integer(*value, path(key), rules.bound)) out = *n;
}

void Section::read(const char* key, double& out, const char* doc, KeyRules rules) {
    const char* type = rules.bound == Bound::fraction ? "fraction" : "number";
    const Value* value = take(key, type, shown(rules, fmt::format("{}", out)), doc, rules.required);
    if (value == nullptr) return;
    if (const auto n = reader_.number(*value, path(key), rules.bound)) out = *n;
}

void Section::read(const char* key, std::string& out, const char* doc, KeyRules rules) {
    const Value* value =
        take(key, "text", shown(rules, fmt::format("\"{}\"", out)), doc, rules.required);
    if (value == nullptr) return;
    if (value->kind != Value::Kind::string) {
        reader_.error(value->at, path(key),
                      fmt::format("expected text in quotes, found {}", value->describe()));
        return;
    }
    out = value->text;
}

std::optional<Quantity> Section::take_quantity(const char* key, Dimension dimension,
                                               const std::string& otherwise, const char* doc,
                                               const KeyRules& rules) {
    std::string type(dimension_name(dimension));
    type.erase(0, type.find(' ') + 1);
    const Value* value = take(key, type, otherwise, doc, rules.required);
    if (value == nullptr) return std::nullopt;
    return reader_.quantity(*value, path(key), {dimension}, rules.bound);
}

void Section::read(const char* key, Duration& out, const char* doc, KeyRules rules) {
    const auto q = take_quantity(key, Dimension::time, shown(rules, to_text(out)), doc, rules);
    if (q) out = Duration(*q->integer);
}

void Section::read(const char* key, Bytes& out, const char* doc, KeyRules rules) {
    const auto q = take_quantity(key, Dimension::data, shown(rules, to_text(out)), doc, rules);
    if (q) out = Bytes::of(*q->integer);
}

void Section::read(const char* key, Bandwidth& out, const char* doc, KeyRules rules) {
    const auto q = take_quantity(key, Dimension::bandwidth, shown(rules, to_text(out)), doc, rules);
    if (q) out = Bandwidth::bits_per_second(*q->integer);
}

void Section::read(const char* key, Flops& out, const char* doc, KeyRules rules) {
    const auto q = take_quantity(key, Dimension::compute, shown(rules, to_text(out)), doc, rules);
    if (q) out = Flops{q->value};
}

void Section::read(const char* key, Rate& out, const char* doc, KeyRules rules) {
    const auto q = take_quantity(key, Dimension::rate,
                                 shown(rules, fmt::format("{} /s", out.per_second)), doc, rules);
    if (q) out = Rate{q->value};
}

void Section::read_time_or_steps(const char* key, Duration& time, std::int64_t& step_count,
                                 const char* doc, KeyRules rules) {
    const Value* value =
        take(key, "time or number of steps", shown(rules, to_text(time)), doc, rules.required);
    if (value == nullptr) return;
    const auto q =
        reader_.quantity(*value, path(key), {Dimension::time, Dimension::steps}, rules.bound);
    if (!q) return;
    time = Duration(q->dimension == Dimension::time ? *q->integer : 0);
    step_count = q->dimension == Dimension::steps ? *q->integer : 0;
}

void Section::choose(const char* key, int& out, const std::vector<std::string>& words,
                     const char* doc) {
    const Value* value = take(key, fmt::format("one of {}", fmt::join(words, ", ")),
                              words[static_cast<std::size_t>(out)], doc, false);
    if (value == nullptr) return;
    const auto found = std::find(words.begin(), words.end(), value->text);
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
    const Value* value = take(key, fmt::format("name of {}", what),
                              shown(rules, out.empty() ? "none" : out), doc, rules.required);
    if (value == nullptr) return;
    if (value->kind != Value::Kind::string ||
        std::find(names.begin(), names.end(), value->text) == names.end()) {
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
        if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
            reader_.error(value.at, path(key), "unknown key", suggest(key, known_));
        }
    }
}

}  // namespace railyard
