#pragma once
// Collectives, tables 30 to 32: published runs of nccl-tests.

#include <span>

#include "tools/verify/bench.h"

namespace railyard {

std::span<const TableFormat> nccl_tables();

}  // namespace railyard
