#pragma once
// A store as a queue: processor sharing, M/G/1-PS when arrivals are random.

#include <vector>

#include "models/scheduler/scheduler.h"

namespace railyard {

// Each job reads what would take its duration if it had the store to itself; those that read at once have
// equal shares. From its submission to its end, over its duration, by job.
std::vector<double> slowdowns_on_a_store(const std::vector<StreamJob>& jobs);

}  // namespace railyard
