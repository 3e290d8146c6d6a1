#include "tools/import/text_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>

namespace railyard {

std::vector<FileLine> read_lines(const std::string& path, Diagnostics& diagnostics) {
    const std::string text = read_file(path);
    std::vector<FileLine> out;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        std::string line = text.substr(begin, end - begin);
        begin = end + 1;
        if (line.ends_with('\r')) line.pop_back();
        out.push_back({static_cast<int>(out.size()) + 1, std::move(line)});
    }
    for (const FileLine& line : out) {
        const std::string_view code = trimmed(line.text);
        if (code.starts_with('#')) continue;
        if (code.find("{{") != std::string_view::npos ||
            code.find("{%") != std::string_view::npos) {
            diagnostics.error(
                path, {line.number, 1}, "", "a template, not a file that is in use",
                "give the file that is made of it, with all {{ }} and {% %} filled in");
            break;
        }
        if (lower_case(code).find("<redacted>") != std::string::npos) {
            diagnostics.error(path, {line.number, 1}, "", "something is blacked out here",
                              "give the whole file: what is missing can't be guessed");
            break;
        }
    }
    return out;
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

std::vector<std::string> split_text(std::string_view text, char separator) {
    std::vector<std::string> out;
    for (std::size_t begin = 0; begin <= text.size();) {
        std::size_t end = std::min(text.find(separator, begin), text.size());
        if (separator == ' ') end = std::min(end, text.find('\t', begin));
        if (separator != ' ' || end > begin) out.emplace_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return out;
}

std::optional<std::int64_t> whole_value(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::optional<double> real_value(std::string_view text) {
    double value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
        return std::nullopt;
    }
    return value;
}

std::optional<std::int64_t> time_value(std::string_view text) {
    namespace chrono = std::chrono;
    const auto digits = [&](std::size_t from, std::size_t count) -> std::int64_t {
        if (text.size() < from + count || text[from] == '-') return -1;
        return whole_value(text.substr(from, count)).value_or(-1);
    };
    if (text.size() < 19 || text[4] != '-' || text[7] != '-' ||
        (text[10] != 'T' && text[10] != ' ') || text[13] != ':' || text[16] != ':') {
        return std::nullopt;
    }
    const chrono::year_month_day date{chrono::year(static_cast<int>(digits(0, 4))),
                                      chrono::month(static_cast<unsigned>(digits(5, 2))),
                                      chrono::day(static_cast<unsigned>(digits(8, 2)))};
    const std::int64_t hour = digits(11, 2);
    const std::int64_t minute = digits(14, 2);
    const std::int64_t second = digits(17, 2);
    if (!date.ok() || digits(0, 4) < 1970 || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
        second < 0 || second > 60) {
        return std::nullopt;
    }
    const std::int64_t days = chrono::sys_days(date).time_since_epoch().count();
    std::int64_t zone = 0;
    std::string_view rest = text.substr(19);
    if (rest.starts_with('.')) rest = rest.substr(std::min(rest.find_first_of("Z+-"), rest.size()));
    if (!rest.empty() && rest != "Z") {
        const std::size_t at = text.size() - rest.size();
        const bool colon = rest.size() == 6 && rest[3] == ':';
        if ((rest[0] != '+' && rest[0] != '-') || (!colon && rest.size() != 5)) return std::nullopt;
        const std::int64_t hours = digits(at + 1, 2);
        const std::int64_t minutes = digits(at + (colon ? 4 : 3), 2);
        if (hours < 0 || minutes < 0) return std::nullopt;
        zone = (hours * 3600 + minutes * 60) * (rest[0] == '-' ? -1 : 1);
    }
    return days * 86400 + hour * 3600 + minute * 60 + second - zone;
}

std::string toml_text(std::string_view text) {
    std::string out = "\"";
    for (const char c : visible(text)) {
        if (c == '"' || c == '\\') out += '\\';
        out += c == '\t' || c == '\n' ? ' ' : c;
    }
    return out + '"';
}

std::string some_of(const std::vector<std::string>& names) {
    constexpr std::size_t shown_max = 4;
    const std::size_t shown = names.size() <= shown_max + 1 ? names.size() : shown_max;
    const std::vector<std::string> first(names.begin(),
                                         names.begin() + static_cast<std::ptrdiff_t>(shown));
    std::string out = fmt::format("{}", fmt::join(first, ", "));
    if (shown < names.size()) out += fmt::format(" and {} more", names.size() - shown);
    return out;
}

}  // namespace railyard
