#include "tools/import/text_file.h"

#include <fmt/format.h>

#include <algorithm>

namespace railyard {

std::string read_input(const std::string& path) {
    std::string text = read_file(path);
    const auto refuse = [&](const char* what, const char* help) {
        throw ScenarioError(fmt::format("{} is {}", path, what), help);
    };
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
        refuse("UTF-16, as PowerShell writes it", "save it as UTF-8");
    }
    if (text.starts_with("\x1F\x8B")) refuse("compressed", "gunzip it first");
    return without_byte_order_mark(std::move(text));
}

std::vector<FileLine> read_lines(const std::string& path, Diagnostics& diagnostics) {
    const std::string text = read_input(path);
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

int line_at(std::string_view text, std::ptrdiff_t offset) {
    const auto before = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, offset));
    return 1 + static_cast<int>(std::ranges::count(text.substr(0, before), '\n'));
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
