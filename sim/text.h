#pragma once
// What several readers of text need.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/text.h"

namespace railyard {

std::string_view trimmed(std::string_view text);
std::string lower_case(std::string_view text);
// Splits at `separator`; empty cells count.
void split(std::string_view text, char separator, std::vector<std::string_view>& cells);
// At each `separator`; of blanks any number is one. Empty parts count, but with blanks.
std::vector<std::string> split_text(std::string_view text, char separator);
// All of the text, or nothing.
std::optional<std::int64_t> whole_value(std::string_view text);
std::optional<double> real_value(std::string_view text);
// The day that a text begins with: "2026-01-03".
std::optional<std::chrono::sys_days> day_value(std::string_view text);
// Seconds since 1970 of "2026-01-03T11:02:00", with a zone or without.
std::optional<std::int64_t> time_value(std::string_view text);

// What the value of an enumeration is called, of names in its order.
template <class Names, class Enum>
const auto& word_of(const Names& names, Enum value) {
    return names[static_cast<std::size_t>(value)];
}

}  // namespace railyard
