#pragma once
// The table of exact schedules of a real job trace (63).

#include "tools/verify/tables.h"

namespace railyard {

// Schedules the jobs of tests/laws/tables/traces anew for each row; nothing when it is another table.
std::optional<VerifiedTable> verify_schedules(const CsvTable& table);

}  // namespace railyard
