#pragma once

#include <string>
#include <string_view>

namespace railyard {

// A field as a CSV has it: visible, and in quotes where it has to be.
std::string csv_field(std::string_view text);

}  // namespace railyard
