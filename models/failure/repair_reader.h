#pragma once
// Who repairs, who looks for what is slow, who is locked out, which nodes are lemons: tables of [failures].

#include "models/failure/failure_spec.h"
#include "sim/config.h"

namespace railyard {

// Reads failures.lemon. A node that fails as often as the others is none.
void read_lemons(Section& failures, LemonNodes& lemons);

// Reads failures.misdiagnosis, .repair, .quarantine and .search; `anything_slow`: some cause has slow parts.
struct RepairSpec {
    double misdiagnosis = 0;
    RepairShopSpec shop;
    QuarantineSpec quarantine;
    SearchSpec search;
};
RepairSpec read_repair(Section& failures, bool anything_slow);

}  // namespace railyard
