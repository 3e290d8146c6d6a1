#include "sim/text.h"

#include <charconv>
#include <cmath>

namespace railyard {

std::string without_byte_order_mark(std::string text) {
    constexpr std::string_view mark = "\xEF\xBB\xBF";
    if (text.starts_with(mark)) text.erase(0, mark.size());
    return text;
}

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string lower_case(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return out;
}

void split(std::string_view text, char separator, std::vector<std::string_view>& cells) {
    cells.clear();
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(separator, begin), text.size());
        cells.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
}

std::vector<std::string> split_text(std::string_view text, char separator) {
    std::string plain(text);
    if (separator == ' ') std::ranges::replace(plain, '\t', ' ');
    std::vector<std::string_view> parts;
    split(plain, separator, parts);
    if (separator == ' ') std::erase(parts, std::string_view());
    return std::vector<std::string>(parts.begin(), parts.end());
}

namespace {

template <class Number>
std::optional<Number> number_in(std::string_view text) {
    Number value{};
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

// Digits at a place, or -1.
std::int64_t digits(std::string_view text, std::size_t from, std::size_t count) {
    if (text.size() < from + count || text[from] == '-') return -1;
    return whole_value(text.substr(from, count)).value_or(-1);
}

// Seconds of "+08:00", "-0330", "Z" or nothing.
std::optional<std::int64_t> zone_value(std::string_view text) {
    if (text.empty() || text == "Z") return 0;
    const bool colon = text.size() == 6 && text[3] == ':';
    if ((text[0] != '+' && text[0] != '-') || (!colon && text.size() != 5)) return std::nullopt;
    const std::int64_t hours = digits(text, 1, 2);
    const std::int64_t minutes = digits(text, colon ? 4 : 3, 2);
    if (hours < 0 || minutes < 0) return std::nullopt;
    return (hours * 3600 + minutes * 60) * (text[0] == '-' ? -1 : 1);
}

}  // namespace

std::optional<std::int64_t> whole_value(std::string_view text) {
    return number_in<std::int64_t>(text);
}

std::optional<double> real_value(std::string_view text) {
    const auto value = number_in<double>(text);
    return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::chrono::sys_days> day_value(std::string_view text) {
    namespace chrono = std::chrono;
    if (text.size() < 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
    const std::int64_t year = digits(text, 0, 4);
    const chrono::year_month_day date{chrono::year(static_cast<int>(year)),
                                      chrono::month(static_cast<unsigned>(digits(text, 5, 2))),
                                      chrono::day(static_cast<unsigned>(digits(text, 8, 2)))};
    if (year < 0 || !date.ok()) return std::nullopt;
    return chrono::sys_days(date);
}

std::optional<std::int64_t> time_value(std::string_view text) {
    const auto day = day_value(text);
    const std::int64_t hour = digits(text, 11, 2);
    const std::int64_t minute = digits(text, 14, 2);
    const std::int64_t second = digits(text, 17, 2);
    if (!day || text.size() < 19 || (text[10] != 'T' && text[10] != ' ') || text[13] != ':' ||
        text[16] != ':' || day->time_since_epoch().count() < 0 || hour < 0 || hour > 23 ||
        minute < 0 || minute > 59 || second < 0 || second > 60) {
        return std::nullopt;
    }
    std::string_view rest = text.substr(19);
    if (rest.starts_with('.')) rest = rest.substr(std::min(rest.find_first_of("Z+-"), rest.size()));
    const auto zone = zone_value(rest);
    if (!zone) return std::nullopt;
    return std::int64_t{day->time_since_epoch().count()} * 86400 + hour * 3600 + minute * 60 +
           second - *zone;
}

}  // namespace railyard
