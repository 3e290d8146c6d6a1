#pragma once
// Jobs that hold some of their GPUs and can never have the rest, because others do likewise.

#include <set>
#include <string>

#include "models/scheduler/world_scheduler.h"

namespace railyard {

// Which jobs that lack pods could not go on even if every other job ended and all nodes were up, one
// after another as they can (detection with several units of each resource: Coffman, Elphick and Shoshani,
// 1971).
std::vector<JobIndex> deadlocked(const WorldView& world, const std::set<JobIndex>& lacking);

// Who holds what, who lacks what, and a circle of jobs each of which waits for the next.
std::string describe_deadlock(const WorldView& world, const std::vector<JobIndex>& jobs);

}  // namespace railyard
