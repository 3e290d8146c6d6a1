#pragma once
// The scheduler "dedicated": one job has the cluster, its nodes and their spares, as in a scenario without
// [scheduler].

#include <set>
#include <string>

#include "sim/config.h"

namespace railyard {

constexpr const char* dedicated_scheduler = "dedicated";  // a name of scheduler.kind

// A scenario under this scheduler becomes the one that it stands for: without [scheduler], with its one
// [[jobs.kind]] as the [job]. What many jobs have, and one hasn't, is an error.
struct DedicatedJob {
    bool was_a_kind = false;  // the [job] stands in the file as a [[jobs.kind]]
    std::string name;         // the kind's
};
// The keys of [job], and those of a [[jobs.kind]].
struct JobKeys {
    std::set<std::string> job;
    std::set<std::string> kind;
};
bool is_dedicated(const Value& root);
DedicatedJob take_dedicated_job(Value& root, ValueReader& values, const JobKeys& keys);

// What has been said of the keys of [job], said of the kind's, as the file has them.
Diagnostics said_of_kind(const Diagnostics& of_job, const std::set<std::string>& job_keys);

}  // namespace railyard
