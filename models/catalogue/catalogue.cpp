#include "models/catalogue/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <mutex>

#include "models/catalogue/catalogue_text.h"
#include "models/catalogue/measured_values.h"
#include "sim/check.h"

namespace railyard {

namespace {

struct File {
    std::string_view name;
    std::string_view text;
    std::once_flag parsed;
    Document document;
};

std::vector<File>& files() {
    static std::vector<File> all = [] {
        std::vector<File> out(std::size(catalogue_texts));
        for (std::size_t i = 0; i < out.size(); ++i) {
            out[i].name = catalogue_texts[i].name;
            out[i].text = catalogue_texts[i].text;
        }
        return out;
    }();
    return all;
}

const Document& parsed(File& file) {
    std::call_once(file.parsed, [&file] {
        Diagnostics diagnostics;
        file.document =
            parse_document(file.text, fmt::format("catalogue/{}", file.name), diagnostics);
        diagnostics.raise_if_any();
    });
    return file.document;
}

// The file that holds a kind's tables, found by the headings of the texts: a file that isn't needed is not
// parsed.
const std::map<std::string, File*, std::less<>>& files_by_kind() {
    static const std::map<std::string, File*, std::less<>> index = [] {
        std::map<std::string, File*, std::less<>> out;
        for (File& file : files()) {
            constexpr std::string_view heading = "\n[";
            for (std::size_t at = file.text.find(heading); at != std::string_view::npos;
                 at = file.text.find(heading, at + 1)) {
                const std::size_t start = at + heading.size();
                const std::size_t end = file.text.find_first_of(".]", start);
                const std::string kind(file.text.substr(start, end - start));
                if (kind != "source") out.emplace(kind, &file);
            }
        }
        return out;
    }();
    return index;
}

const Value* kind_table(std::string_view kind, const Document** document = nullptr) {
    const auto found = files_by_kind().find(kind);
    if (found == files_by_kind().end()) return nullptr;
    const Document& parsed_document = parsed(*found->second);
    if (document != nullptr) *document = &parsed_document;
    return parsed_document.root.find(kind);
}

// A kind is either a table of entries or, without names, one entry: then its members are values.
bool is_value(const Value& v) {
    return v.kind != Value::Kind::table || v.find("value") != nullptr;
}
bool is_single_entry(const Value& kind) {
    for (const auto& [key, member] : kind.members) {
        if (is_value(member)) return true;
    }
    return false;
}

std::string join(std::string_view kind, std::string_view name, std::string_view key) {
    return name.empty() ? fmt::format("{}.{}", kind, key)
                        : fmt::format("{}.{}.{}", kind, name, key);
}

// Names, words and lists are not overridden: another entry is chosen instead.
bool may_be_overridden(const Value& ours) {
    const Value* value = ours.find("value");
    return ours.kind == Value::Kind::boolean ||
           (value != nullptr && value->kind != Value::Kind::array);
}

}  // namespace

std::vector<std::string> Catalogue::kinds() {
    std::vector<std::string> out;
    for (File& file : files()) {
        for (const auto& [kind, table] : parsed(file).root.members) {
            if (kind != "source") out.push_back(kind);
        }
    }
    return out;
}

std::vector<std::string> Catalogue::names(std::string_view kind) {
    std::vector<std::string> out;
    const Value* table = kind_table(kind);
    if (table == nullptr) return out;
    if (is_single_entry(*table)) return {""};
    for (const auto& [name, value] : table->members) out.push_back(name);
    return out;
}

const Value* Catalogue::entry(std::string_view kind, std::string_view name) {
    const Value* table = kind_table(kind);
    if (table == nullptr || name.empty()) return table;
    return table->find(name);
}

std::string Catalogue::citation(std::string_view kind, std::string_view source) {
    const Document* document = nullptr;
    if (kind_table(kind, &document) != nullptr) {
        const Value* sources = document->root.find("source");
        const Value* text = sources ? sources->find(source) : nullptr;
        if (text != nullptr) return text->text;
    }
    return std::string(source);
}

Catalogue::Catalogue(ValueReader& reader, ValueChoice choice, const Value* overrides,
                     std::shared_ptr<OverridesRead> read, std::shared_ptr<const OwnEntries> own)
    : reader_(reader), choice_(choice), overrides_(overrides), own_(std::move(own)) {
    check_overrides();
    for (const OpenKind& open : open_kinds()) {
        for (const std::string& name : own_names(open.kind)) check_bounds(open.kind, name);
    }
    read_ = std::move(read);  // to check is not to read
}

std::vector<std::string> Catalogue::all_names(std::string_view kind) const {
    std::vector<std::string> out = names(kind);
    for (std::string& name : own_names(kind)) out.push_back(std::move(name));
    return out;
}

std::vector<std::string> Catalogue::own_names(std::string_view kind) const {
    return own_ != nullptr ? own_->names(kind) : std::vector<std::string>();
}

const Value* Catalogue::find_entry(std::string_view kind, std::string_view name) const {
    const Value* own = own_ ? own_->find(kind, name) : nullptr;
    return own != nullptr ? own : entry(kind, name);
}

std::string Catalogue::built_in_root(std::string_view kind, std::string_view name) const {
    const bool own = own_ != nullptr && own_->find(kind, name) != nullptr;
    return own ? own_->root(kind, name) : std::string(name);
}

// Whether the scenario has a say in a value.
bool Catalogue::changed(std::string_view kind, std::string_view name, std::string_view key) const {
    return overrides(kind, name, key) || (own_ != nullptr && own_->gives(kind, name, key));
}

namespace {

// No entry has more of the first than of the second.
struct Order {
    const char* less;
    const char* more;
    const char* because;
};
constexpr Order orders[] = {
    {"bf16_achievable", "bf16_dense", "no multiplication is faster than the peak"},
    {"fp8_achievable", "fp8_dense", "no multiplication is faster than the peak"},
    {"measured_gemm8192_bf16_random", "bf16_dense", "no multiplication is faster than the peak"},
    {"measured_gemm8192_bf16_zeros", "bf16_dense", "no multiplication is faster than the peak"},
    {"measured_copy_bandwidth", "hbm_bandwidth", "no copy is faster than the memory"},
    {"p2p_bandwidth_measured", "nvlink_bandwidth", "no copy is faster than the links"},
    {"p2p_link_bandwidth", "nvlink_bandwidth", "one link is not faster than all"},
    {"h2d_bandwidth_measured", "pcie_bandwidth", "no copy is faster than the bus"},
    {"d2h_bandwidth_measured", "pcie_bandwidth", "no copy is faster than the bus"},
    {"idle_power", "max_power", "nothing takes more when idle than at most"},
    {"measured_max_training_power", "max_power", "nothing takes more than at most"},
    {"throttle_temperature", "shutdown_temperature", "what is off is not throttled"},
    {"boost_clock", "max_clock", "no clock is above the highest"},
    {"rto_min", "rto_max", "the least is not above the most"},
    {"detection_time_min", "detection_time_max", "the least is not above the most"},
    {"restoration_time", "restoration_time_max", "the usual is not above the most"},
    {"kmin_per_25_gbit", "kmax_per_25_gbit", "marking starts before it is certain"},
    {"active_params", "params", "a token does not meet more than there are"},
};

// A part of a whole, by its name: "hbm_efficiency", "fraction".
bool named_as_share(std::string_view key) {
    const std::string words = fmt::format("_{}_", key);
    const auto has_word = [&](std::string_view word) {
        return words.find(fmt::format("_{}_", word)) != std::string::npos;
    };
    // An overhead is beside the whole.
    return !has_word("overhead") &&
           (has_word("efficiency") || has_word("fraction") || has_word("share") ||
            has_word("probability") || has_word("utilisation"));
}

// That of a number or a quantity, with its source or without.
std::optional<double> sourced_number(const Value& value) {
    return plain_number(inner_value(value));
}

// A number or a quantity, as it is written.
std::string shown(const Value& value) {
    const Value& inner = inner_value(value);
    return inner.kind == Value::Kind::string ? inner.text : fmt::format("{}", inner.real);
}

}  // namespace

// Efficiencies are at most 1, and what is achieved at most what there is.
void Catalogue::check_bounds(std::string_view kind, std::string_view name) {
    ValueReader checks(reader_.diagnostics(), reader_.file());  // to check is not to read
    const Value* ours = find_entry(kind, name);
    for (const Order& order : orders) {
        if (!changed(kind, name, order.less) && !changed(kind, name, order.more)) continue;
        if (!ours->find(order.less) || !ours->find(order.more)) continue;
        const Found less = find(kind, name, order.less);
        const Found more = find(kind, name, order.more);
        const std::optional<double> low = sourced_number(*less.value);
        const std::optional<double> high = sourced_number(*more.value);
        // Nothing at all is reported where it is read.
        if (!low || !high || *low <= *high || *high == 0) continue;
        error(kind, name, {order.less, order.more},
              fmt::format("{} = {} is more than {} = {}: {}", order.less, shown(*less.value),
                          order.more, shown(*more.value), order.because));
    }
    for (const auto& [key, value] : ours->members) {
        if (!changed(kind, name, key) || !named_as_share(key)) continue;
        const Found given = find(kind, name, key);
        if (sourced_number(*given.value)) checks.number(*given.value, given.path, Bound::fraction);
    }
}

// An override is what the catalogue's value is: a number, a quantity of the same dimension, or a flag.
void Catalogue::check_kind(const Value& given, const Value& ours, const std::string& path) {
    if (!may_be_overridden(ours)) {
        reader_.error(given.at, path, "can't be overridden: it is not one number, quantity or flag",
                      "choose an entry of the catalogue that has it as you want it");
        return;
    }
    check_same_kind(reader_, given, ours, path);
}

void Catalogue::check_overrides() {
    if (overrides_ == nullptr) return;
    const auto is_table = [&](const Value& given, const std::string& path) {
        if (given.kind == Value::Kind::table) return true;
        reader_.error(given.at, path, fmt::format("expected a table, found {}", given.describe()),
                      "write [override.gpu.h100_sxm], then hbm_efficiency = 0.8");
        return false;
    };
    for (const auto& [kind, by_name] : overrides_->members) {
        const Value* table = kind_table(kind);
        if (table == nullptr) {
            reader_.error(by_name.at, "override." + kind, "no such kind in the catalogue",
                          suggest(kind, kinds()));
            continue;
        }
        // False: something is wrong with them.
        const auto check_keys = [&](const Value& given, const Value& entry,
                                    const std::string& path) {
            const std::size_t errors = reader_.diagnostics().errors().size();
            if (!is_table(given, path)) return false;
            std::vector<std::string> keys;
            for (const auto& [key, value] : entry.members) keys.push_back(key);
            for (const auto& [key, value] : given.members) {
                const Value* ours = entry.find(key);
                if (ours == nullptr) {
                    reader_.error(value.at, path + "." + key,
                                  "the catalogue's entry has no such value", suggest(key, keys));
                    continue;
                }
                check_kind(value, *ours, path + "." + key);
            }
            return reader_.diagnostics().errors().size() == errors;
        };
        if (is_single_entry(*table)) {
            if (check_keys(by_name, *table, "override." + kind)) check_bounds(kind, "");
            continue;
        }
        if (!is_table(by_name, "override." + kind)) continue;
        for (const auto& [name, given] : by_name.members) {
            const std::string path = fmt::format("override.{}.{}", kind, name);
            if (const Value* entry = find_entry(kind, name)) {
                if (!check_keys(given, *entry, path)) continue;
                for (auto& [key, value] : measurements_that_follow(*entry, given)) {
                    following_.emplace(join(kind, name, key), std::move(value));
                }
                check_bounds(kind, name);
            } else {
                reader_.error(given.at, path, "no such entry in the catalogue",
                              suggest(name, all_names(kind)));
            }
        }
    }
}

bool Catalogue::has(std::string_view kind, std::string_view name, std::string_view key) const {
    const Value* e = find_entry(kind, name);
    return e != nullptr && e->find(key) != nullptr;
}

bool Catalogue::overrides(std::string_view kind, std::string_view name,
                          std::string_view key) const {
    const Value* given = overrides_ ? overrides_->find(kind) : nullptr;
    if (given != nullptr && !name.empty()) given = given->find(name);
    return given != nullptr && (key.empty() || given->find(key) != nullptr);
}

void Catalogue::warn_of_unread_overrides() {
    if (overrides_ == nullptr) return;
    const auto warn_of = [&](const Value& entry, const std::string& path) {
        for (const auto& [key, value] : entry.members) {
            const std::string whole = path + "." + key;
            if (read_ == nullptr || !read_->contains(whole)) {
                reader_.warning(value.at, whole, "has no effect: nothing here reads it");
            }
        }
    };
    for (const auto& [kind, by_name] : overrides_->members) {
        if (is_single_entry(*kind_table(kind))) {
            warn_of(by_name, "override." + kind);
            continue;
        }
        for (const auto& [name, given] : by_name.members) {
            warn_of(given, fmt::format("override.{}.{}", kind, name));
        }
    }
}

void Catalogue::error(std::string_view kind, std::string_view name,
                      std::initializer_list<const char*> keys, std::string message) {
    const auto given =
        std::ranges::find_if(keys, [&](const char* key) { return changed(kind, name, key); });
    const Found found = find(kind, name, given != keys.end() ? *given : *keys.begin());
    reader_.error(found.value->at, found.path, std::move(message));
}

Catalogue::Found Catalogue::find(std::string_view kind, std::string_view name,
                                 std::string_view key) {
    const Value* given = overrides_ ? overrides_->find(kind) : nullptr;
    if (given != nullptr && !name.empty()) given = given->find(name);
    if (given != nullptr) given = given->find(key);

    const Value* e = find_entry(kind, name);
    RY_CHECK(e != nullptr);
    if (e->find(key) == nullptr) refuse_without(kind, name, key);
    const Value* value = e->find(key);
    // Names and words stay ours: check_overrides has reported who tries to replace one.
    if (given != nullptr && may_be_overridden(*value)) {
        std::string path = "override." + join(kind, name, key);
        if (read_ != nullptr) read_->add(path);
        return {given, std::move(path)};
    }
    if (choice_ == ValueChoice::seed && value->kind == Value::Kind::table) {
        if (const Value* seed = value->find("seed")) value = seed;
    }
    const auto following = following_.find(join(kind, name, key));
    if (following != following_.end()) value = &following->second;
    const bool own = own_ != nullptr && own_->find(kind, name) != nullptr;
    return {value, join(own ? section_of(kind) : kind, name, key)};
}

void Catalogue::refuse_without(std::string_view kind, std::string_view name, std::string_view key) {
    RY_CHECK(own_ != nullptr && own_->find(kind, name) != nullptr &&
             !built_in_values(kind, key).empty());
    reader_.error(own_->find(kind, name)->at, join(section_of(kind), name, key),
                  "is missing: it is needed here",
                  fmt::format("{} = {}, or like an entry that has it", key, example_of(kind, key)));
    reader_.diagnostics().raise_if_any();
    std::abort();  // there is an error
}

Quantity Catalogue::quantity(std::string_view kind, std::string_view name, std::string_view key,
                             Dimension dimension) {
    const Found found = find(kind, name, key);
    // A time may be zero; a size or a speed of nothing is no part of any machine.
    const Bound bound = dimension == Dimension::time || dimension == Dimension::rate
                            ? Bound::non_negative
                            : Bound::positive;
    return reader_.quantity(*found.value, found.path, {dimension}, bound)
        .value_or(Quantity::one(dimension));
}

double Catalogue::number(std::string_view kind, std::string_view name, std::string_view key,
                         std::optional<double> otherwise) {
    if (otherwise && !has(kind, name, key)) return *otherwise;
    const Found found = find(kind, name, key);
    return reader_.number(*found.value, found.path, Bound::non_negative).value_or(1.0);
}

namespace {

// What can't be read has been reported where it was checked.
double plain(const Value* value) {
    return value ? sourced_number(*value).value_or(0) : 0;
}

std::string unit_of(const Value& value) {
    if (value.kind != Value::Kind::string) return "";
    return value.text.substr(std::min(value.text.size(), value.text.find_first_of("U/")));
}

}  // namespace

ValueRange Catalogue::range(std::string_view kind, std::string_view name, std::string_view key) {
    const Found found = find(kind, name, key);
    const Value* ours = find_entry(kind, name)->find(key);
    const Value* inner = found.value->find("value");
    ValueRange out;
    out.value = plain(inner ? inner : found.value);
    out.low = out.high = out.value;
    out.unit = unit_of(*ours->find("value"));
    const Value* type = found.value->find("class");
    const bool overridden = found.path.starts_with("override.");
    const bool seed = inner == nullptr;
    if (overridden || (!seed && type == nullptr)) {
        out.origin = "the scenario";
    } else {
        const Value* source = ours->find(seed ? "seed_source" : "source");
        out.origin = fmt::format("{}: {}", seed ? "seed" : type->text,
                                 citation(kind, source ? source->text : ""));
    }
    if (const Value* low = found.value->find("low"), *high = found.value->find("high");
        low && high) {
        out.low = std::min(plain(low), out.value);
        out.high = std::max(plain(high), out.value);
    } else if (type != nullptr && type->text == "estimate") {
        out.low *= estimate_spread_low;
        out.high *= estimate_spread_high;
    }
    return out;
}

std::int64_t Catalogue::integer(std::string_view kind, std::string_view name, std::string_view key,
                                std::optional<std::int64_t> otherwise) {
    if (otherwise && !has(kind, name, key)) return *otherwise;
    const Found found = find(kind, name, key);
    const Value& value = *found.value;
    const bool chosen = value.find("low") == nullptr;
    return reader_.integer(chosen ? inner_value(value) : value, found.path, Bound::positive)
        .value_or(1);
}
std::vector<double> Catalogue::numbers(std::string_view kind, std::string_view name,
                                       std::string_view key) {
    const Found found = find(kind, name, key);
    std::vector<double> out;
    for (const Value& item : reader_.unwrap(*found.value, found.path).items) {
        out.push_back(reader_.number(item, found.path, Bound::non_negative).value_or(1.0));
    }
    return out;
}
std::vector<Duration> Catalogue::times(std::string_view kind, std::string_view name,
                                       std::string_view key) {
    const Found found = find(kind, name, key);
    std::vector<Duration> out;
    for (const Value& item : reader_.unwrap(*found.value, found.path).items) {
        const auto time =
            reader_.quantity(item, found.path, {Dimension::time}, Bound::non_negative);
        out.emplace_back(time && time->integer ? *time->integer : 1);
    }
    return out;
}
std::vector<Bandwidth> Catalogue::bandwidths(std::string_view kind, std::string_view name,
                                             std::string_view key) {
    const Found found = find(kind, name, key);
    std::vector<Bandwidth> out;
    for (const Value& item : reader_.unwrap(*found.value, found.path).items) {
        const auto speed =
            reader_.quantity(item, found.path, {Dimension::bandwidth}, Bound::positive);
        out.push_back(Bandwidth::bits_per_second(speed && speed->integer ? *speed->integer : 1));
    }
    return out;
}
std::string Catalogue::text(std::string_view kind, std::string_view name, std::string_view key,
                            std::optional<std::string> otherwise) {
    if (otherwise && !has(kind, name, key)) return *otherwise;
    return find(kind, name, key).value->text;
}
bool Catalogue::flag(std::string_view kind, std::string_view name, std::string_view key,
                     std::optional<bool> otherwise) {
    if (otherwise && !has(kind, name, key)) return *otherwise;
    const Found found = find(kind, name, key);
    return reader_.unwrap(*found.value, found.path).integer != 0;
}

StandaloneCatalogue::StandaloneCatalogue(ValueChoice choice, const Value* overrides,
                                         std::string file, Perturbations perturbations,
                                         std::shared_ptr<OverridesRead> read,
                                         std::shared_ptr<const OwnEntries> own)
    : reader(diagnostics, std::move(file), std::move(perturbations)),
      catalogue(reader, choice, overrides, std::move(read), std::move(own)) {}

StandaloneCatalogue::~StandaloneCatalogue() = default;

}  // namespace railyard
