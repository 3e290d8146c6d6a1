// Many jobs on a scenario's cluster: what the folders below have read of them, joined.

#include "models/campaign/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "models/campaign/sections.h"
#include "models/campaign/world_steps.h"

namespace railyard {

std::string WorldScenario::kind_key(std::size_t kind) const {
    const auto plain = [&](std::size_t k) {
        std::string out = spec.kinds[k].name;
        for (char& c : out) {
            const bool upper = c >= 'A' && c <= 'Z';
            const bool kept = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
            c = upper ? static_cast<char>(c - 'A' + 'a') : kept ? c : '_';
        }
        return out;
    };
    const std::string out = plain(kind);
    for (std::size_t k = 0; k < spec.kinds.size(); ++k) {
        if (k != kind && plain(k) == out) return fmt::format("{}_{}", out, kind + 1);
    }
    return out;
}

std::shared_ptr<const WorldScenario> world_with_failures(const WorldScenario& world,
                                                         const Scenario& scenario) {
    auto out = std::make_shared<WorldScenario>(world);
    static_cast<NodeFailures&>(out->spec) = scenario.nodes;
    out->spec.misdiagnosis = scenario.job.recovery.misdiagnosis;
    if (scenario.slow_parts.empty()) return out;
    out->spec.search = scenario.job.recovery.search;
    out->spec.slowdowns = scenario.given_slowdowns;
    const bool any_without_model = std::ranges::find(out->models, nullptr) != out->models.end();
    for (std::size_t k = 0; k < out->models.size(); ++k) {
        if (out->models[k] == nullptr) continue;
        WorldJobKind& kind = out->spec.kinds[k];
        place_steps(out->models[k], scenario.slow_parts, out->throttled[k], kind);
        for (std::size_t i = 0; i < out->spec.slowdowns.size() && !any_without_model; ++i) {
            const StepTime step = usual_step(kind, out->models[k]->job.nodes, 1U << i);
            double& most = out->spec.slowdowns[i];  // as a comparison of ranks sees it
            most = std::max(most,
                            seconds(step.degraded) / seconds(step.beside_data() - step.degraded));
        }
    }
    return out;
}

namespace {

// Slurm and Kueue look at leaves only for those that ask for it.
void warn_of_idle_leaves(Section& top, const WorldScenario& world) {
    const WorldSpec& spec = world.spec;
    Section scheduler = top.section("scheduler");
    if (!scheduler.has("nodes_per_leaf")) return;
    if (spec.scheduler == "slurm" && spec.slurm.topology == SlurmTopology::none &&
        std::ranges::none_of(
            world.sources, [](const JobSource& source) { return source.like.switches_max > 0; })) {
        scheduler.warning(
            "nodes_per_leaf",
            "has no effect with scheduler.topology = \"none\" and no jobs.kind.switches");
    }
    if (spec.scheduler == "kueue" && std::ranges::all_of(spec.kinds, [](const WorldJobKind& kind) {
            return kind.kube.topology == TopologyRequest::none;
        })) {
        scheduler.warning("nodes_per_leaf", "has no effect: no [[jobs.kind]] asks for a topology");
    }
}

// By their limits all jobs are alike where none has one.
void warn_of_equal_estimates(Section& top, const WorldScenario& world) {
    const WorldSpec& spec = world.spec;
    const bool estimates = spec.scheduler == "sjf" || spec.scheduler == "easy";
    if (!estimates || spec.estimate != RuntimeEstimate::limit) return;
    const auto limited = [&](const WorldJob& job) { return has_time_limit(spec, job); };
    if (std::ranges::any_of(world.trace, limited) ||
        std::ranges::any_of(world.sources, [&](const JobSource& source) {
            return source.count > 0 && (source.limit_factor > 0 || limited(source.like));
        })) {
        return;
    }
    top.section("scheduler")
        .warning(
            "estimate",
            fmt::format("no job has a time limit: {} takes all to be equally long", spec.scheduler),
            "estimate = \"work\", or limits");
}

}  // namespace

std::set<JobsRefused> jobs_refused(const Scenario& scenario) {
    const WorldScenario& world = *scenario.world;
    std::vector<JobSource> sources;
    for (const JobSource& source : world.sources) {
        if (source.count == 0) continue;
        for (const JobSource::Size& size : source.sizes) {
            JobSource one = source;
            one.sizes = {size};
            one.rate = {};
            one.count = 1;
            one.like.submit = {};
            sources.push_back(std::move(one));
        }
    }
    // Among alike jobs of a trace that of the longest limit is refused if any is.
    std::map<std::tuple<std::int64_t, std::uint32_t, std::uint32_t>, WorldJob> longest;
    for (const WorldJob& job : world.trace) {
        const auto [known, is_new] =
            longest.try_emplace({job.gpus, job.partition, job.account}, job);
        if (!is_new && job.limit > known->second.limit) known->second = job;
    }
    std::vector<WorldJob> trace;
    for (auto& [alike, job] : longest) {
        job.submit = {};
        trace.push_back(job);
    }
    const WorldJobs each = draw_jobs(world.spec, sources, trace, scenario.seed, 0, Duration(1));
    const WorldRunResult ran = run_world(
        {.spec = world.spec, .jobs = each, .causes = scenario.causes, .end = Instant(Duration(1))});
    std::set<JobsRefused> out;
    for (const RefusedJob& job : ran.outcome.refused) {
        out.insert({world.spec.kinds[each.jobs[job.job].kind].name, job.reason});
    }
    return out;
}

void need_one_job(const Scenario& scenario, const char* verb) {
    if (!scenario.world) return;
    throw ScenarioError(
        fmt::format("{}: {} is about one job, and this scenario has many", scenario.file, verb),
        "railyard run takes it; a scenario with [job] has one");
}

double WorldScenario::worth_of(const WorldJob& job) const {
    const JobWorth& worth = worths[job.kind];
    const WorldJobKind& kind = spec.kinds[job.kind];
    // As it takes at full clocks, with all data at hand.
    double work_s =
        seconds(job.work) / power.work_factor / (job.timed ? 1 + kind.duty * kind.throttled : 1);
    if (job.timed && kind.data_wait > Duration{}) {
        work_s = seconds(kind.beside_data) * real(spec.steps_of(job));
    }
    return worth.job + worth.gpu_hour * real(job.gpus) * work_s / 3600;
}

WorldJobs draw_jobs(const WorldScenario& world, std::uint64_t seed, std::uint64_t replica,
                    Duration until, SourcesSoFar* so_far) {
    WorldJobs out = draw_jobs(world.spec, world.sources, world.trace, seed, replica, until, so_far);
    if (world.power.work_factor > 1) {
        for (WorldJob& job : out.jobs) {
            if (job.timed) continue;
            job.work = from_seconds(seconds(job.work) * world.power.work_factor);
        }
    }
    return out;
}

void read_world(Section& top, ValueReader& values, Catalogue& catalogue, Scenario& scenario) {
    const auto world = std::make_shared<WorldScenario>();
    const WorldSite site{scenario.nodes.nodes, scenario.node, scenario.networks[0].topology};
    read_scheduler(top, catalogue, site, world->spec, world->nodes);
    scenario.world_gpus = world->spec.gpus();
    read_world_jobs(top, values, catalogue, scenario, *world);
    warn_of_idle_leaves(top, *world);
    warn_of_equal_estimates(top, *world);
    world->throttled.resize(world->models.size());
    scenario.world = world;
}

}  // namespace railyard
