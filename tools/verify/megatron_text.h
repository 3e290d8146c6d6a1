#pragma once
// Megatron-LM SC'21, numbers of the text (table 03) that the models answer: the size of a checkpoint, the
// interleaved schedule's bubble, what recomputation costs a small batch.

#include "tools/verify/tables.h"

namespace railyard {

VerifiedTable verify_megatron_text(const CsvTable& table, const Value* overrides);

}  // namespace railyard
