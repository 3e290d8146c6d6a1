#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>

#include "models/scheduler/trace_builder.h"

namespace railyard {

namespace {

bool parse(std::string_view cell, std::int64_t& out) {
    const auto [end, problem] = std::from_chars(cell.data(), cell.data() + cell.size(), out);
    return problem == std::errc() && end == cell.data() + cell.size();
}

// A part of a time stamp: digits at a place, or -1.
std::int64_t digits(std::string_view cell, std::size_t from, std::size_t count) {
    std::int64_t out = 0;
    if (cell.size() < from + count || cell[from] == '-' || !parse(cell.substr(from, count), out)) {
        return -1;
    }
    return out;
}

[[noreturn]] void bad_time_stamp(std::string_view cell, std::string_view column) {
    throw BadCell{std::string(column),
                  fmt::format("expected a time such as 2024-05-01T12:00:03, found '{}'", cell)};
}

// "+08:00", "-0330", "Z" or nothing.
std::optional<std::chrono::minutes> utc_offset(std::string_view text) {
    if (text.empty() || text == "Z") return std::chrono::minutes(0);
    const bool colon = text.size() == 6 && text[3] == ':';
    if ((text[0] != '+' && text[0] != '-') || (!colon && text.size() != 5)) return std::nullopt;
    const std::int64_t hours = digits(text, 1, 2);
    const std::int64_t minutes = digits(text, colon ? 4 : 3, 2);
    if (hours < 0 || minutes < 0) return std::nullopt;
    return std::chrono::minutes((hours * 60 + minutes) * (text[0] == '-' ? -1 : 1));
}

}  // namespace

std::int64_t whole_number(std::string_view cell, std::string_view column, std::int64_t least,
                          std::int64_t most) {
    std::int64_t value = 0;
    if (!parse(cell, value) || value < least || value > most) {
        throw BadCell{
            std::string(column),
            fmt::format("expected a whole number from {} to {}, found '{}'", least, most, cell)};
    }
    return value;
}

std::int64_t leading_number(std::string_view id) {
    std::int64_t value = 0;
    std::from_chars(id.data(), id.data() + id.size(), value);
    return value;
}

Duration number_of(std::string_view cell, std::string_view column, Duration unit) {
    const std::int64_t most = time_max.count() / unit.count();
    std::int64_t whole = 0;
    if (parse(cell, whole) && whole >= 0 && whole <= most) return whole * unit;
    double value = -1;
    const auto [end, problem] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (problem != std::errc() || end != cell.data() + cell.size() ||
        !(value >= 0 && value <= static_cast<double>(most))) {
        throw BadCell{
            std::string(column),
            fmt::format("expected a number from 0 to {} (100 years), found '{}'", most, cell)};
    }
    return Duration(std::llround(value * static_cast<double>(unit.count())));
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
        if (!parse(cell.substr(0, dash), days) || days < 0 || days > 36'500) throw bad();
        rest = cell.substr(dash + 1);
    }
    rest = rest.substr(0, rest.find('.'));  // sacct prints milliseconds of some
    std::vector<std::string_view> parts;
    split(rest, ':', parts);
    std::int64_t sum = 0;
    for (const std::string_view part : parts) {
        std::int64_t value = 0;
        if (!parse(part, value) || value < 0 || value > part_max) throw bad();
        sum = sum * 60 + value;
    }
    if (parts.size() > 3 || sum > part_max) throw bad();
    return std::chrono::hours(24 * days) + std::chrono::seconds(sum);
}

bool looks_like_time_stamp(std::string_view cell) {
    return cell.size() >= 10 && cell[4] == '-' && cell[7] == '-';
}

Duration time_stamp(std::string_view cell, std::string_view column) {
    namespace chrono = std::chrono;
    const std::int64_t hour = digits(cell, 11, 2);
    const std::int64_t minute = digits(cell, 14, 2);
    const std::int64_t second = digits(cell, 17, 2);
    const std::int64_t year = digits(cell, 0, 4);
    const chrono::year_month_day date{chrono::year(static_cast<int>(year)),
                                      chrono::month(static_cast<unsigned>(digits(cell, 5, 2))),
                                      chrono::day(static_cast<unsigned>(digits(cell, 8, 2)))};
    if (!looks_like_time_stamp(cell) || !date.ok() || year < 1970 || year >= 2060 ||
        cell.size() < 19 || (cell[10] != 'T' && cell[10] != ' ') || cell[13] != ':' ||
        cell[16] != ':' || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
        second > 60) {
        bad_time_stamp(cell, column);
    }
    const auto offset = utc_offset(cell.substr(19));
    if (!offset) bad_time_stamp(cell, column);
    const Duration since = chrono::sys_days(date).time_since_epoch() + chrono::hours(hour) +
                           chrono::minutes(minute) + chrono::seconds(second) - *offset;
    return std::max(since, Duration::zero());
}

void split(std::string_view line, char separator, std::vector<std::string_view>& cells) {
    cells.clear();
    for (std::size_t begin = 0; begin <= line.size();) {
        const std::size_t end = std::min(line.find(separator, begin), line.size());
        cells.push_back(line.substr(begin, end - begin));
        begin = end + 1;
    }
}

std::optional<std::size_t> find_column(const std::vector<std::string>& columns,
                                       std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
        const auto found = std::find(columns.begin(), columns.end(), name);
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
