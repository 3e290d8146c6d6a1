#pragma once
// Published training runs in the one header that says all of a run: its model, its machine, its plan and what
// was measured. Which software ran it is found from the table's sources and the row's own words.

#include <optional>

#include "tools/verify/bench.h"

namespace railyard {

// nullopt: the table has another header.
std::optional<VerifiedTable> verify_published_runs(const CsvTable& table, const Value* overrides);

}  // namespace railyard
