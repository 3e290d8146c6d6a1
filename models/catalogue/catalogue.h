#pragma once
// The catalogue: hardware, systems, models, failures and prices, each value with its source and
// class. The TOML files in this folder are built into the program.
//
// A value may have two numbers: the corrected one, and the one that the seed guides print.
// Everything is read through one Catalogue per scenario, which knows which of the two is wanted,
// what the scenario overrides, and which values were read: those are the ones an answer can hang
// on.

#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/catalogue/own_entries.h"
#include "sim/config.h"

namespace railyard {

enum class ValueChoice : std::uint8_t { corrected, seed };

// A number with the range that is printed for it. All three are equal when none is.
struct ValueRange {
    double low = 0;
    double value = 0;
    double high = 0;
    std::string unit;  // as our entry has it: "USD", "USD/kWh"; empty for a plain number
    std::string
        origin;  // "paper: its citation in full", or "the scenario" for one that it overrides
};

// Paths of the overrides that somebody has read: "override.gpu.h100_sxm.max_power". From any thread.
class OverridesRead {
  public:
    void add(const std::string& path) {
        const std::lock_guard lock(mutex_);
        paths_.insert(path);
    }
    bool contains(const std::string& path) const {
        const std::lock_guard lock(mutex_);
        return paths_.contains(path);
    }

  private:
    mutable std::mutex mutex_;
    std::set<std::string> paths_;
};

class Catalogue {
  public:
    // `overrides` is a scenario's [override] table (kind.name.key = value), or nullptr; it must
    // outlive the catalogue. Entries and keys in it that don't exist are reported to the reader.
    // Those that are read are noted in `read`, which catalogues of one scenario share.
    // `own` are the entries that the scenario brings along, or nullptr.
    Catalogue(ValueReader& reader, ValueChoice choice, const Value* overrides,
              std::shared_ptr<OverridesRead> read = nullptr,
              std::shared_ptr<const OwnEntries> own = nullptr);

    // Built-in entries of a kind ("gpu"), in the files' order.
    static std::vector<std::string> names(std::string_view kind);
    static std::vector<std::string> kinds();
    // The entry as written; nullptr when there is none. A kind without names has the one entry "".
    static const Value* entry(std::string_view kind, std::string_view name);
    // The full citation behind the short source key of an entry of this kind; the key when unknown.
    static std::string citation(std::string_view kind, std::string_view source);

    // The built-in entries and the scenario's.
    std::vector<std::string> all_names(std::string_view kind) const;
    std::vector<std::string> own_names(std::string_view kind) const;  // the scenario's alone
    // A built-in entry or one of the scenario's, with all that it has from others.
    const Value* find_entry(std::string_view kind, std::string_view name) const;
    // The built-in entry that one of the scenario is like in the end; the name itself of a built-in one.
    std::string built_in_root(std::string_view kind, std::string_view name) const;

    bool has(std::string_view kind, std::string_view name, std::string_view key) const;
    // Whether the scenario overrides this value; without a key, any of the entry's.
    bool overrides(std::string_view kind, std::string_view name, std::string_view key = {}) const;
    // Warns of each override that nobody has read, through this catalogue or one that shares its notes.
    void warn_of_unread_overrides();
    // Reports that these values of an entry don't go together, at the first of them that the scenario
    // overrides.
    void error(std::string_view kind, std::string_view name,
               std::initializer_list<const char*> keys, std::string message);

    // Each of these needs an entry that has the key, or is told what it is `otherwise`: a missing one is a
    // programmer's error. Where the scenario's own entry lacks it that is said, by ScenarioError.
    Duration time(std::string_view kind, std::string_view name, std::string_view key) {
        return Duration(quantity(kind, name, key, Dimension::time).integer.value_or(1));
    }
    Bytes data(std::string_view kind, std::string_view name, std::string_view key) {
        return Bytes::of(quantity(kind, name, key, Dimension::data).integer.value_or(1));
    }
    Bandwidth bandwidth(std::string_view kind, std::string_view name, std::string_view key) {
        return Bandwidth::bits_per_second(
            quantity(kind, name, key, Dimension::bandwidth).integer.value_or(1));
    }
    Flops compute(std::string_view kind, std::string_view name, std::string_view key) {
        return {quantity(kind, name, key, Dimension::compute).value};
    }
    Rate rate(std::string_view kind, std::string_view name, std::string_view key) {
        return {quantity(kind, name, key, Dimension::rate).value};
    }
    // Seconds per metre.
    double delay_per_metre(std::string_view kind, std::string_view name, std::string_view key) {
        return quantity(kind, name, key, Dimension::delay_per_length).value;
    }
    Metres metres(std::string_view kind, std::string_view name, std::string_view key) {
        return {quantity(kind, name, key, Dimension::length).value};
    }
    double metres_per_second(std::string_view kind, std::string_view name, std::string_view key) {
        return quantity(kind, name, key, Dimension::speed).value;
    }
    Watts power(std::string_view kind, std::string_view name, std::string_view key) {
        return {quantity(kind, name, key, Dimension::power).value};
    }
    Celsius temperature(std::string_view kind, std::string_view name, std::string_view key) {
        return {quantity(kind, name, key, Dimension::temperature).value};
    }
    KelvinPerWatt thermal_resistance(std::string_view kind, std::string_view name,
                                     std::string_view key) {
        return {quantity(kind, name, key, Dimension::thermal_resistance).value};
    }
    // In USD, for what the value is written per: GB, 1000 requests.
    double price(std::string_view kind, std::string_view name, std::string_view key) {
        return quantity(kind, name, key, Dimension::price).value;
    }
    double number(std::string_view kind, std::string_view name, std::string_view key,
                  std::optional<double> otherwise = {});
    // A number or a quantity in the base unit of its dimension, with its range; an estimate without one has
    // the house's spread. What is read here is not among the estimates that an answer is tried for.
    ValueRange range(std::string_view kind, std::string_view name, std::string_view key);
    // How many there are of something. Without a range that is what somebody chose to build, and no estimate
    // that an answer is tried for.
    std::int64_t integer(std::string_view kind, std::string_view name, std::string_view key,
                         std::optional<std::int64_t> otherwise = {});
    // Lists, in the order written.
    std::vector<double> numbers(std::string_view kind, std::string_view name, std::string_view key);
    std::vector<Duration> times(std::string_view kind, std::string_view name, std::string_view key);
    std::vector<Bandwidth> bandwidths(std::string_view kind, std::string_view name,
                                      std::string_view key);
    std::string text(std::string_view kind, std::string_view name, std::string_view key,
                     std::optional<std::string> otherwise = {});
    bool flag(std::string_view kind, std::string_view name, std::string_view key,
              std::optional<bool> otherwise = {});

  private:
    struct Found {
        const Value* value;
        std::string path;  // gpu.h100_sxm.hbm_bandwidth, or override.gpu...
    };
    Found find(std::string_view kind, std::string_view name, std::string_view key);
    Quantity quantity(std::string_view kind, std::string_view name, std::string_view key,
                      Dimension dimension);
    void check_overrides();
    void check_kind(const Value& given, const Value& ours, const std::string& path);
    bool changed(std::string_view kind, std::string_view name, std::string_view key) const;
    [[noreturn]] void refuse_without(std::string_view kind, std::string_view name,
                                     std::string_view key);
    void check_bounds(std::string_view kind, std::string_view name);

    ValueReader& reader_;
    ValueChoice choice_;
    const Value* overrides_;
    std::shared_ptr<OverridesRead> read_;
    std::shared_ptr<const OwnEntries> own_;
    std::map<std::string, Value> following_;  // measurements that follow an override, by path
};

// A catalogue to read from beside a scenario, or without one; `file` stands in messages.
struct StandaloneCatalogue {
    explicit StandaloneCatalogue(ValueChoice choice = ValueChoice::corrected,
                                 const Value* overrides = nullptr, std::string file = "catalogue",
                                 Perturbations perturbations = {},
                                 std::shared_ptr<OverridesRead> read = nullptr,
                                 std::shared_ptr<const OwnEntries> own = nullptr);
    StandaloneCatalogue(const StandaloneCatalogue&) = delete;  // its parts know each other's place
    ~StandaloneCatalogue();

    Diagnostics diagnostics;
    ValueReader reader;
    Catalogue catalogue;
};

// What a scenario makes of the catalogue: [catalogue], [override], and entries of its own.
struct CatalogueSpec {
    ValueChoice values = ValueChoice::corrected;
    Value overrides;
    Perturbations perturbations;
    std::shared_ptr<OverridesRead> overrides_read;  // set while somebody notes them
    std::shared_ptr<const OwnEntries> own_entries;
};

}  // namespace railyard
