#pragma once
// JSON as the tree that scenarios are, so that every key knows its line.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "sim/config.h"

namespace railyard {

// Some programs write a key several times: the first is what find() then finds.
enum class RepeatedKeys : std::uint8_t { refused, kept };

// What is no JSON, has a key twice, or is nested too deep goes to `diagnostics`; null is Value::Kind::other.
Document parse_json(std::string_view text, std::string name, Diagnostics& diagnostics,
                    RepeatedKeys repeated = RepeatedKeys::refused);

// What stands on this path below a table; nullptr where a part of it is not there, or `from` is none.
const Value* at_path(const Value* from, std::initializer_list<const char*> path);
// A text in a table; empty where there is none.
std::string text_in(const Value& table, const char* key);

}  // namespace railyard
