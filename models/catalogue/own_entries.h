#pragma once
// Entries of the catalogue that a scenario brings along: [gpu.mine], with the keys that the built-in GPUs
// have, or like = "h100_sxm" and what differs.

#include <string>
#include <string_view>
#include <vector>

#include "sim/config.h"

namespace railyard {

// A kind that scenarios may add to. Its section has the kind's name, unless a scenario has another section of
// that name.
struct OpenKind {
    const char* kind;
    const char* section;
    const char* doc;
};
const std::vector<OpenKind>& open_kinds();

// How an entry's path begins, in a scenario and in messages: "storage_system" of a storage.
std::string_view section_of(std::string_view kind);

// The keys that entries of the kind have, in the files' order, and the built-in values of one: what an entry
// of a scenario may have.
std::vector<std::string> keys_of(std::string_view kind);
std::vector<const Value*> built_in_values(std::string_view kind, std::string_view key);
// What is missing where it is needed may be of this kind.
std::string example_of(std::string_view kind, std::string_view key);

// Reports a number, a quantity or a truth value that is not of the same kind as ours.
void check_same_kind(ValueReader& reader, const Value& given, const Value& ours,
                     const std::string& path);

class OwnEntries {
  public:
    OwnEntries() = default;
    // Reads and checks the sections of the open kinds in a scenario's tree.
    OwnEntries(ValueReader& reader, const Value& root);

    // What is in the entry, with all that it has from others: like a built-in one. nullptr: there is none.
    const Value* find(std::string_view kind, std::string_view name) const;
    std::vector<std::string> names(std::string_view kind) const;  // in the scenario's order
    // The built-in entry that it is like in the end; empty: none.
    std::string root(std::string_view kind, std::string_view name) const;
    // Whether the entry says this itself.
    bool gives(std::string_view kind, std::string_view name, std::string_view key) const;
    bool empty() const { return entries_.empty(); }

  private:
    struct Entry {
        std::string kind;
        std::string name;
        const Value* given = nullptr;  // while the scenario is read
        std::string root;
        std::vector<std::string> keys;  // that it gives
        Value value;
        enum class State : std::uint8_t { untouched, open, done } state = State::untouched;
    };
    void collect(ValueReader& reader, const Value& root);
    void resolve(ValueReader& reader, Entry& entry);
    void start_like(ValueReader& reader, Entry& entry, const Value& like);
    void add_given(ValueReader& reader, Entry& entry);
    void check_value(ValueReader& reader, const Entry& entry, const std::string& key,
                     const Value& given);
    void check_word(ValueReader& reader, const Entry& entry, const std::string& key,
                    const Value& given, const std::string& path);
    void require(ValueReader& reader, Entry& entry);
    const Entry* entry(std::string_view kind, std::string_view name) const;
    std::vector<std::string> all_names(std::string_view kind) const;

    std::vector<Entry> entries_;
};

}  // namespace railyard
