// Any bytes as a trace of jobs, in each format that they might be in: refused with a ScenarioError, or read.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "models/scheduler/job_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace railyard;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const std::optional<TraceFormat> format :
         {std::optional<TraceFormat>(), std::optional(TraceFormat::csv),
          std::optional(TraceFormat::sacct), std::optional(TraceFormat::swf)}) {
        for (const bool skip_bad : {false, true}) {
            try {
                TraceReading reading;
                reading.format = format;
                reading.skip_bad = skip_bad;
                JobTrace trace = parse_job_trace(text, "fuzz", reading);
                assign_clusters(trace, {{"a", 2, 8}, {"vc_b", 1, 4}});
            } catch (const ScenarioError&) {
                // What a wrong trace should come to.
            }
        }
    }
    return 0;
}
