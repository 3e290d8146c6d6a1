#pragma once
// Jobs as a file lists them: a table with columns (CSV), what 'sacct -P' prints, or the Standard Workload
// Format. README.md says which columns are read, and how.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/scheduler/job_stream.h"
#include "sim/error.h"

namespace railyard {

// Whether sacct's word for a job's state says that it has not ended.
bool slurm_job_runs(std::string_view state);

enum class TraceFormat : std::uint8_t { csv, sacct, swf };

struct TraceReading {
    std::optional<TraceFormat> format;             // nothing: what the file looks like
    Duration time_unit = std::chrono::seconds(1);  // of the numbers in a CSV's times
    bool skip_bad = false;  // count malformed lines instead of refusing the file
};

struct JobTrace {
    TraceFormat format = TraceFormat::csv;
    std::vector<StreamJob> jobs;   // in the file's order; `cluster` is not set yet
    std::vector<std::string> ids;  // of each, as the file has it
    std::vector<int> lines;        // of each: where the file has it, from 1
    // Who each job belongs to: indices into the names below.
    std::vector<std::uint32_t> users;
    std::vector<std::uint32_t> partitions;
    std::vector<std::string> user_names;
    std::vector<std::string> partition_names;  // empty where the file has no such column

    // Lines that are no job of GPUs.
    std::int64_t without_gpus = 0;
    std::int64_t never_started = 0;  // cancelled while they waited, or still waiting
    std::int64_t steps = 0;          // sacct's lines on parts of a job
    std::int64_t gang_parts = 0;     // sacct's lines on further parts of a heterogeneous job
    std::int64_t still_running = 0;  // when the file was written: nobody knows how long they take
    bool ends_told = true;           // the file says which did
    std::int64_t bad = 0;            // malformed, skipped
    std::optional<Diagnostic> first_bad;
    // Jobs whose `duration` has their wait in it (Kalos): end - start is taken.
    std::int64_t waits_in_duration = 0;

    // What was left out or read otherwise than it stands there, and makes the load another one.
    std::vector<std::string> warnings() const;

    void move_job(std::size_t from, std::size_t to);  // over another
    void resize(std::size_t count);
};

// Throws ScenarioError: on a file that can't be read, is in no known format or lacks a column, and, unless
// they are to be skipped, on malformed lines, with the line's number and what was expected.
JobTrace read_job_trace(const std::string& path, const TraceReading& reading);
JobTrace parse_job_trace(std::string_view text, const std::string& file,
                         const TraceReading& reading);

// Sets each job's virtual cluster to the one that is called like its partition, or like its user where the
// trace has no partitions; "vc_" before a name does not count. Jobs for which there is none leave the trace.
// Returns how many, by name.
std::map<std::string, std::int64_t> assign_clusters(JobTrace& trace,
                                                    const std::vector<VirtualCluster>& clusters);

}  // namespace railyard
