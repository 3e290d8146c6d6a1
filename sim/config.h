#pragma once
// Reading TOML for people: a reader that takes keys out of a document by name and type, collects every
// error, and knows afterwards which keys nobody asked for.
//
// The same reading code describes the language: run over no document with a Schema, it lists each
// key with its type, default and meaning, and nothing is written twice.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/document.h"
#include "sim/error.h"
#include "sim/units.h"

namespace railyard {

// A number, or a quantity in its base unit; none for anything else.
std::optional<double> plain_number(const Value& value);

// A value in the scenario that says of itself that it is an estimate, or a catalogue value that is
// one: what an answer hangs on. Scaling one and running again shows how much.
struct Estimate {
    std::string path;
    std::string value;  // as written
    std::string source;
    double low_factor = 1;  // the range to try, relative to the value
    double high_factor = 1;
    bool range_given = false;  // false: the house's spread for an estimate without a printed range
};
constexpr double estimate_spread_low = 0.7;
constexpr double estimate_spread_high = 1.3;

// Multiplies one number as it is read. Path as in Estimate.
struct Perturbation {
    std::string path;
    double factor = 1;
};
using Perturbations = std::vector<Perturbation>;

// The bound that a number must keep.
enum class Bound : std::uint8_t {
    any,
    positive,
    non_negative,
    fraction,  // 0 to 1
    at_least_one,
    count,  // 1 to a million: products of three still fit
};

// The type of a key whose value names a file: what is in the file belongs to the scenario.
constexpr const char* file_type = "name of a file";

// One row of the language: a key that a scenario accepts.
struct SchemaRow {
    std::string path;       // job.checkpoint.interval
    std::string type;       // "time", "bandwidth", "one of sync, async, none" ...
    std::string otherwise;  // what holds when the key is absent
    std::string doc;
    bool required = false;
    Bound bound = Bound::any;           // of a number or a quantity
    std::vector<Dimension> dimensions;  // of a quantity
    std::vector<std::string> words;     // of a closed list: the only ones that are valid
};

// A number as written in TOML: "400 Gbit/s", or { value = "400 Gbit/s", class = ..., source = ... }.
// Reads both; reports what is wrong with either. Shared by scenario sections and the catalogue.
class ValueReader {
  public:
    ValueReader(Diagnostics& diagnostics, std::string file, Perturbations perturbations = {})
        : diagnostics_(diagnostics),
          file_(std::move(file)),
          perturbations_(std::move(perturbations)) {}

    std::optional<Quantity> quantity(const Value& value, const std::string& path,
                                     std::initializer_list<Dimension> wanted, Bound bound);
    std::optional<double> number(const Value& value, const std::string& path, Bound bound);
    std::optional<std::int64_t> integer(const Value& value, const std::string& path, Bound bound);

    // The bare value inside { value = ..., source = ... }, or `value` itself. Notes estimates.
    const Value& unwrap(const Value& value, const std::string& path);

    void error(Position at, const std::string& path, std::string message, std::string help = {});
    void warning(Position at, const std::string& path, std::string message, std::string help = {});
    // By path: the order in which values are read is the compiler's choice (`a() + b()`).
    const std::vector<Estimate>& estimates() const { return estimates_; }
    const std::string& file() const { return file_; }
    Diagnostics& diagnostics() { return diagnostics_; }
    double factor(const std::string& path) const;  // by which the number there is multiplied
    bool perturbed() const { return !perturbations_.empty(); }  // estimates are others

  private:
    std::string place(Position at) const;
    // False, and reported, when v is out of bounds: then it must not be used.
    bool check_bound(double v, Bound bound, const Value& value, const std::string& path);

    Diagnostics& diagnostics_;
    std::string file_;
    Perturbations perturbations_;
    std::vector<Estimate> estimates_;
};

// What holds for a key beyond its name and meaning.
struct KeyRules {
    Bound bound = Bound::any;
    const char* otherwise = nullptr;  // said for a default that the target's value doesn't show
    bool required = false;
};

// What a key's value may be, for the schema.
struct AllowedValues {
    Bound bound = Bound::any;
    std::vector<Dimension> dimensions{};
    const std::vector<std::string>* words = nullptr;
};

// One table of a scenario while it is read. Each read() takes a key's value into its target, or
// leaves the target as it was: the default.
class Section {
  public:
    // Reads from `document`; describes into `schema` when that is given (the document may be
    // empty).
    Section(ValueReader& reader, const Value* table, std::string path, Position parent_at,
            std::vector<SchemaRow>* schema = nullptr);

    bool present() const { return table_ != nullptr; }
    bool ok() const { return reader_.diagnostics().ok(); }  // nothing is wrong so far, anywhere
    bool has(std::string_view key) const { return table_ && table_->find(key); }
    bool describing() const { return schema_ != nullptr; }
    Position at() const { return table_ ? table_->at : parent_at_; }
    Position at(std::string_view key) const;
    std::string path(std::string_view key) const;

    Section section(const char* key);

    void read(const char* key, bool& out, const char* doc, KeyRules rules = {});
    void read(const char* key, std::int64_t& out, const char* doc, KeyRules rules = {});
    void read(const char* key, double& out, const char* doc, KeyRules rules = {});
    void read(const char* key, std::string& out, const char* doc, KeyRules rules = {});
    void read(const char* key, std::vector<std::string>& out, const char* doc, KeyRules rules = {});
    // A quantity: one of the types that stand in config.cpp, with their dimensions.
    template <class T>
    void read(const char* key, T& out, const char* doc, KeyRules rules = {});
    // Absent, or wrong: nullopt, and the caller says in rules.otherwise where the value then comes from.
    template <class T>
    void read(const char* key, std::optional<T>& out, const char* doc, KeyRules rules = {}) {
        T value{};
        if (rules.otherwise == nullptr) rules.otherwise = "not given";
        const std::size_t errors = reader_.diagnostics().errors().size();
        read(key, value, doc, rules);
        if (has(key) && reader_.diagnostics().errors().size() == errors) out = value;
    }
    // A time, or a count of training steps: exactly one of the two is set.
    void read_time_or_steps(const char* key, Duration& time, std::int64_t& step_count,
                            const char* doc, KeyRules rules = {});
    // One of a closed list of words; `out` is its index.
    void choose(const char* key, int& out, const std::vector<std::string>& words, const char* doc);
    // The words are those of an enumeration, in its order.
    template <class Enum>
    requires std::is_enum_v<Enum>
    void choose(const char* key, Enum& out, const std::vector<std::string>& words,
                const char* doc) {
        int index = static_cast<int>(out);
        choose(key, index, words, doc);
        out = static_cast<Enum>(index);
    }
    // A name that must be in `names` (an entry of the catalogue, say).
    void name(const char* key, std::string& out, const std::vector<std::string>& names,
              const char* what, const char* doc, KeyRules rules = {});
    // A table whose keys are not ours to know (it is checked elsewhere); nullptr when absent.
    const Value* open_table(const char* key, const char* doc);
    // The tables of an array of tables, each to be read and finished on its own.
    std::vector<Section> sections(const char* key, const char* doc);

    // Where the file is that the key names, seen from the document's folder; empty: none is named. Every
    // file that belongs to a scenario is named like this, so whoever asks for file_type finds them all.
    std::string file(const char* key, const char* doc, KeyRules rules = {});

    // Keys and sections that are read from here on do nothing in this scenario: each that is given gets a
    // warning that says so, "has no effect " and why. Empty: they do again.
    void no_effect(std::string why) { no_effect_ = std::move(why); }

    // An error at `key`'s place, or the section's when the key is absent.
    void error(std::string_view key, std::string message, std::string help = {});
    void warning(std::string_view key, std::string message, std::string help = {});

    // Reports every key of the table that no read asked for. Call once, after the last read.
    void finish();

  private:
    void read_text(const char* key, const char* type, std::string& out, const char* doc,
                   const KeyRules& rules);
    const Value* take(const char* key, const std::string& type, const std::string& otherwise,
                      const char* doc, bool required, const AllowedValues& allowed = {});
    std::optional<Quantity> take_quantity(const char* key, Dimension dimension,
                                          const std::string& otherwise, const char* doc,
                                          const KeyRules& rules);
    void know(const char* key);

    ValueReader& reader_;
    const Value* table_;
    std::string path_;
    Position parent_at_;
    std::vector<SchemaRow>* schema_;
    std::vector<std::string> known_;
    std::string no_effect_;
};

// An error, or a warning, at each of these keys that is given.
inline void refuse_keys(Section& section, std::initializer_list<const char*> keys,
                        const std::string& message, const std::string& help = {}) {
    for (const char* key : keys) {
        if (section.has(key)) section.error(key, message, help);
    }
}
inline void warn_of_keys(Section& section, std::initializer_list<const char*> keys,
                         const std::string& message) {
    for (const char* key : keys) {
        if (section.has(key)) section.warning(key, message);
    }
}

}  // namespace railyard
