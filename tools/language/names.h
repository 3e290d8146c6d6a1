#pragma once
// Names as people write them.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/collective/collective.h"

namespace railyard {

// The place of a name in `names`, with underscores or without (alltoall, NVLSTree), in any case.
std::optional<std::size_t> find_name(std::string_view name, const std::vector<std::string>& names);
// A collective by its name, as find_name reads it.
std::optional<Collective> parse_collective(std::string_view name);

}  // namespace railyard
