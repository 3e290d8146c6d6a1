#pragma once
// Table 73: closed forms of networks, and what the builder, the routes, the flow scale and the packets make
// of the same configurations.

#include <optional>

#include "tools/verify/tables.h"

namespace railyard {

// Nothing when it is another table.
std::optional<VerifiedTable> verify_networks(const CsvTable& table);

}  // namespace railyard
