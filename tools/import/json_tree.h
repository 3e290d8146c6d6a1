#pragma once
// JSON as the tree that scenarios are, so that every key knows its line.

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/config.h"

namespace railyard {

// Some programs write a key several times: the first is what find() then finds.
enum class RepeatedKeys : std::uint8_t { refused, kept };

// What is no JSON, has a key twice, or is nested too deep goes to `diagnostics`; null is Value::Kind::other.
Document parse_json(std::string_view text, std::string name, Diagnostics& diagnostics,
                    RepeatedKeys repeated = RepeatedKeys::refused);

}  // namespace railyard
