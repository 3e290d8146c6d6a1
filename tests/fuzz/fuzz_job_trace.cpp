// Any bytes as a trace of jobs, in each format that they might be in: refused with a ScenarioError, or read.

#include <optional>

#include "models/scheduler/job_trace.h"
#include "tests/fuzz/fuzzer.h"

void try_bytes(std::string_view bytes) {
    using namespace railyard;
    for (const std::optional<TraceFormat> format :
         {std::optional<TraceFormat>(), std::optional(TraceFormat::csv),
          std::optional(TraceFormat::sacct), std::optional(TraceFormat::swf)}) {
        for (const bool skip_bad : {false, true}) {
            refused_or_read([&] {
                TraceReading reading;
                reading.format = format;
                reading.skip_bad = skip_bad;
                JobTrace trace = parse_job_trace(bytes, "fuzz", reading);
                assign_clusters(trace, {{"a", 2, 8}, {"vc_b", 1, 4}});
            });
        }
    }
}
