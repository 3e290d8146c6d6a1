#include "tools/cli/calculator_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/program/lists.h"

namespace railyard {

void CalculatorInputs::wrong(const char* key, const std::string& message, const std::string& help) {
    own_.diagnostics.error("", {}, fmt::format("--{}", key), message, help);
}

void CalculatorInputs::need(const std::vector<std::string>& keys) const {
    if (std::ranges::any_of(keys, [&](const std::string& key) { return has(key.c_str()); })) return;
    throw ScenarioError(fmt::format("needs --{}", fmt::join(keys, " or --")));
}

Quantity CalculatorInputs::quantity(const char* key, Dimension dimension) {
    return own_.reader
        .quantity(Value::of(text(key)), fmt::format("--{}", key), {dimension}, Bound::positive)
        .value_or(Quantity::one(dimension));
}

double CalculatorInputs::number(const char* key, Bound bound) {
    Value v = Value::of(text(key));
    char* end = nullptr;
    const double parsed = std::strtod(v.text.c_str(), &end);
    if (v.text.empty() || *end != '\0' || !std::isfinite(parsed)) {
        wrong(key, fmt::format("expected a number such as 70e9, found {}", v.describe()));
        return 1;
    }
    v.kind = Value::Kind::real;
    v.real = parsed;
    return own_.reader.number(v, fmt::format("--{}", key), bound).value_or(1);
}

int CalculatorInputs::choice(const char* key, const std::vector<std::string>& words) {
    const auto word = std::ranges::find(words, text(key));
    if (word != words.end()) return static_cast<int>(word - words.begin());
    wrong(key, fmt::format("expected one of {}, found '{}'", fmt::join(words, ", "), text(key)));
    return 0;
}

std::string CalculatorInputs::entry(const char* key, const char* kind,
                                    const std::vector<std::string>& names) {
    std::string name = text(key);
    if (contains(names, name)) return name;
    wrong(key, fmt::format("no {} '{}' in the catalogue", kind, name), suggest(name, names));
    return "";
}

TransformerModel CalculatorInputs::model() {
    const std::string name = entry("model", "model");
    check();
    return read_model(own_.catalogue, name);
}

double CalculatorInputs::params(bool active) {
    if (has("params")) return number("params");
    return active ? active_parameter_count(model()) : parameter_count(model());
}

}  // namespace railyard
