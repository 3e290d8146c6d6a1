#pragma once
// Files that are read line by line, and what several of their readers need.

#include <string>
#include <string_view>
#include <vector>

#include "sim/config.h"
#include "sim/text.h"  // IWYU pragma: export

namespace railyard {

struct FileLine {
    int number = 0;
    std::string text;  // without the end of line
    Position at() const { return {number, 1}; }
};

// A file's text without a byte order mark. ScenarioError for UTF-16 and for what is compressed.
std::string read_input(const std::string& path);

// The file's lines. A template ({{ }}, {% %}) or something blacked out (<redacted>) is reported where it
// stands: neither is what the machine has.
std::vector<FileLine> read_lines(const std::string& path, Diagnostics& diagnostics);

// The line, counted from 1, of what stands at `offset`; the first, where that is less than 0.
int line_at(std::string_view text, std::ptrdiff_t offset);

// A text as TOML has it, with its quotes.
std::string toml_text(std::string_view text);
// "first, second, third and 12 more".
std::string some_of(const std::vector<std::string>& names);

}  // namespace railyard
