#include "models/catalogue/own_entries.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/catalogue/catalogue.h"
#include "models/catalogue/measured_values.h"

namespace railyard {

const std::vector<OpenKind>& open_kinds() {
    static const std::vector<OpenKind> kinds = {
        {"gpu", "gpu", "GPUs beside the catalogue's, as [gpu.mine] like = \"h100_sxm\""},
        {"node", "node", "Nodes beside the catalogue's, as [node.mine] like = \"dgx_h100\""},
        {"nic", "nic", "NICs beside the catalogue's, as [nic.mine] like = \"cx7_ndr400\""},
        {"switch", "switch", "Switches beside the catalogue's, as [switch.mine] ports = 64"},
        {"model", "model",
         "Models beside the catalogue's, as [model.mine] layers = 32; a given params is a check of "
         "the shape"},
        {"storage", "storage_system",
         "Storage systems beside the catalogue's, as [storage_system.mine] like = \"weka\""},
        {"software", "software",
         "Software stacks beside the catalogue's, as [software.mine] like = \"nemo_25.09\""},
        {"price", "price",
         "Prices beside the catalogue's, for price_ref, as [price.mine] price = \"250 kUSD\""},
    };
    return kinds;
}

std::string_view section_of(std::string_view kind) {
    for (const OpenKind& open : open_kinds()) {
        if (open.kind == kind) return open.section;
    }
    return kind;
}

namespace {

constexpr const char* like_key = "like";

// Keys whose text is the name of another entry.
struct Reference {
    const char* kind;
    const char* key;
    const char* to;
};
constexpr Reference references[] = {
    {"node", "gpu", "gpu"},
    {"node", "compute_nic", "nic"},
    {"node", "storage_nic", "nic"},
    {"node", "price_ref", "price"},
    {"gpu", "price_ref", "price"},
    {"gpu", "rental_ref", "price"},
    {"gpu", "arch", "step_model"},
    {"software", "attention_kernel", "attention_kernel"},
    {"nic", "price_ref", "price"},
    {"switch", "price_ref", "price"},
    {"storage", "price_ref", "price"},
    {"optics", "price_ref", "price"},
    {"optics", "price_ref_800g", "price"},
};

// Keys whose text is for people, or judged where it is used: it may be anything, and may be missing. Other
// keys take the words that the catalogue's own entries use.
constexpr const char* free_texts[] = {"name",      "vendor",       "cpu",
                                      "asic",      "pcie",         "note",
                                      "seed_name", "protocol",     "failure_behaviour",
                                      "ost_raid",  "network",      "protection",
                                      "metadata",  "layer_pattern"};

// What a model's shape decides: an entry that is like another and has another shape has other counts.
constexpr const char* counts_of_shape[] = {"params", "active_params"};

template <class List>
bool is_among(std::string_view word, const List& list) {
    return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

const char* referred_kind(std::string_view kind, std::string_view key) {
    for (const Reference& reference : references) {
        if (reference.kind == kind && reference.key == key) return reference.to;
    }
    return nullptr;
}

std::optional<Quantity> quantity_of(const Value& value) {
    std::string why;
    if (inner_value(value).kind != Value::Kind::string) return std::nullopt;
    return parse_quantity(inner_value(value).text, why);
}

// "USD/TB" of "400 USD/TB".
std::string currency_of(const Value& value) {
    const std::string& text = inner_value(value).text;
    const std::size_t at = text.find("USD");
    return at == std::string::npos ? "" : text.substr(at);
}

// Picks the one of our values that the given is most like: prices have several units.
const Value& nearest(const std::vector<const Value*>& ours, const Value& given) {
    const std::optional<Quantity> found = quantity_of(given);
    for (const Value* each : ours) {
        const std::optional<Quantity> other = quantity_of(*each);
        if (found && other && found->dimension == other->dimension &&
            currency_of(given) == currency_of(*each)) {
            return *each;
        }
    }
    return *ours.front();
}

bool all_whole(const std::vector<const Value*>& ours) {
    return std::ranges::all_of(
        ours, [](const Value* each) { return inner_value(*each).kind == Value::Kind::integer; });
}

// A scenario writes a version with its dot, "nemo_25.09"; the catalogue can't.
std::string id_of(std::string_view kind, std::string name) {
    if (kind == "software") std::ranges::replace(name, '.', '_');
    return name;
}

// Belongs to the catalogue's own tables, and says nothing to a scenario.
bool is_for_tables(std::string_view kind, std::string_view key) {
    return kind == "software" && key == "published_in";
}

std::string path_of(std::string_view kind, std::string_view name, std::string_view key = {}) {
    std::string out = fmt::format("{}.{}", section_of(kind), name);
    return key.empty() ? out : fmt::format("{}.{}", out, key);
}

// The same value in the form that ours has: a number with a source, a name without.
Value in_form_of(const Value& ours, const Value& given) {
    const bool sourced = ours.find("value") != nullptr;
    if (sourced == (given.find("value") != nullptr)) return given;
    if (!sourced) return inner_value(given);
    Value out;
    out.at = given.at;
    out.members.push_back({"value", given});
    return out;
}

// Where a value is another entry's, messages name the place of `like`.
void place_at(Value& value, const Position& at) {
    value.at = at;
    for (auto& [name, member] : value.members) place_at(member, at);
    for (Value& item : value.items) place_at(item, at);
}

void set(Value& entry, const std::string& key, Value value) {
    if (Value* there = entry.find(key)) {
        *there = std::move(value);
    } else {
        entry.members.push_back({key, std::move(value)});
    }
}

void check_range(ValueReader& reader, const Value& given, const std::string& path) {
    const auto number = [](const Value* value) -> std::optional<double> {
        if (value == nullptr) return std::nullopt;
        if (value->kind != Value::Kind::string) return value->real;
        const std::optional<Quantity> quantity = quantity_of(*value);
        return quantity ? std::optional(quantity->value) : std::nullopt;
    };
    const auto middle = number(given.find("value"));
    const auto low = number(given.find("low"));
    const auto high = number(given.find("high"));
    if (middle && ((low && *low > *middle) || (high && *high < *middle))) {
        reader.error(given.at, path, "expected low <= value <= high");
    }
}

}  // namespace

std::vector<std::string> keys_of(std::string_view kind) {
    std::vector<std::string> out;
    for (const std::string& name : Catalogue::names(kind)) {
        for (const auto& [key, value] : Catalogue::entry(kind, name)->members) {
            if (!is_among(key, out) && !is_for_tables(kind, key)) out.push_back(key);
        }
    }
    return out;
}

std::vector<const Value*> built_in_values(std::string_view kind, std::string_view key) {
    std::vector<const Value*> out;
    for (const std::string& name : Catalogue::names(kind)) {
        if (const Value* value = Catalogue::entry(kind, name)->find(key)) out.push_back(value);
    }
    return out;
}

std::string example_of(std::string_view kind, std::string_view key) {
    const Value& ours = inner_value(*built_in_values(kind, key).front());
    return ours.kind == Value::Kind::string    ? fmt::format("\"{}\"", ours.text)
           : ours.kind == Value::Kind::boolean ? std::string(ours.integer != 0 ? "true" : "false")
                                               : fmt::format("{}", ours.real);
}

void check_same_kind(ValueReader& reader, const Value& given, const Value& ours,
                     const std::string& path) {
    const Value& value = inner_value(ours);
    std::string why;
    if (value.kind == Value::Kind::boolean) {
        const Value& text = reader.unwrap(given, path);
        if (text.kind != Value::Kind::boolean) {
            reader.error(given.at, path,
                         fmt::format("expected true or false, found {}", text.describe()));
        }
    } else if (value.kind != Value::Kind::string) {
        reader.number(given, path, Bound::non_negative);
    } else if (const auto quantity = parse_quantity(value.text, why)) {
        reader.quantity(given, path, {quantity->dimension}, Bound::non_negative);
        const Value& text = reader.unwrap(given, path);
        const std::string per = value.text.substr(value.text.find("USD") + 3);
        if (quantity->dimension == Dimension::price && !text.text.ends_with("USD" + per)) {
            reader.error(given.at, path, fmt::format("expected a price in USD{}", per));
        }
    }
}

OwnEntries::OwnEntries(ValueReader& reader, const Value& root) {
    // To check a value is not to read it: its estimates are noted by whoever uses them.
    ValueReader checks(reader.diagnostics(), reader.file());
    collect(checks, root);
    for (Entry& each : entries_) resolve(checks, each);
    for (Entry& each : entries_) each.given = nullptr;
}

void OwnEntries::collect(ValueReader& reader, const Value& root) {
    constexpr const char* letters =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    for (const OpenKind& kind : open_kinds()) {
        const Value* section = root.find(kind.section);
        if (section == nullptr) continue;
        if (section->kind != Value::Kind::table) {
            reader.error(section->at, kind.section,
                         fmt::format("expected a table of entries, found {}", section->describe()),
                         fmt::format("[{}.mine]", kind.section));
            continue;
        }
        for (const auto& [name, given] : section->members) {
            const std::string path = path_of(kind.kind, name);
            if (given.kind != Value::Kind::table || given.find("value") != nullptr) {
                reader.error(given.at, path,
                             fmt::format("expected an entry of the catalogue, a table, found {}",
                                         given.find("value") ? "a value" : given.describe()),
                             fmt::format("[{}.mine], then its keys", kind.section));
            } else if (name.empty() || name.find_first_not_of(letters) != std::string::npos) {
                reader.error(given.at, path, "expected a name of letters, digits, - and _");
            } else if (Catalogue::entry(kind.kind, name) != nullptr) {
                reader.error(given.at, path, "is the name of one of the catalogue's own entries",
                             fmt::format("[override.{}.{}] changes that one; another name with "
                                         "like = \"{}\" is beside it",
                                         kind.kind, name, name));
            } else {
                entries_.push_back({kind.kind, name, &given, {}, {}, {}, Entry::State::untouched});
            }
        }
    }
}

void OwnEntries::resolve(ValueReader& reader, Entry& entry) {
    if (entry.state != Entry::State::untouched) return;
    entry.state = Entry::State::open;
    entry.value.at = entry.given->at;
    if (const Value* like = entry.given->find(like_key)) start_like(reader, entry, *like);
    const Value like = entry.value;
    add_given(reader, entry);
    for (auto& [key, value] : measurements_that_follow(like, *entry.given)) {
        set(entry.value, key, std::move(value));
    }
    require(reader, entry);
    entry.state = Entry::State::done;
}

void OwnEntries::start_like(ValueReader& reader, Entry& entry, const Value& like) {
    const std::string path = path_of(entry.kind, entry.name, like_key);
    if (like.kind != Value::Kind::string) {
        return reader.error(
            like.at, path,
            fmt::format("expected the name of a {}, found {}", entry.kind, like.describe()));
    }
    if (const Value* built_in = Catalogue::entry(entry.kind, id_of(entry.kind, like.text))) {
        entry.value = *built_in;
        entry.root = id_of(entry.kind, like.text);
    } else {
        const auto base = std::ranges::find_if(entries_, [&](const Entry& each) {
            return each.kind == entry.kind && each.name == like.text;
        });
        if (base == entries_.end()) {
            return reader.error(like.at, path,
                                fmt::format("there is no {} '{}'", entry.kind, like.text),
                                suggest(like.text, all_names(entry.kind)));
        }
        if (base->state == Entry::State::open) {
            return reader.error(
                like.at, path,
                entry.name == base->name
                    ? std::string("is like itself")
                    : fmt::format("{} and {} are each like the other", entry.name, base->name),
                "one of them must say what it is, or be like a built-in entry");
        }
        resolve(reader, *base);
        entry.value = base->value;
        entry.root = base->root;
    }
    place_at(entry.value, like.at);
    entry.value.at = entry.given->at;
    if (entry.kind == "model" && entry.given->members.size() > 1) {
        std::erase_if(entry.value.members,
                      [](const Member& m) { return is_among(m.key, counts_of_shape); });
    }
}

void OwnEntries::add_given(ValueReader& reader, Entry& entry) {
    std::vector<std::string> known = keys_of(entry.kind);
    if (is_among("name", known)) {
        Value name = Value::of(entry.name);
        name.at = entry.given->at;
        set(entry.value, "name", std::move(name));
    }
    known.emplace_back(like_key);
    for (const auto& [key, given] : entry.given->members) {
        if (key == like_key) continue;
        if (!is_among(key, known)) {
            reader.error(given.at, path_of(entry.kind, entry.name, key),
                         fmt::format("no {} in the catalogue has such a value", entry.kind),
                         suggest(key, known));
            continue;
        }
        const std::size_t errors = reader.diagnostics().errors().size();
        check_value(reader, entry, key, given);
        if (reader.diagnostics().errors().size() != errors) continue;
        entry.keys.push_back(key);
        set(entry.value, key, in_form_of(*built_in_values(entry.kind, key).front(), given));
    }
}

void OwnEntries::check_value(ValueReader& reader, const Entry& entry, const std::string& key,
                             const Value& given) {
    const std::string path = path_of(entry.kind, entry.name, key);
    const std::vector<const Value*> ours = built_in_values(entry.kind, key);
    const Value& like = nearest(ours, given);
    const bool list = std::ranges::any_of(
        ours, [](const Value* each) { return inner_value(*each).kind == Value::Kind::array; });
    if (inner_value(given).kind == Value::Kind::array && list) {
        reader.unwrap(given, path);
        const auto first = std::ranges::find_if(ours, [](const Value* each) {
            return inner_value(*each).kind == Value::Kind::array &&
                   !inner_value(*each).items.empty();
        });
        for (const Value& item : inner_value(given).items) {
            check_same_kind(reader, item, inner_value(**first).items.front(), path);
        }
        return;
    }
    const Value::Kind kind = inner_value(like).kind;
    if (kind == Value::Kind::string && !quantity_of(like)) {
        return check_word(reader, entry, key, given, path);
    }
    if (kind == Value::Kind::integer && all_whole(ours)) {
        reader.integer(given, path, Bound::non_negative);
    } else {
        check_same_kind(reader, given, like, path);
    }
    check_range(reader, given, path);
}

void OwnEntries::check_word(ValueReader& reader, const Entry& entry, const std::string& key,
                            const Value& given, const std::string& path) {
    const Value& text = reader.unwrap(given, path);
    if (text.kind != Value::Kind::string) {
        return reader.error(text.at, path,
                            fmt::format("expected text in quotes, found {}", text.describe()));
    }
    if (is_among(key, free_texts)) return;
    std::vector<std::string> words;
    if (const char* to = referred_kind(entry.kind, key)) {
        words = all_names(to);
        std::erase(words, "all");  // holds for each of a kind, and is none of them
    } else {
        for (const Value* each : built_in_values(entry.kind, key)) {
            if (!is_among(inner_value(*each).text, words)) words.push_back(inner_value(*each).text);
        }
    }
    if (is_among(text.text, words)) return;
    reader.error(text.at, path, fmt::format("'{}' is not known here", text.text),
                 suggest(text.text, words));
}

// What every built-in entry has, an entry of a scenario needs, too.
void OwnEntries::require(ValueReader& reader, Entry& entry) {
    const std::size_t all = Catalogue::names(entry.kind).size();
    for (const std::string& key : keys_of(entry.kind)) {
        const std::vector<const Value*> ours = built_in_values(entry.kind, key);
        const bool optional =
            ours.size() < all || is_among(key, free_texts) || is_among(key, counts_of_shape);
        if (optional || entry.value.find(key) != nullptr) continue;
        if (!entry.given->find(key) && !entry.given->find(like_key)) {
            reader.error(entry.given->at, path_of(entry.kind, entry.name, key),
                         fmt::format("is missing: every {} has one", entry.kind),
                         fmt::format("{} = {}, or like = \"{}\"", key, example_of(entry.kind, key),
                                     Catalogue::names(entry.kind).front()));
        }
        set(entry.value, key, *ours.front());  // so that all else can be judged
    }
    if (entry.kind == "storage" && entry.root.empty() && !entry.given->find(like_key)) {
        reader.error(entry.given->at, path_of(entry.kind, entry.name, like_key),
                     "is missing: a system works like one of the catalogue's", "like = \"weka\"");
    }
}

const OwnEntries::Entry* OwnEntries::entry(std::string_view kind, std::string_view name) const {
    for (const Entry& each : entries_) {
        if (each.kind == kind && each.name == name) return &each;
    }
    return nullptr;
}

const Value* OwnEntries::find(std::string_view kind, std::string_view name) const {
    const Entry* found = entry(kind, name);
    return found != nullptr ? &found->value : nullptr;
}

std::string OwnEntries::root(std::string_view kind, std::string_view name) const {
    const Entry* found = entry(kind, name);
    return found != nullptr ? found->root : "";
}

bool OwnEntries::gives(std::string_view kind, std::string_view name, std::string_view key) const {
    const Entry* found = entry(kind, name);
    return found != nullptr && is_among(key, found->keys);
}

std::vector<std::string> OwnEntries::names(std::string_view kind) const {
    std::vector<std::string> out;
    for (const Entry& each : entries_) {
        if (each.kind == kind) out.push_back(each.name);
    }
    return out;
}

std::vector<std::string> OwnEntries::all_names(std::string_view kind) const {
    std::vector<std::string> out = Catalogue::names(kind);
    for (std::string& own : names(kind)) out.push_back(std::move(own));
    return out;
}

}  // namespace railyard
