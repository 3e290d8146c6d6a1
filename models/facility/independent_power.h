#pragma once
// What feeds several that repeat, each in its own time.

#include <vector>

#include "models/facility/power_profile.h"

namespace railyard {

// The levels of their sum, each as long as its share of the time when no cycle knows of another: in order of
// power, over a cycle of a second. Levels within one `grain` are as one, at their mean.
PowerProfile independent_sum(const std::vector<PowerProfile>& parts, Watts beside, Watts grain);

}  // namespace railyard
