#pragma once
// Stores and checkpoints, tables 52 and 53: sizes of checkpoints, what systems reach whose parts are printed,
// and the time of a save over a known bandwidth.
//
// Sizes that BLOOM's documentation prints as TB are read in powers of 1024, as files are listed. Papers count
// in powers of 1000.

#include <optional>

#include "tools/verify/tables.h"

namespace railyard {

// Nothing for any other table.
std::optional<VerifiedTable> verify_stores(const CsvTable& table, const Value* overrides);

}  // namespace railyard
