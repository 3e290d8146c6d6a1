#include "tools/program/pattern.h"

#include <map>
#include <regex>

namespace railyard {

namespace {

// Made once for a pattern: a table asks for the same few of each of its rows.
const std::regex& regex_of(const char* pattern) {
    constexpr std::size_t kept_max = 1024;
    thread_local std::map<std::string, std::regex, std::less<>> kept;
    const auto found = kept.find(pattern);
    if (found != kept.end()) return found->second;
    if (kept.size() == kept_max) kept.clear();
    return kept.emplace(pattern, std::regex(pattern)).first->second;
}

}  // namespace

std::optional<std::string> problem_of_pattern(const std::string& pattern) {
    try {
        const std::regex tried(pattern);
        return std::nullopt;
    } catch (const std::regex_error& error) {
        return error.what();
    }
}

Found match_pattern(const std::string& text, const char* pattern) {
    std::smatch found;
    if (!std::regex_match(text, found, regex_of(pattern))) return {};
    return {found.begin(), found.end()};
}

Found find_pattern(const std::string& text, const char* pattern) {
    std::smatch found;
    if (!std::regex_search(text, found, regex_of(pattern))) return {};
    return {found.begin(), found.end()};
}

std::vector<Found> find_all(const std::string& text, const char* pattern) {
    const std::regex& regex = regex_of(pattern);
    std::vector<Found> out;
    for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
        out.emplace_back(at->begin(), at->end());
    }
    return out;
}

std::string with_replaced(const std::string& text, const char* pattern,
                          const std::string& instead) {
    return std::regex_replace(text, regex_of(pattern), instead);
}

std::string without_pattern(const std::string& text, const char* pattern) {
    return std::regex_replace(text, std::regex(pattern, std::regex::icase), "");
}

}  // namespace railyard
