#pragma once
// What `railyard jobs` says of a trace of jobs on a cluster.

#include <map>
#include <string>
#include <vector>

#include "models/campaign/campaign.h"
#include "models/scheduler/scheduler.h"
#include "tools/program/json_text.h"

namespace railyard {

// A trace on its cluster, and what became of it.
struct ScheduledTrace {
    JobTrace trace;
    std::map<std::string, std::int64_t> homeless;  // jobs by a virtual cluster that has no nodes
    std::vector<VirtualCluster> clusters;
    StreamRules rules;
    StreamSchedule schedule;
};

// Who waits how long and how well the GPUs are used; on standard error which jobs are refused.
void print_scheduled(const std::string& path, const ScheduledTrace& run);
Json scheduled_json(const std::string& path, const ScheduledTrace& run);

}  // namespace railyard
