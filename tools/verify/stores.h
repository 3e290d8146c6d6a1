#pragma once
// Stores and checkpoints, tables 51 to 53: sizes of checkpoints, what systems reach whose parts are printed,
// and the time of a save over a known bandwidth.
//
// Sizes that MLPerf Storage and BLOOM's documentation print as GB and TB are read in powers of 1024: MLPerf's
// code counts so (the head of table 50), and files are listed so. Papers count in powers of 1000.

#include <optional>

#include "tools/verify/tables.h"

namespace railyard {

// Nothing for any other table.
std::optional<VerifiedTable> verify_stores(const CsvTable& table, const Value* overrides);

}  // namespace railyard
