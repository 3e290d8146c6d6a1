#pragma once
// Says which budgets cut a scenario's numbers off.

#include "models/campaign/campaign.h"

namespace railyard {

// On standard error, and the exit code that goes with it.
int complain_of_limits(const std::vector<LimitReached>& limits);

}  // namespace railyard
