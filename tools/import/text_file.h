#pragma once
// Files that are read line by line, and what several of their readers need.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config.h"

namespace railyard {

struct FileLine {
    int number = 0;
    std::string text;  // without the end of line
};

// The file's lines. A template ({{ }}, {% %}) or something blacked out (<redacted>) is reported where it
// stands: neither is what the machine has.
std::vector<FileLine> read_lines(const std::string& path, Diagnostics& diagnostics);

std::string_view trimmed(std::string_view text);
std::string lower_case(std::string_view text);
// At each `separator`; of blanks any number is one. Empty parts count, but with blanks.
std::vector<std::string> split_text(std::string_view text, char separator);
// All of the text, or nothing.
std::optional<std::int64_t> whole_value(std::string_view text);
std::optional<double> real_value(std::string_view text);
// Seconds since 1970 of "2026-01-03T11:02:00", with a zone or without.
std::optional<std::int64_t> time_value(std::string_view text);
// A text as TOML has it, with its quotes.
std::string toml_text(std::string_view text);
// "first, second, third and 12 more".
std::string some_of(const std::vector<std::string>& names);

}  // namespace railyard
