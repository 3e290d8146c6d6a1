#include "tools/study/dead_knobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace railyard {

namespace {

const std::set<std::string> left_out = {"title", "run.seed", "run.replicas", "run.events_max"};

struct Leaf {
    std::string path;
    const Value* value;
};

void collect(const Value& value, const std::string& path, std::vector<Leaf>& out) {
    if (const Value* inner = value.kind == Value::Kind::table ? value.find("value") : nullptr) {
        out.push_back({path, inner});
        return;
    }
    const std::string prefix = path.empty() ? path : fmt::format("{}.", path);
    for (const Member& member : value.members) collect(member.value, prefix + member.key, out);
    if (value.kind == Value::Kind::array) {
        for (std::size_t i = 0; i < value.items.size(); ++i) {
            if (value.items[i].kind != Value::Kind::table) return;  // a list of numbers or words
            collect(value.items[i], fmt::format("{}{}", prefix, i), out);
        }
    } else if (value.kind != Value::Kind::table) {
        out.push_back({path, &value});
    }
}

std::string text_of(const Value& value) {
    switch (value.kind) {
        case Value::Kind::string:
            return value.text;
        case Value::Kind::integer:
            return std::to_string(value.integer);
        case Value::Kind::boolean:
            return value.integer != 0 ? "true" : "false";
        case Value::Kind::real:
            return fmt::format("{:.12g}", value.real);
        default:
            return value.describe();
    }
}

std::vector<std::string> other_numbers(double number, const std::string& unit) {
    std::vector<std::string> out;
    const std::vector<double> factors = {0.5, 2, 0.9, 1.1};
    for (const double factor : factors) {
        out.push_back(fmt::format("{:.12g}{}", number == 0 ? factor : number * factor, unit));
    }
    return out;
}

std::vector<std::string> other_integers(std::int64_t number) {
    std::set<std::int64_t> values = {number - 1, number / 2};
    constexpr std::int64_t largest = 1'000'000'000'000;
    if (number < largest) values.insert({number + 1, number * 2});
    values.erase(number);
    std::vector<std::string> out;
    for (const std::int64_t value : values) out.push_back(std::to_string(value));
    return out;
}

// The words of a key's closed list.
std::vector<std::string> words_of(const std::string& path, const std::vector<SchemaRow>& schema) {
    const auto row =
        std::ranges::find_if(schema, [&](const SchemaRow& each) { return each.path == path; });
    return row == schema.end() ? std::vector<std::string>() : row->words;
}

std::vector<std::string> other_texts(const Leaf& leaf, const std::vector<SchemaRow>& schema) {
    const std::string& text = leaf.value->text;
    std::string why;
    if (const std::optional<Quantity> quantity = parse_quantity(text, why)) {
        return other_numbers(quantity->number, fmt::format(" {}", quantity->unit));
    }
    std::vector<std::string> out;
    for (const std::string& word : words_of(leaf.path, schema)) {
        if (word != text) out.push_back(word);
    }
    return out;
}

std::vector<std::string> other_values(const Leaf& leaf, const std::vector<SchemaRow>& schema) {
    switch (leaf.value->kind) {
        case Value::Kind::boolean:
            return {leaf.value->integer != 0 ? "false" : "true"};
        case Value::Kind::integer:
            return other_integers(leaf.value->integer);
        case Value::Kind::real:
            return other_numbers(leaf.value->real, "");
        case Value::Kind::string:
            return other_texts(leaf, schema);
        default:
            return {};
    }
}

}  // namespace

std::vector<Knob> turn_knobs(const TrialOptions& options, const ScenarioChanges& changes) {
    Diagnostics diagnostics;
    Document document = parse_with_includes(options.text, options.file, diagnostics);
    diagnostics.raise_if_any();
    std::vector<Leaf> leaves;
    collect(document.root, "", leaves);
    std::erase_if(leaves, [](const Leaf& leaf) { return left_out.contains(leaf.path); });

    const std::vector<SchemaRow> schema = scenario_schema();
    std::vector<Knob> knobs;
    std::vector<std::size_t> knob_of;
    std::vector<std::string> value_of;
    std::vector<ScenarioChanges> variants = {changes};
    for (const Leaf& leaf : leaves) {
        for (const std::string& other : other_values(leaf, schema)) {
            variants.push_back(changes);
            variants.back().settings.push_back(fmt::format("{}={}", leaf.path, other));
            knob_of.push_back(knobs.size());
            value_of.push_back(other);
        }
        knobs.push_back({leaf.path, text_of(*leaf.value), {}, true});
    }
    const std::vector<std::optional<Trial>> trials = run_trials(options, variants);
    std::set<std::size_t> unknown;  // interrupted
    for (std::size_t i = 1; i < trials.size(); ++i) {
        const std::size_t knob = knob_of[i - 1];
        if (!trials[0] || !trials[i]) {
            unknown.insert(knob);
        } else if (trials[i]->possible()) {
            knobs[knob].tried.push_back(value_of[i - 1]);
            if (trials[i]->fingerprint != trials[0]->fingerprint) knobs[knob].dead = false;
        }
    }
    std::vector<Knob> out;
    for (std::size_t k = 0; k < knobs.size(); ++k) {
        if (unknown.contains(k)) continue;
        knobs[k].dead = knobs[k].dead && !knobs[k].tried.empty();
        out.push_back(knobs[k]);
    }
    return out;
}

}  // namespace railyard
