#include "tools/language/schema.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/campaign/campaign.h"
#include "tools/program/json_text.h"

namespace railyard {

namespace {

// Units as alternatives of a regular expression, longest first: "GB/s" before "GB".
std::string alternatives(std::vector<std::string> units) {
    std::ranges::stable_sort(units,
                             [](const auto& a, const auto& b) { return a.size() > b.size(); });
    return fmt::format("{}", fmt::join(units, "|"));
}

std::vector<std::string> units_of(const std::vector<Dimension>& dimensions) {
    std::vector<std::string> units;
    for (const Dimension d : dimensions) {
        for (std::string& unit : unit_symbols(d)) units.push_back(std::move(unit));
    }
    return units;
}

// What parse_quantity reads: "400 Gbit/s", "400Gbps", "1.5e3 GB/s".
std::string quantity_pattern(const std::vector<std::string>& units, Bound bound) {
    const bool signed_number = bound == Bound::any;
    const bool nonzero = bound == Bound::positive || bound == Bound::at_least_one;
    const std::string number =
        nonzero ? R"((?:[0-9_]*[1-9][0-9_]*(?:\.[0-9_]*)?|[0-9_]*\.[0-9_]*[1-9][0-9_]*))"
                : R"((?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*))";
    return fmt::format(R"(^ *{}{}(?:[eE][+-]?[0-9]+)? *(?:{}) *$)",
                       signed_number ? "[+-]?" : "\\+?", number, alternatives(units));
}

void add_bounds(Json& type, Bound bound) {
    constexpr double count_max = 1e6;
    switch (bound) {
        case Bound::any:
            break;
        case Bound::positive:
            type["exclusiveMinimum"] = 0;
            break;
        case Bound::non_negative:
            type["minimum"] = 0;
            break;
        case Bound::fraction:
            type["minimum"] = 0;
            type["maximum"] = 1;
            break;
        case Bound::count:
            type["minimum"] = 1;
            type["maximum"] = static_cast<std::int64_t>(count_max);
            break;
        case Bound::at_least_one:
            type["minimum"] = 1;
            break;
    }
}

// The value, or { value = ..., source = ... }: ValueReader::unwrap.
Json or_with_source(const Json& plain) {
    const Json text = {{"type", "string"}};
    Json members = {{"value", plain},
                    {"class", {{"enum", {"datasheet", "paper", "seed", "estimate"}}}},
                    {"source", text},
                    {"note", text}};
    for (const char* name : {"low", "high", "seed", "seed_source", "recalled"}) {
        members[name] = true;
    }
    return {{"anyOf",
             {plain,
              {{"type", "object"},
               {"properties", members},
               {"required", {"value"}},
               {"additionalProperties", false}}}}};
}

// Types that many keys share stand once, under "definitions".
class Definitions {
  public:
    explicit Definitions(Json& out) : out_(out) {}

    Json reference(const std::string& name, const Json& plain) {
        if (!out_.contains(name)) out_[name] = or_with_source(plain);
        return {{{"$ref", "#/definitions/" + name}}};
    }
    Json quantity(const std::vector<Dimension>& dimensions, Bound bound) {
        std::string name;
        for (const Dimension d : dimensions) {
            const std::string_view each = dimension_name(d);
            name += (name.empty() ? "" : "_or_") + std::string(each.substr(each.find(' ') + 1));
        }
        std::replace(name.begin(), name.end(), ' ', '_');
        return reference(
            name + suffix(bound),
            {{"type", "string"}, {"pattern", quantity_pattern(units_of(dimensions), bound)}});
    }
    Json number(const char* type, Bound bound) {
        Json plain = {{"type", type}};
        add_bounds(plain, bound);
        return reference(type + suffix(bound), plain);
    }

  private:
    static std::string suffix(Bound bound) {
        constexpr const char* names[] = {"",          "_positive",     "_non_negative",
                                         "_fraction", "_at_least_one", "_count"};
        return names[static_cast<std::size_t>(bound)];
    }

    Json& out_;
};

// What holds without the key, where that is a value of the key's own type.
std::optional<Json> default_of(const SchemaRow& row) {
    const bool literal = row.type == "true or false" || row.type == "whole number" ||
                         row.type == "number" || row.type == "fraction";
    if (literal) {
        Json value = Json::parse(row.otherwise, nullptr, false);
        if (value.is_boolean() || value.is_number()) return value;
    }
    const auto found = std::ranges::find(row.words, row.otherwise);
    if (found != row.words.end()) return Json(*found);
    return std::nullopt;
}

// The first of the examples that messages print: "400 Gbit/s".
std::string example_of(Dimension dimension) {
    const std::string_view text = dimension_example(dimension);
    const std::size_t begin = text.find('"') + 1;
    return std::string(text.substr(begin, text.find('"', begin) - begin));
}

Json type_of(const SchemaRow& row, Definitions& definitions) {
    if (!row.words.empty()) return {{"enum", row.words}};
    if (!row.dimensions.empty()) {
        return {{"allOf", definitions.quantity(row.dimensions, row.bound)},
                {"examples", {example_of(row.dimensions[0])}}};
    }
    if (row.type == "whole number") return {{"allOf", definitions.number("integer", row.bound)}};
    if (row.type == "number" || row.type == "fraction") {
        return {{"allOf", definitions.number("number", row.bound)}};
    }
    if (row.type == "true or false") return {{"type", "boolean"}};
    if (row.type == "a list of values") return {{"type", "array"}, {"minItems", 1}};
    if (row.type == "a list of names") {
        return {{"type", "array"}, {"minItems", 1}, {"items", {{"type", "string"}}}};
    }
    if (row.type == "a number or a quantity") return {{"type", {"number", "string"}}};
    if (row.type == "text" || row.type.starts_with("name of")) return {{"type", "string"}};
    return {{"type", "object"}};
}

Json empty_table() {
    return {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
}

// The table that holds the row's key, made where it is not there yet; whoever requires a key of a table
// requires the table.
Json& table_of(Json& root, const SchemaRow& row) {
    Json* table = &root;
    std::string_view path = row.path;
    for (std::size_t dot; (dot = path.find('.')) != std::string_view::npos;
         path.remove_prefix(dot + 1)) {
        const std::string key(path.substr(0, dot));
        Json& properties = (*table)["properties"];
        if (!properties.contains(key)) properties[key] = empty_table();
        Json& next = properties[key];
        table = next.contains("items") ? &next["items"] : &next;
    }
    return *table;
}

void require(Json& root, const SchemaRow& row) {
    const std::size_t dot = row.path.rfind('.');
    const std::string key = row.path.substr(dot + 1);
    table_of(root, row)["required"].push_back(key);
    if (dot == std::string::npos) return;
    SchemaRow parent = row;
    parent.path = row.path.substr(0, dot);
    const std::string parent_key = parent.path.substr(parent.path.rfind('.') + 1);
    Json& above = table_of(root, parent);
    if (above["properties"][parent_key].contains("items")) return;  // each item has it
    Json& required = above["required"];
    if (std::find(required.begin(), required.end(), parent_key) == required.end()) {
        require(root, parent);
    }
}

void add(Json& root, const SchemaRow& row, Definitions& definitions) {
    Json key = {{"description", fmt::format("{}.\nA value: {}. Otherwise: {}.", row.doc, row.type,
                                            row.otherwise)}};
    if (row.type == "an array of tables") {
        key["type"] = "array";
        key["items"] = empty_table();
    } else {
        key.update(type_of(row, definitions));
        if (const auto value = default_of(row)) key["default"] = *value;
    }
    const std::string name = row.path.substr(row.path.rfind('.') + 1);
    table_of(root, row)["properties"][name] = std::move(key);
    if (row.required) require(root, row);
}

// What may stand in the place of a catalogue's value; nullopt: nothing may.
std::optional<Json> override_of(const Value& ours, Definitions& definitions) {
    const Value* value = ours.kind == Value::Kind::boolean ? &ours : ours.find("value");
    if (value == nullptr) return std::nullopt;
    if (value->kind == Value::Kind::integer || value->kind == Value::Kind::real) {
        return Json{{"allOf", definitions.number("number", Bound::non_negative)},
                    {"default", value->real}};
    }
    if (value->kind == Value::Kind::boolean) {
        return Json{{"allOf", definitions.reference("boolean", {{"type", "boolean"}})},
                    {"default", value->integer != 0}};
    }
    std::string why;
    const auto quantity = parse_quantity(value->text, why);
    if (value->kind != Value::Kind::string || !quantity) return std::nullopt;
    if (quantity->dimension != Dimension::price) {
        return Json{{"allOf", definitions.quantity({quantity->dimension}, Bound::non_negative)},
                    {"default", value->text}};
    }
    const std::string unit = value->text.substr(value->text.find("USD"));
    std::string name = unit;
    std::replace(name.begin(), name.end(), '/', '_');
    return Json{{"allOf", definitions.reference(
                              name, {{"type", "string"},
                                     {"pattern", quantity_pattern({unit}, Bound::non_negative)}})},
                {"default", value->text}};
}

Json overrides_of(const Value& entry, Definitions& definitions) {
    Json table = empty_table();
    for (const auto& [key, value] : entry.members) {
        if (auto type = override_of(value, definitions)) table["properties"][key] = *type;
    }
    return table;
}

Json overrides(Definitions& definitions) {
    Json table = empty_table();
    for (const std::string& kind : Catalogue::kinds()) {
        const std::vector<std::string> names = Catalogue::names(kind);
        Json& of_kind = table["properties"][kind];
        if (names == std::vector<std::string>{""}) {
            of_kind = overrides_of(*Catalogue::entry(kind, ""), definitions);
            continue;
        }
        of_kind = empty_table();
        for (const std::string& name : names) {
            of_kind["properties"][name] = overrides_of(*Catalogue::entry(kind, name), definitions);
        }
    }
    return table;
}

// What an entry of a scenario may say under a key.
Json own_value(const std::string& kind, const std::string& key, Definitions& definitions) {
    Json any = Json::array();
    const auto add_type = [&](Json type) {
        if (std::ranges::find(any, type) == any.end()) any.push_back(std::move(type));
    };
    for (const Value* ours : built_in_values(kind, key)) {
        const Value* inner = ours->find("value");
        if (const auto type = override_of(*ours, definitions)) {
            add_type((*type)["allOf"][0]);
        } else if ((inner ? inner : ours)->kind == Value::Kind::array) {
            add_type({{"type", "array"}});
        } else {
            const char* plain = ours->kind == Value::Kind::boolean ? "boolean" : "string";
            add_type(definitions.reference(plain, {{"type", plain}})[0]);
        }
    }
    return {{"anyOf", any}};
}

// The scenario's own entries of a kind: any names, the keys that ours have.
Json own_entries(const OpenKind& open, Definitions& definitions) {
    Json entry = empty_table();
    entry["properties"]["like"] = {
        {"type", "string"}, {"description", "The entry that it is like but for what it says"}};
    for (const std::string& key : keys_of(open.kind)) {
        entry["properties"][key] = own_value(open.kind, key, definitions);
    }
    return {{"type", "object"}, {"additionalProperties", entry}, {"description", open.doc}};
}

// [sweep], which only `railyard sweep` reads. A study may name its scenario instead of containing it.
void add_study(const std::vector<SchemaRow>& study, Json& root, Definitions& definitions) {
    for (const SchemaRow& row : study) add(root, row, definitions);
    Json& sweep = root["properties"]["sweep"];
    sweep["description"] = "The axes of a study: what 'railyard sweep' varies";
    sweep["required"] = {"axis"};
    sweep["properties"]["stop"]["required"] = {"half_width"};
    Json& axis = sweep["properties"]["axis"];
    axis["minItems"] = 1;
    axis["items"]["oneOf"] = {{{"required", {"values"}}}, {{"required", {"from", "to"}}}};
}

// Who needs what of a scenario: one that is whole has it all, a study may name another file for it, and a
// table of measurements has it from its columns.
void add_alternatives(Json& root) {
    Json required = Json::array();
    Json tables = Json::object();
    for (const Json& name : root["required"]) {
        const std::string key = name.get<std::string>();
        if (key == "table") continue;  // of what is in it, for those who have it
        required.push_back(key);
        Json& table = root["properties"][key];
        tables[key] = {{"required", table["required"]}};
        table.erase("required");
    }
    root.erase("required");
    const Json whole = {{"required", required}, {"properties", tables}};
    root["properties"]["table"]["required"] = {"expect"};
    root["anyOf"] = {
        whole,
        {{"required", {"sweep"}}, {"properties", {{"sweep", {{"required", {"scenario"}}}}}}},
        {{"required", {"table"}}}};
}

// [design], which only `railyard design` reads.
void add_design(const std::vector<SchemaRow>& rows, Json& root, Definitions& definitions) {
    for (const SchemaRow& row : rows) add(root, row, definitions);
    Json& design = root["properties"]["design"];
    design["description"] = "What is wanted, its limits and the space of designs";
    design["required"] = {"axis"};
    Json& axis = design["properties"]["axis"];
    axis["minItems"] = 1;
    axis["items"]["required"] = Json::array();
    axis["items"]["oneOf"] = {{{"required", {"key", "values"}}},
                              {{"required", {"key", "from", "to", "steps"}}},
                              {{"required", {"name", "option"}}}};
}

// The kind whose entries the row's words are, of those that a scenario may have entries of its own of.
const OpenKind* entries_of(const SchemaRow& row) {
    for (const OpenKind& open : open_kinds()) {
        const std::vector<std::string> names = Catalogue::names(open.kind);
        // A stack's version has a dot, and its entry none.
        const bool all = std::ranges::all_of(row.words, [&](std::string word) {
            std::ranges::replace(word, '.', '_');
            return std::ranges::find(names, word) != names.end();
        });
        if (all && !row.words.empty()) return &open;
    }
    return nullptr;
}

// `type` for the key at this path, below the keys that hold it.
Json constraint_at(const Json& root, std::string_view path, const Json& type) {
    const std::size_t dot = path.find('.');
    const std::string key(path.substr(0, dot));
    if (dot == std::string_view::npos) return {{"properties", {{key, type}}}};
    const Json& below = root["properties"][key];
    const bool array = below.contains("items");
    const Json inner = constraint_at(array ? below["items"] : below, path.substr(dot + 1), type);
    return {{"properties", {{key, array ? Json{{"items", inner}} : inner}}}};
}

// A scenario with entries of its own names them beside the catalogue's, and so does one with parts, or a
// table of measurements, that may make some.
void add_own_names(const std::vector<SchemaRow>& rows, Json& root, Json& definitions) {
    for (const SchemaRow& row : rows) {
        const OpenKind* open = entries_of(row);
        if (open == nullptr) continue;
        std::string name = fmt::format("names_of_{}", row.path);
        std::ranges::replace(name, '.', '_');
        definitions[name] = {{"enum", row.words}};
        const Json listed = {{"$ref", "#/definitions/" + name}};
        Json& key = table_of(root, row)["properties"][row.path.substr(row.path.rfind('.') + 1)];
        key.erase("enum");
        key["anyOf"] = {listed, {{"type", "string"}}};
        Json own = Json::array();
        for (const char* where : {open->section, "include", "table"}) {
            own.push_back({{"required", {where}}});
        }
        root["allOf"].push_back(
            {{"if", {{"not", {{"anyOf", own}}}}}, {"then", constraint_at(root, row.path, listed)}});
    }
}

// What fits on a line stands on one; the rest has a line for each member.
void print(const Json& value, std::size_t indent, std::string& out) {
    constexpr std::size_t columns_max = 400;
    const std::string line = one_line(value);
    if (!value.is_object() || line.size() <= columns_max) {
        out += line;
        return;
    }
    out += '{';
    bool first = true;
    for (const auto& [key, member] : value.items()) {
        out += fmt::format("{}\n{:{}}{}: ", first ? "" : ",", "", indent + 1, one_line(Json(key)));
        print(member, indent + 1, out);
        first = false;
    }
    out += fmt::format("\n{:{}}}}", "", indent);
}

}  // namespace

std::string scenario_json_schema(const std::vector<SchemaRow>& study,
                                 const std::vector<SchemaRow>& table,
                                 const std::vector<SchemaRow>& design) {
    Json root = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", "railyard scenario"},
                 {"description", "A GPU training cluster to be tried in simulation."}};
    root.update(empty_table());
    Json shared = Json::object();
    Definitions definitions(shared);
    for (const SchemaRow& row : scenario_schema()) add(root, row, definitions);
    Json& replaced = root["properties"]["override"];
    const Json described = replaced;
    replaced = overrides(definitions);
    replaced["description"] = described["description"];
    for (const OpenKind& open : open_kinds()) {
        root["properties"][open.section] = own_entries(open, definitions);
    }
    add_own_names(scenario_schema(), root, shared);
    add_study(study, root, definitions);
    for (const SchemaRow& row : table) add(root, row, definitions);
    root["properties"]["table"]["description"] =
        "What the columns of measurements are: for 'railyard verify'";
    add_design(design, root, definitions);
    add_alternatives(root);
    root["definitions"] = std::move(shared);
    std::string out;
    print(root, 0, out);
    return out + "\n";
}

}  // namespace railyard
