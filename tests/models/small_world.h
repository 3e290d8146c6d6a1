#pragma once
// A small cluster under Slurm for cases that are computed by hand: nodes of 8 GPUs, one kind of jobs.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "models/scheduler/scheduler.h"

namespace railyard {

// Nodes behind one partition, with one account and one QOS.
inline WorldSpec world_of(std::vector<NodeGroup> groups) {
    WorldSpec spec;
    spec.partitions = {{.name = "all"}};
    for (const NodeGroup& group : groups) spec.partitions[0].nodes += group.nodes;
    spec.groups = std::move(groups);
    spec.accounts = {"a"};
    spec.slurm.shares = {1};
    spec.slurm.qos = {{.name = "normal"}};
    return spec;
}

// Likewise; pods are made at once, and nodes are not checked before a start.
inline WorldSpec world_of(std::vector<NodeGroup> groups, const std::string& scheduler) {
    WorldSpec spec = world_of(std::move(groups));
    spec.scheduler = scheduler;
    spec.kube.pod_interval = {};
    spec.health.prolog = false;
    return spec;
}

// Adds a kind of jobs that asks for these.
inline std::uint32_t kind_that_asks(WorldSpec& spec, const GpuRequest& request,
                                    const std::string& name = "asks") {
    spec.requests.push_back(request);
    spec.kinds.push_back(
        {.name = name, .request = static_cast<std::uint32_t>(spec.requests.size() - 1)});
    return static_cast<std::uint32_t>(spec.kinds.size() - 1);
}

inline WorldJob world_job(std::int64_t id, Duration submit, std::int64_t gpus, Duration work,
                          Duration limit) {
    WorldJob job;
    job.id = id;
    job.submit = Instant(submit);
    job.gpus = gpus;
    job.gpus_per_pod = std::min<std::int64_t>(gpus, 8);
    job.work = work;
    job.limit = limit;
    return job;
}

struct SmallWorld {
    WorldSpec spec;
    WorldJobs jobs;
    std::vector<FailureCause> causes;

    // Each cause, of which there are so many, resets a node in an hour.
    SmallWorld(std::int64_t nodes, std::size_t cause_count)
        : spec(world_of({{"all", nodes, 8}})), causes(cause_count) {
        spec.kinds = {{.name = "job"}};
        for (FailureCause& cause : causes) {
            cause.remedy = Remedy::reset;
            cause.reset_time = std::chrono::hours(1);
        }
    }
    void submit(std::int64_t gpus, Duration work, Duration at = {},
                Duration limit = std::chrono::hours(1000)) {
        jobs.jobs.push_back(
            world_job(static_cast<std::int64_t>(jobs.jobs.size()), at, gpus, work, limit));
    }
    // Jobs of all sizes, some hours each; gives their node hours.
    double submit_random(RandomStream random, bool limited) {
        Duration at{};
        double work_h = 0;
        for (int i = 0; i < 60; ++i) {
            at += from_seconds(1800 * random.exponential());
            const std::int64_t gpus = std::int64_t{4} << random.below(5);
            const Duration work = from_seconds(3600 * (1 + 6 * random.uniform()));
            submit(gpus, work, at,
                   limited ? work * 2 + std::chrono::hours(1) : std::chrono::hours(1000));
            work_h += static_cast<double>(gpus) / 8 * std::ceil(seconds(work) * 1e3) / 3.6e6;
        }
        return work_h;
    }
    // `unit`: a node, or what the cause's domain has them in.
    void inject(Duration at, std::int64_t unit, std::size_t cause = 0,
                std::optional<Duration> out_for = {}) {
        spec.injected.push_back({at, cause, unit, out_for, spec.injected.size()});
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
