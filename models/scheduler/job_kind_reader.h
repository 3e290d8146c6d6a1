#pragma once
// Jobs that are alike, [[jobs.kind]], and those of a file, jobs.trace.

#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "models/scheduler/job_source.h"
#include "models/scheduler/world_spec.h"
#include "sim/config.h"

namespace railyard {

// A kind as it is written, but for its model, its data, its saves and what one brings in.
struct JobKindKeys {
    WorldJobKind kind;
    JobSource source;
    std::optional<Bytes> checkpoint_size;  // written to the store that all jobs share
};
// Scheduler, partitions and groups of nodes must be in `spec`, which gets what such jobs ask for.
JobKindKeys read_job_kind(Section& section, Catalogue& catalogue, std::int64_t gpus_per_node,
                          WorldSpec& spec);

// The jobs of jobs.trace, in order of submission; the campaign begins with the first. They are of the kind
// that jobs.trace_kind names, and as `sources`, by kind, say; else of one that is added to `spec`.
// `of_one_size`: kinds that can't be of several sizes.
std::vector<WorldJob> read_trace_jobs(Section& jobs, std::span<JobSource> sources,
                                      const std::set<std::string>& of_one_size, WorldSpec& spec);

}  // namespace railyard
