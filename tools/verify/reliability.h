#pragma once
// Tables of failures and recoveries of published clusters: 07, 08, 12, 21, 22, 24 to 28.

#include <optional>

#include "tools/verify/tables.h"

namespace railyard {

// Runs campaigns for the rows that they can predict; nothing when it is another table. Published mixes of
// causes are what the campaigns are given; what comes out of them is held to the tables.
std::optional<VerifiedTable> verify_reliability(const CsvTable& table);

}  // namespace railyard
