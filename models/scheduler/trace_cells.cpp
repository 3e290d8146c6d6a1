#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>

#include "models/scheduler/trace_builder.h"
#include "sim/text.h"

namespace railyard {

namespace {

[[noreturn]] void bad_time_stamp(std::string_view cell, std::string_view column) {
    throw BadCell{std::string(column),
                  fmt::format("expected a time such as 2024-05-01T12:00:03, found '{}'", cell)};
}

}  // namespace

std::int64_t whole_number(std::string_view cell, std::string_view column, std::int64_t least,
                          std::int64_t most) {
    const auto value = whole_value(cell);
    if (!value || *value < least || *value > most) {
        throw BadCell{
            std::string(column),
            fmt::format("expected a whole number from {} to {}, found '{}'", least, most, cell)};
    }
    return *value;
}

std::int64_t leading_number(std::string_view id) {
    std::int64_t value = 0;
    std::from_chars(id.data(), id.data() + id.size(), value);
    return value;
}

Duration number_of(std::string_view cell, std::string_view column, Duration unit) {
    const std::int64_t most = time_max.count() / unit.count();
    const auto whole = whole_value(cell);
    if (whole && *whole >= 0 && *whole <= most) return *whole * unit;
    const auto value = real_value(cell);
    if (!value || *value < 0 || *value > real(most)) {
        throw BadCell{
            std::string(column),
            fmt::format("expected a number from 0 to {} (100 years), found '{}'", most, cell)};
    }
    return Duration(std::llround(*value * real(unit.count())));
}

Duration elapsed_time(std::string_view cell, std::string_view column) {
    const auto bad = [&]() {
        return BadCell{std::string(column),
                       fmt::format("expected a time such as 4-01:02:03, found '{}'", cell)};
    };
    constexpr std::int64_t part_max = 1'000'000'000;
    std::string_view rest = cell;
    std::int64_t days = 0;
    if (const std::size_t dash = cell.find('-'); dash != std::string_view::npos) {
        days = whole_value(cell.substr(0, dash)).value_or(-1);
        if (days < 0 || days > 36'500) throw bad();
        rest = cell.substr(dash + 1);
    }
    rest = rest.substr(0, rest.find('.'));  // sacct prints milliseconds of some
    std::vector<std::string_view> parts;
    split(rest, ':', parts);
    std::int64_t sum = 0;
    for (const std::string_view part : parts) {
        const std::int64_t value = whole_value(part).value_or(-1);
        if (value < 0 || value > part_max) throw bad();
        sum = sum * 60 + value;
    }
    if (parts.size() > 3 || sum > part_max) throw bad();
    return std::chrono::hours(24 * days) + std::chrono::seconds(sum);
}

bool looks_like_time_stamp(std::string_view cell) {
    return cell.size() >= 10 && cell[4] == '-' && cell[7] == '-';
}

Duration time_stamp(std::string_view cell, std::string_view column) {
    constexpr std::string_view last_year = "2059";
    const auto since = time_value(cell);
    if (!since || cell.substr(0, 4) > last_year) bad_time_stamp(cell, column);
    return std::max(Duration(std::chrono::seconds(*since)), Duration::zero());
}

std::optional<std::size_t> find_column(const std::vector<std::string>& columns,
                                       std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
        const auto found = std::ranges::find(columns, name);
        if (found != columns.end()) return static_cast<std::size_t>(found - columns.begin());
    }
    return std::nullopt;
}

std::size_t need_column(const std::vector<std::string>& columns, std::string_view what,
                        std::initializer_list<std::string_view> names) {
    if (const auto found = find_column(columns, names)) return *found;
    throw BadCell{"", fmt::format("no column says {}: expected one called {}", what,
                                  fmt::join(names, " or "))};
}

}  // namespace railyard
