#pragma once
// What several readers of text need.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace railyard {

std::string_view trimmed(std::string_view text);
// Spreadsheets and Windows write one before UTF-8.
std::string without_byte_order_mark(std::string text);
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

// The one of that name; null: there is none.
template <class Named>
const auto* find_named(const Named& all, std::string_view name) {
    const auto found =
        std::ranges::find_if(all, [&](const auto& each) { return each.name == name; });
    return found == std::ranges::end(all) ? nullptr : &*found;
}
// What all are called.
template <class Named>
std::vector<std::string> names_of(const Named& all) {
    std::vector<std::string> out;
    for (const auto& each : all) out.emplace_back(each.name);
    return out;
}
// What the value of an enumeration is called, of names in its order.
template <class Names, class Enum>
const auto& word_of(const Names& names, Enum value) {
    return names[static_cast<std::size_t>(value)];
}

}  // namespace railyard
