#pragma once
// MLPerf Storage v1.0, table 50: throughput, AU and the largest number of accelerators that passes, of each
// system from what its other runs say of its limits.

#include "tools/verify/tables.h"

namespace railyard {

VerifiedTable verify_mlperf_storage(const CsvTable& table, const VerifyOptions& options);

}  // namespace railyard
