#pragma once
// TOML as a tree that remembers where everything stood, and how settings change it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/error.h"

namespace railyard {

// A parsed TOML value. Tables keep the order of the file.
struct Member;
struct Value {
    enum class Kind : std::uint8_t { table, array, string, integer, real, boolean, other };
    // The compiler's own, made once, in document.cpp: each source that uses one would make them again.
    Value();
    Value(const Value&);
    Value(Value&&) noexcept;
    Value& operator=(const Value&);
    Value& operator=(Value&&) noexcept;
    ~Value();

    Kind kind = Kind::table;
    Position at;
    std::string text;             // string
    std::int64_t integer = 0;     // integer; boolean as 0 or 1
    double real = 0;              // real, and integer as a double
    std::vector<Member> members;  // table
    std::vector<Value> items;     // array

    static Value of(std::string text) {
        Value out;
        out.kind = Kind::string;
        out.text = std::move(text);
        return out;
    }
    const Value* find(std::string_view key) const;
    Value* find(std::string_view key);
    std::string describe() const;  // "the string \"400 GB\"", "the number 400", "a table"
};

struct Member {
    std::string key;
    Value value;
};

// The file name ("--set" for a value from the command line) and what it holds.
struct Document {
    // The compiler's own, made once, in document.cpp: each source that uses one would make them again.
    Document();
    Document(const Document&);
    Document(Document&&) noexcept;
    Document& operator=(const Document&);
    Document& operator=(Document&&) noexcept;
    ~Document();

    std::string name;
    Value root;
    std::vector<std::string> included;  // files whose content is in the root
};

// Parses TOML. Syntax errors, and what no scenario has (tables hundreds deep, control characters in a key
// or a text), go to `diagnostics` and leave the root empty.
Document parse_document(std::string_view text, std::string name, Diagnostics& diagnostics);

// The same, with what its `include = ["part.toml"]` names put in: the tables of all files are one tree. What
// the including file says itself holds; two included files must not say the same key. Names are seen from the
// file that has them, and values know their file.
Document parse_with_includes(std::string_view text, std::string name, Diagnostics& diagnostics);

// The tree as TOML, its tables sorted by name.
std::string to_toml(const Value& table);

// Where a file is that a value of the document names: seen from the folder of the file that the value is in.
std::string file_beside(const Value& value, const std::string& document);

// Reads a file whole; throws ScenarioError naming the reason when it can't.
std::string read_file(const std::string& path);

// Applies "a.b.c=value" to the tree, making tables as needed. The value is TOML where it parses as
// such and otherwise a plain string, so that --set job.checkpoint.interval="1 h" needs no inner
// quotes. In a list of tables a number names one: window.traffic.0.bytes.
void apply_setting(Document& document, std::string_view setting, Diagnostics& diagnostics);
// The same for a value that is there, wherever it comes from: errors say `origin` and its own place.
void put_value(Value& root, std::string_view path, Value leaf, const std::string& origin,
               Diagnostics& diagnostics);

}  // namespace railyard
