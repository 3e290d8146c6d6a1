#pragma once
// Columns of a report's data: numbers and words over all points, packed so that a page of ten thousand rows
// stays small. tools/report/src/data.js reads them.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace railyard {

// { "all": v } where it is the same everywhere, { "list": [...] } of a few, and else { "f32": "..." }: base64
// of little-endian floats, seven digits. What is not a number is null.
nlohmann::ordered_json packed(const std::vector<double>& column);
// { "all": w }, or { "words": [...], "at": [...] } with each word once.
nlohmann::ordered_json packed(const std::vector<std::string>& column);

bool constant(const std::vector<double>& column);

}  // namespace railyard
