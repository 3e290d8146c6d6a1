#pragma once
// The tables of Meta's research clusters: time to failure and ETTR by job size (20, 23).

#include "tools/verify/tables.h"

namespace railyard {

// Runs a fleet for each row; nothing when it is another table.
std::optional<VerifiedTable> verify_fleets(const CsvTable& table, const Value* overrides);

}  // namespace railyard
