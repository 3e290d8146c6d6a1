#pragma once
// Verified tables as people and programs read them: errors by table and quantity, coverage, memory.

#include <string>
#include <vector>

#include "tools/verify/tables.h"

namespace railyard {

std::string verified_json(const std::vector<VerifiedTable>& tables);

// A line for each table and quantity; with `rows`, after a line for each row.
std::string verified_text(const std::vector<VerifiedTable>& tables, bool rows);

}  // namespace railyard
