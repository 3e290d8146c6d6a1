#include "tests/bench/many_jobs.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/check.h"

namespace railyard {

namespace {

WorldSpec slurm_cluster(std::int64_t nodes) {
    WorldSpec spec;
    PartitionSpec all;
    all.name = "all";
    all.nodes = nodes;
    SlurmQos normal;
    normal.name = "normal";
    WorldJobKind kind;
    kind.name = "job";
    spec.groups = {{"all", nodes, 8}};
    spec.partitions = {all};
    spec.accounts = {"all"};
    spec.slurm.shares = {1};
    spec.slurm.qos = {normal};
    spec.slurm.priority.age = 1000;
    spec.kinds = {kind};
    return spec;
}

// With `load` of what `nodes` nodes can do.
MeasuredWorld jobs_on(std::int64_t nodes, double load, std::size_t count, const char* scheduler) {
    const double gpus = static_cast<double>(nodes * 8);
    constexpr double mean_runtime_s = 7200;
    constexpr double mean_gpus = 0.5 + 0.05 * (2 + 4 + 8 + 16 + 32 + 64 + 128 + 256 + 512 + 8);
    const Rate rate{load * gpus / (mean_runtime_s * mean_gpus)};
    RandomStream random(1, 0, "bench/jobs");
    MeasuredWorld out;
    out.spec = slurm_cluster(nodes);
    out.spec.scheduler = scheduler;
    Instant now{};
    for (std::size_t i = 0; i < count; ++i) {
        WorldJob job;
        job.id = static_cast<std::int64_t>(i);
        job.submit = now += random.interarrival(rate);
        job.work = from_seconds(1 + lognormal(mean_runtime_s, 1.5, random.normal()));
        job.limit = job.work * static_cast<std::int64_t>(1 + random.below(5)) + Duration(1);
        if (random.chance(0.5)) {
            const std::uint64_t size = random.below(10);
            job.gpus = size == 9 ? 8 : std::int64_t{2} << size;
            if (job.gpus > nodes * 8) job.gpus = 8;
        }
        job.gpus_per_pod = std::min<std::int64_t>(8, job.gpus);
        out.jobs.jobs.push_back(job);
    }
    return out;
}

MeasuredWorld year_of_failures() {
    MeasuredWorld out;
    out.spec = slurm_cluster(4096);
    out.spec.repair_sigma = 1;
    out.spec.kinds[0].checkpoint_interval = std::chrono::hours(1);
    out.spec.kinds[0].restart = std::chrono::minutes(10);
    WorldJob job;
    job.gpus = 4000 * 8;
    job.gpus_per_pod = 8;
    job.work = job.limit = time_max;
    out.jobs.jobs = {job};
    FailureCause cause;
    cause.name = "node";
    cause.rate_per_node = {3.8e-3 / 86400};
    cause.detection = std::chrono::seconds(20);
    cause.remedy = Remedy::replace;
    cause.repair_time = std::chrono::hours(48);
    out.causes = {cause};
    out.end = Instant(std::chrono::hours(24 * 365));
    return out;
}

}  // namespace

const std::vector<WorldBench>& world_benches() {
    static const std::vector<WorldBench> all = [] {
        std::vector<WorldBench> out;
        for (const char* scheduler : {"slurm", "kubernetes", "volcano", "kueue", "fifo", "easy"}) {
            out.push_back({std::string("world_100k_jobs_2000_nodes_") + scheduler,
                           out.empty() ? 3.0 : 6.0, [scheduler](bool smoke) {
                               return jobs_on(2000, 0.95, smoke ? 1000 : 100'000, scheduler);
                           }});
        }
        for (const char* scheduler : {"slurm", "kubernetes", "volcano", "kueue", "fifo", "easy"}) {
            out.push_back({std::string("world_6155_jobs_16_nodes_") + scheduler, 0.3,
                           [scheduler](bool smoke) {
                               return jobs_on(16, 6, smoke ? 500 : 6155, scheduler);
                           }});
        }
        out.push_back({"world_year_4096_nodes", 0.06, [](bool) { return year_of_failures(); }});
        return out;
    }();
    return all;
}

std::string run_measured(const MeasuredWorld& world) {
    WorldRun run{.spec = world.spec, .jobs = world.jobs, .causes = world.causes};
    run.end = world.end;
    Fingerprint digest;
    for (const WorldJobRun& job : run_world(run).outcome.runs) {
        digest.add(job.first_start.time_since_epoch());
        digest.add(job.end.time_since_epoch());
        digest.add(job.kept);
    }
    return digest.hex();
}

double bytes_per_waiting_job(const char* scheduler, std::size_t count) {
    const auto peak_kb = [scheduler](std::size_t jobs) {
        MeasuredWorld waiting = jobs_on(16, 1e6, jobs, scheduler);
        waiting.end = Instant(std::chrono::hours(2));
        const pid_t child = fork();
        if (child == 0) {
            run_measured(waiting);
            _exit(0);
        }
        int status = 0;
        rusage usage{};
        const bool ran = child > 0 && wait4(child, &status, 0, &usage) == child && status == 0;
        RY_CHECK(ran);
        return static_cast<double>(usage.ru_maxrss);
    };
    return (peak_kb(2 * count) - peak_kb(count)) * 1024 / static_cast<double>(count);
}

}  // namespace railyard
