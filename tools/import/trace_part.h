#pragma once
// Jobs that a file lists, made into a trace of our own and the [jobs] that reads it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/scheduler/scheduler.h"
#include "tools/import/import.h"

namespace railyard {

struct ImportedJob {
    std::string id;
    std::string user;
    std::string group;  // queue, partition, virtual cluster
    std::int64_t gpus = 0;
    double submit_s = 0;
    double duration_s = 0;
    std::optional<double> limit_s;
};

// What became of the file's rows that are no such job.
struct TraceCounts {
    std::int64_t rows = 0;
    std::int64_t without_gpus = 0;
    std::int64_t never_started = 0;
    std::int64_t still_running = 0;
    std::int64_t negative = 0;  // spans that end before they begin
    std::int64_t bad = 0;
};

// Adds the jobs of a trace that is read, without their groups, and counts the rows that are none.
void add_jobs(const JobTrace& trace, std::vector<ImportedJob>& jobs, TraceCounts& counts);

// Writes the CSV beside the part, sorted by submission, and [jobs]. Reports a missing -o and a trace without
// jobs, at `file`.
void add_trace(std::vector<ImportedJob> jobs, const TraceCounts& counts, const std::string& file,
               const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics);

// "2024-05-01 12:00:03+08:00" or a number of seconds; nothing for "", "None", "null", "nan", "Unknown".
struct TraceTime {
    bool valid = true;
    std::optional<double> s;
};
TraceTime trace_time(std::string_view text);

}  // namespace railyard
