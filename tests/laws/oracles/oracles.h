#pragma once
// The tables of tests/laws/tables: exact oracles and others' simulators, row by row beside what the models
// say. A row is no scenario, so code reads it, which knows its table by the number that it begins with.

#include <optional>

#include "tools/verify/tables.h"

namespace railyard {

// Nothing when no code here reads the table.
std::optional<VerifiedTable> verify_oracle(const CsvTable& table);

}  // namespace railyard
