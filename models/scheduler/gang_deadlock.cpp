#include "models/scheduler/gang_deadlock.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "models/scheduler/pod_placement.h"

namespace railyard {

std::vector<JobIndex> deadlocked(const WorldView& world, const std::set<JobIndex>& lacking) {
    if (lacking.empty()) return {};
    std::vector<JobIndex> stuck;
    FreeGpus free = all_gpus(world.cluster());
    for (const JobIndex job : lacking) {
        if (world.status(job).held.empty() || world.status(job).phase == WorldPhase::running)
            continue;
        stuck.push_back(job);
        for (const NodeShare& share : world.status(job).held) free[share.node] -= share.gpus;
    }
    const auto goes_on = [&](JobIndex job) {
        const PodRequest missing = missing_pods(world, job);
        if (!place_pods(world.cluster(), missing, free, world.cluster().members(missing.pool),
                        PodScoring::most_allocated)) {
            return false;
        }
        for (const NodeShare& share : world.status(job).held) free[share.node] += share.gpus;
        return true;
    };
    for (std::size_t before = stuck.size() + 1; stuck.size() < before;) {
        before = stuck.size();
        std::erase_if(stuck, goes_on);
    }
    return stuck;
}

namespace {

// The first of the others that holds GPUs where a job could use them.
JobIndex waits_for(const WorldView& world, JobIndex job, const std::vector<JobIndex>& jobs) {
    const NodeSet& nodes = world.cluster().members(world.spec().pool(world.job(job)));
    for (const JobIndex other : jobs) {
        const Allocation& held = world.status(other).held;
        const bool in_the_way = std::ranges::any_of(
            held, [&](const NodeShare& share) { return nodes.has(share.node); });
        if (other != job && in_the_way) return other;
    }
    return no_world_job;
}

std::string circle(const WorldView& world, const std::vector<JobIndex>& jobs) {
    std::vector<JobIndex> path;
    JobIndex next = jobs.front();
    while (next != no_world_job && std::ranges::find(path, next) == path.end()) {
        path.push_back(next);
        next = waits_for(world, next, jobs);
    }
    path.push_back(next);
    std::vector<std::string> names;
    for (auto at = std::ranges::find(path, next); at != path.end(); ++at) {
        if (*at != no_world_job) names.push_back(world.spec().name_of(world.job(*at)));
    }
    return fmt::format("job {}", fmt::join(names, " waits for job "));
}

std::string node_list(const Allocation& held) {
    std::string out;
    const std::vector<NodeRun>& runs = held.runs();
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const NodeIndex first = runs[i].first;
        while (i + 1 < runs.size() && runs[i + 1].first == runs[i].end()) ++i;
        if (!out.empty()) out += ",";
        out += runs[i].end() == first + 1 ? fmt::format("{}", first)
                                          : fmt::format("{}-{}", first, runs[i].end() - 1);
    }
    return out;
}

}  // namespace

std::string describe_deadlock(const WorldView& world, const std::vector<JobIndex>& jobs) {
    if (jobs.empty()) return "";
    std::string out = "deadlock: " + circle(world, jobs);
    for (const JobIndex job : jobs) {
        const WorldJobStatus& status = world.status(job);
        out += fmt::format("\njob {} holds {} GPUs (nodes {}) and waits for {} more",
                           world.spec().name_of(world.job(job)), status.gpus,
                           node_list(status.held), world.job(job).gpus - status.gpus);
    }
    return out;
}

}  // namespace railyard
