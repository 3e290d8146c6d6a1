#pragma once
// Exact arithmetic, tables 70 to 72 and 74: renewals, queues, alpha-beta collectives, training.

#include <span>

#include "tools/verify/bench.h"

namespace railyard {

std::span<const TableFormat> arithmetic_tables();

}  // namespace railyard
