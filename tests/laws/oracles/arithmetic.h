#pragma once
// Tables 70 to 72 and 74: checkpoints and restarts, queues, collectives, training arithmetic.

#include <optional>

#include "tools/verify/tables.h"

namespace railyard {

// Nothing when the table is another.
std::optional<VerifiedTable> verify_arithmetic(const CsvTable& table);

}  // namespace railyard
