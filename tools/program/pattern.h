#pragma once
// Regular expressions (ECMAScript's). <regex> is pattern.cpp's own: it takes seconds to compile.

#include <optional>
#include <string>
#include <vector>

namespace railyard {

// What a pattern finds: the whole, then its groups, "" for one that is not there. Empty without a match.
using Found = std::vector<std::string>;

// What is wrong with a pattern that somebody wrote; nothing: it is one.
std::optional<std::string> problem_of_pattern(const std::string& pattern);

Found match_pattern(const std::string& text, const char* pattern);  // all of the text
Found find_pattern(const std::string& text, const char* pattern);   // the first place in it
std::vector<Found> find_all(const std::string& text, const char* pattern);

// The text with `instead` for all that the pattern finds; $1 is its first group.
std::string with_replaced(const std::string& text, const char* pattern, const std::string& instead);
// The text without what the pattern finds, in small or capital letters.
std::string without_pattern(const std::string& text, const char* pattern);

}  // namespace railyard
