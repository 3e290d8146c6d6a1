#include "models/scheduler/job_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "sim/check.h"
#include "sim/error.h"

namespace railyard {

namespace {

constexpr const char* pool = "pool";
constexpr const char* backfill = "backfill";

std::vector<std::uint32_t> order_of_submission(const std::vector<StreamJob>& jobs) {
    std::vector<std::uint32_t> out(jobs.size());
    std::iota(out.begin(), out.end(), 0U);
    std::ranges::sort(out, [&](std::uint32_t a, std::uint32_t b) {
        return std::tie(jobs[a].submit, jobs[a].id, a) < std::tie(jobs[b].submit, jobs[b].id, b);
    });
    return out;
}

WorldSpec world_of(const std::vector<VirtualCluster>& clusters, const StreamRules& rules) {
    WorldSpec spec;
    for (const VirtualCluster& c : clusters) {
        RY_CHECK(c.nodes > 0 && c.gpus_per_node > 0);
        PartitionSpec& partition = spec.partitions.emplace_back();
        partition.name = c.name;
        partition.first_node = static_cast<NodeIndex>(spec.nodes());
        partition.submitted_max = rules.submitted_max;
        // In a pool GPUs are on nodes of their own.
        const bool apart = rules.placement == pool;
        partition.nodes = apart ? c.gpus() : c.nodes;
        spec.groups.push_back({c.name, partition.nodes, apart ? 1 : c.gpus_per_node});
    }
    spec.places.resize(static_cast<std::size_t>(spec.nodes()));
    spec.accounts = {"all"};
    spec.health.prolog = spec.health.epilog = false;
    spec.scheduler = rules.policy == backfill ? "slurm" : rules.policy;
    spec.slurm.backfill = rules.backfill;
    spec.slurm.qos.push_back({.name = "normal"});
    spec.slurm.shares = {1};
    spec.estimate = rules.estimate;
    spec.kinds.push_back({.name = "job"});
    return spec;
}

// What is planned from there on fits the clock.
constexpr Duration end_max = time_max + time_max / 2;

Duration limit_of(const StreamJob& job, const StreamRules& rules) {
    // Slurm plans by limits alone, and 0 is none.
    const bool known = rules.policy == backfill && rules.estimate == RuntimeEstimate::work;
    const bool ended = job.limit > Duration{} && job.limit < job.duration;
    return !known || ended ? job.limit : std::max(Duration(1), job.duration);
}

// Notes each start.
class Starts : public WorldListener {
  public:
    Starts(const std::vector<StreamJob>& jobs, const std::vector<std::uint32_t>& order,
           StreamSchedule& schedule)
        : jobs_(jobs), order_(order), schedule_(schedule) {}

    void started(JobIndex index, Instant now, const Allocation& /*gpus*/) override {
        const StreamJob& job = jobs_[order_[index]];
        const Duration start = now.time_since_epoch();
        if (job.duration > end_max - start) {
            throw ScenarioError(fmt::format(
                "job {} would end after 150 years: longer than a stream may last", job.id));
        }
        schedule_.digest.add(std::uint64_t{order_[index]});
        schedule_.digest.add(start);
    }
    void stopped(JobIndex /*job*/, Instant /*now*/) override {}

  private:
    const std::vector<StreamJob>& jobs_;
    const std::vector<std::uint32_t>& order_;
    StreamSchedule& schedule_;
};

}  // namespace

const std::vector<StreamChoice>& policy_kinds() {
    static const std::vector<StreamChoice> kinds = [] {
        std::vector<StreamChoice> out;
        for (const char* name : {"fifo", "sjf", "priority", "easy"}) {
            out.push_back({name, find_named(world_scheduler_kinds(), name)->doc});
        }
        out.push_back(
            {backfill, "fifo, with a reservation for each job looked at (Slurm's sched/backfill)"});
        return out;
    }();
    return kinds;
}

const std::vector<StreamChoice>& placement_kinds() {
    static const std::vector<StreamChoice> kinds = {
        {pool, "any free GPUs, on whatever nodes"},
        {"consolidate", "on as few nodes as can be: the fullest that fits, or empty ones"},
    };
    return kinds;
}

StreamSchedule run_job_stream(const std::vector<StreamJob>& jobs,
                              const std::vector<VirtualCluster>& clusters, const StreamRules& rules,
                              WorldListener* listener) {
    const WorldSpec spec = world_of(clusters, rules);
    const std::vector<std::uint32_t> order = order_of_submission(jobs);
    WorldJobs world_jobs;
    for (const std::uint32_t index : order) {
        const StreamJob& job = jobs[index];
        WorldJob& out = world_jobs.jobs.emplace_back();
        out.id = std::ssize(world_jobs.jobs);
        out.partition = job.cluster;
        out.priority = job.priority;
        out.submit = Instant(job.submit);
        out.gpus = job.gpus;
        out.gpus_per_pod = std::min(job.gpus, spec.groups[job.cluster].gpus_per_node);
        out.work = job.duration;
        out.limit = limit_of(job, rules);
    }
    StreamSchedule out;
    Starts starts(jobs, order, out);
    const std::vector<FailureCause> none;
    WorldRun run{.spec = spec, .jobs = world_jobs, .causes = none};
    run.listeners = {&starts};
    if (listener != nullptr) run.listeners.push_back(listener);
    const WorldRunResult ran = run_world(run);
    out.jobs.resize(jobs.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        const WorldJobRun& job = ran.outcome.runs[i];
        out.jobs[order[i]] = {job.first_start.time_since_epoch(), job.end.time_since_epoch()};
    }
    for (const RefusedJob& job : ran.outcome.refused) {
        const std::uint32_t index = order[job.job];
        const std::int64_t there = clusters[jobs[index].cluster].gpus();
        const bool too_large = jobs[index].gpus > there;
        out.refused.push_back(
            {index,
             too_large ? fmt::format("wants {} GPUs of {}", jobs[index].gpus, there) : job.reason});
        out.jobs[index] = {.refused = true};
    }
    for (std::size_t c = 0; c < clusters.size(); ++c) {
        ClusterUse& use = out.use.emplace_back();
        use.busy = ran.ledgers.of(c, 0).total();
        use.fragmented = ran.ledgers.of(c, ran.ledgers.no_kind()).booked(Category::fragmentation);
        use.node_busy = ran.outcome.node_busy_of[c];
    }
    return out;
}

}  // namespace railyard
