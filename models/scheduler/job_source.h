#pragma once
// Where many jobs come from: kinds of them, each a stream of its own, and a trace.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/catalogue/catalogue.h"
#include "models/scheduler/published_stream.h"
#include "models/scheduler/world.h"

namespace railyard {

// Jobs of a kind, as they come.
struct JobSource {
    WorldJob like;           // what they have in common
    std::int64_t count = 1;  // at most so many
    bool says_none = false;  // of its own: if a trace is of its kind, there are none
    Rate rate;               // of a Poisson stream of them; 0: all at `like.submit`
    struct Size {
        std::int64_t gpus = 1;
        double share = 1;   // in proportion to the others'
        Duration median{};  // of their work, cut off at `longest`; 0: as below
    };
    std::vector<Size> sizes;
    // Work: log-normal, of this mean and median; all alike when they are equal.
    Duration mean{};
    Duration median{};
    double sigma = 0;         // of the logarithm of the work of sizes with a median
    Duration longest{};       // of these
    double limit_factor = 0;  // time limit in proportion to the work; 0: like.limit
};

// Replicas differ in when its jobs come, or in what they are.
bool drawn_at_random(const JobSource& source);

// What a named stream of the catalogue says of its jobs.
PublishedStream read_published_stream(Catalogue& catalogue, const std::string& name);
// Draws the source's jobs from it.
void follow(const StreamShape& shape, JobSource& source);

// A part of a campaign: the sources' jobs that come in it. Each source has sent some before, which count
// towards its `count`.
struct SourcesSoFar {
    Duration since{};
    std::vector<std::int64_t> sent;  // by source
};

// The jobs of a replica that are submitted before `until`, those of the trace among them, as they come.
WorldJobs draw_jobs(const WorldSpec& spec, std::span<const JobSource> sources,
                    const std::vector<WorldJob>& trace, std::uint64_t seed, std::uint64_t replica,
                    Duration until, SourcesSoFar* so_far = nullptr);

}  // namespace railyard
