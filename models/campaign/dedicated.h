#pragma once
// The scheduler "dedicated": one job has the cluster, its nodes and their spares, as in a scenario without
// [scheduler].

#include <string>

#include "sim/config.h"

namespace railyard {

constexpr const char* dedicated_scheduler = "dedicated";  // a name of scheduler.kind

// A scenario under this scheduler becomes the one that it stands for: without [scheduler], with its one
// [[jobs.kind]] as the [job]. What many jobs have, and one hasn't, is an error. Returns what the kind is
// called; empty: there is none, or it is another scheduler.
std::string take_dedicated_job(Value& root, ValueReader& values);

}  // namespace railyard
