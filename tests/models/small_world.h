#pragma once
// A small cluster under Slurm for cases that are computed by hand: nodes of 8 GPUs, one kind of jobs.

#include <algorithm>

#include "models/scheduler/scheduler.h"

namespace railyard {

struct SmallWorld {
    WorldSpec spec;
    WorldJobs jobs;
    std::vector<FailureCause> causes;

    // Each cause, of which there are so many, resets a node in an hour.
    SmallWorld(std::int64_t nodes, std::size_t cause_count) : causes(cause_count) {
        spec.groups = {{"all", nodes, 8}};
        spec.partitions = {{.name = "all", .nodes = nodes}};
        spec.accounts = {"a"};
        spec.slurm.shares = {1};
        spec.slurm.qos = {{.name = "normal"}};
        spec.kinds = {{.name = "job"}};
        for (FailureCause& cause : causes) {
            cause.remedy = Remedy::reset;
            cause.reset_time = std::chrono::hours(1);
        }
    }
    void submit(std::int64_t gpus, Duration work, Duration at = {},
                Duration limit = std::chrono::hours(1000)) {
        WorldJob job;
        job.id = static_cast<std::int64_t>(jobs.jobs.size());
        job.submit = Instant(at);
        job.gpus = gpus;
        job.gpus_per_pod = std::min<std::int64_t>(gpus, 8);
        job.work = work;
        job.limit = limit;
        jobs.jobs.push_back(job);
    }
    // `unit`: a node, or what the cause's domain has them in.
    void inject(Duration at, std::int64_t unit, std::size_t cause = 0,
                std::optional<Duration> out_for = {}) {
        spec.injected.push_back({at, cause, unit, out_for});
    }
    WorldRunResult run(Duration end, std::uint64_t seed = 1) const {
        WorldRun run{.spec = spec, .jobs = jobs, .causes = causes, .seed = seed};
        run.end = Instant(end);
        return run_world(run);
    }
};

inline double node_hours(const WorldRunResult& r, Category category) {
    return static_cast<double>(r.ledger.booked(category)) / 8 / 3.6e12;
}

}  // namespace railyard
