#pragma once
// Who repairs, who looks for what is slow, who is locked out: tables of [failures].

#include "models/campaign/scenario.h"

namespace railyard {

void read_repair(Section& failures, Scenario& scenario);

}  // namespace railyard
