#pragma once
// Regular expressions (ECMAScript's). <regex> is pattern.cpp's own: it takes seconds to compile.

#include <string>
#include <vector>

namespace railyard {

// What a pattern finds: the whole, then its groups, "" for one that is not there. Empty without a match.
using Found = std::vector<std::string>;

Found match_pattern(const std::string& text, const char* pattern);  // all of the text
Found find_pattern(const std::string& text, const char* pattern);   // the first place in it
std::vector<Found> find_all(const std::string& text, const char* pattern);

// The text without what the pattern finds, in small or capital letters.
std::string without_pattern(const std::string& text, const char* pattern);

}  // namespace railyard
