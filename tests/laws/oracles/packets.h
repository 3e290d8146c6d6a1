#pragma once
// Tables of what packets do under PFC and congestion control: 42 (a burst past a bystander, OMNeT++), 43
// (figures of DCQCN's paper) and 44 (ns-3).

#include <optional>

#include "tools/verify/tables.h"

namespace railyard {

// Runs each row's configuration through the packet engine; nothing when it is another table.
std::optional<VerifiedTable> verify_packets(const CsvTable& table);

}  // namespace railyard
