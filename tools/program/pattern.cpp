#include "tools/program/pattern.h"

#include <regex>

namespace railyard {

Found match_pattern(const std::string& text, const char* pattern) {
    std::smatch found;
    if (!std::regex_match(text, found, std::regex(pattern))) return {};
    return {found.begin(), found.end()};
}

Found find_pattern(const std::string& text, const char* pattern) {
    std::smatch found;
    if (!std::regex_search(text, found, std::regex(pattern))) return {};
    return {found.begin(), found.end()};
}

std::vector<Found> find_all(const std::string& text, const char* pattern) {
    const std::regex regex(pattern);
    std::vector<Found> out;
    for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
        out.emplace_back(at->begin(), at->end());
    }
    return out;
}

std::string without_pattern(const std::string& text, const char* pattern) {
    return std::regex_replace(text, std::regex(pattern, std::regex::icase), "");
}

}  // namespace railyard
