#pragma once
// Inside [cost]: its keys, and a plan with a line for all that the bill of materials lists.

#include "models/campaign/scenario.h"

namespace railyard {

CostSetup read_cost_plan(Section& top, Section& cost, ValueReader& values,
                         const Scenario& scenario);

}  // namespace railyard
