#pragma once
// Training, tables 01 to 19: step times, MFU and memory of published runs. Table 03 is prose:
// verify_megatron_text.h.

#include <span>

#include "tools/verify/bench.h"

namespace railyard {

std::span<const TableFormat> training_tables();

}  // namespace railyard
