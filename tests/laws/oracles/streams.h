#pragma once
// Tables that sum up the jobs of published traces: 60, 61, 64.

#include <optional>

#include "sim/config.h"
#include "tools/verify/tables.h"

namespace railyard {

// Draws jobs like those of each trace, and holds their means and medians to the table; nothing when it is
// another table. `overrides` as for verify_table.
std::optional<VerifiedTable> verify_streams(const CsvTable& table);

}  // namespace railyard
