#include "tools/cli/scheduled_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/cli/terminal.h"
#include "tools/program/program.h"

namespace railyard {

namespace {

using NamedStatistics = std::vector<std::pair<std::string, StreamStatistics>>;

std::string gpus_text(const std::vector<VirtualCluster>& clusters) {
    std::int64_t nodes = 0;
    std::int64_t gpus = 0;
    for (const VirtualCluster& c : clusters) {
        nodes += c.nodes;
        gpus += c.gpus();
    }
    return fmt::format("{} nodes with {} GPUs{}", grouped(static_cast<double>(nodes)),
                       grouped(static_cast<double>(gpus)),
                       clusters.size() > 1 ? fmt::format(" in {} virtual clusters", clusters.size())
                                           : std::string());
}

void print_trace(const std::string& path, const ScheduledTrace& run) {
    const JobTrace& t = run.trace;
    fmt::print("{}\n  {} jobs of GPUs", coloured(path, Colour::bold),
               grouped(static_cast<double>(t.jobs.size())));
    const auto also = [](std::int64_t count, const char* what) {
        if (count > 0) fmt::print("; {} {}", grouped(static_cast<double>(count)), what);
    };
    also(t.without_gpus, "without GPUs left out");
    also(t.never_started, "never started");
    also(t.still_running, "still running left out");
    also(t.steps, "lines of job steps");
    also(t.gang_parts, "lines of further parts of heterogeneous jobs");
    also(t.bad, "malformed lines skipped");
    fmt::print("\n  {}; policy {}, placement {}\n\n", gpus_text(run.clusters), run.rules.policy,
               run.rules.placement);
}

std::string mean_text(double mean_s) {
    return mean_s == 0 ? "0" : std::isnan(mean_s) ? "-" : time_text(mean_s);
}
// Without jobs there is no wait.
std::string wait_text(std::optional<Duration> wait) {
    if (!wait) return "-";
    return *wait == Duration::zero() ? "0" : to_text(*wait);
}
std::string share_text(double share) {
    return std::isnan(share) ? "-" : percent(share);
}

void print_waits(const NamedStatistics& rows) {
    Table table(
        {"waits", ">jobs", ">refused", ">at once", ">mean", ">p50", ">p90", ">p99", ">max"});
    for (const auto& [name, s] : rows) {
        table.add({name, grouped(static_cast<double>(s.jobs)),
                   s.refused > 0 ? grouped(static_cast<double>(s.refused)) : "-",
                   share_text(s.zero_wait), mean_text(s.mean_wait_s), wait_text(s.wait_p50),
                   wait_text(s.wait_p90), wait_text(s.wait_p99), wait_text(s.wait_max)});
    }
    fmt::print("{}\n", table.text());
}

void print_use(const NamedStatistics& rows, const std::string& placement) {
    Table table({"use", ">mean JCT", ">bounded slowdown", ">makespan", ">utilisation", ">occupancy",
                 ">fragmented"});
    for (const auto& [name, s] : rows) {
        const bool nodes = placement != "pool";
        const bool any = !std::isnan(s.mean_slowdown);
        table.add({name, mean_text(s.mean_jct_s),
                   any ? fmt::format("{:.2f}", s.mean_slowdown) : "-", mean_text(s.makespan_s()),
                   share_text(s.utilisation), nodes ? share_text(s.occupancy) : "-",
                   nodes ? share_text(s.fragmentation) : "-"});
    }
    fmt::print(
        "{}\n  bounded slowdown: mean of JCT / runtime, of jobs under 10 s JCT / 10 s, at least 1\n"
        "  occupancy: GPU time of nodes that have a job; fragmented: GPU time free while the first "
        "of\n"
        "  the queue waits for no more GPUs than are free\n",
        table.text());
}

void print_refused(const ScheduledTrace& run) {
    constexpr std::size_t shown_max = 5;
    const std::vector<RefusedJob>& refused = run.schedule.refused;
    for (std::size_t i = 0; i < std::min(shown_max, refused.size()); ++i) {
        const std::size_t job = refused[i].job;
        fmt::print(stderr, "railyard: warning: job {} is refused in {}: {}\n", run.trace.ids[job],
                   run.clusters[run.trace.jobs[job].cluster].name, refused[i].reason);
    }
    if (refused.size() > shown_max) {
        fmt::print(stderr, "railyard: warning: {} more jobs are refused\n",
                   refused.size() - shown_max);
    }
    for (const auto& [name, count] : run.homeless) {
        fmt::print(stderr, "railyard: warning: {} jobs are refused: no virtual cluster '{}'\n",
                   count, name);
    }
    for (const std::string& text : run.trace.warnings()) {
        fmt::print(stderr, "railyard: warning: {}\n", text);
    }
    if (run.trace.first_bad) print_warnings({*run.trace.first_bad});
}

Json wait_json(std::optional<Duration> wait) {
    return wait ? Json(seconds(*wait)) : Json();
}

Json statistics_json(const StreamStatistics& s, bool knows_nodes) {
    return {{"jobs", s.jobs},
            {"refused", s.refused},
            {"mean_wait_s", s.mean_wait_s},
            {"p50_wait_s", wait_json(s.wait_p50)},
            {"p90_wait_s", wait_json(s.wait_p90)},
            {"p99_wait_s", wait_json(s.wait_p99)},
            {"max_wait_s", wait_json(s.wait_max)},
            {"zero_wait", s.zero_wait},
            {"mean_jct_s", s.mean_jct_s},
            {"mean_runtime_s", s.mean_runtime_s},
            {"mean_bounded_slowdown", s.mean_slowdown},
            {"end_s", wait_json(s.end)},
            {"makespan_s", s.makespan_s()},
            {"utilisation", s.utilisation},
            {"occupancy", knows_nodes ? Json(s.occupancy) : Json()},
            {"fragmentation", knows_nodes ? Json(s.fragmentation) : Json()}};
}

}  // namespace

void print_scheduled(const std::string& path, const ScheduledTrace& run) {
    const auto each = cluster_statistics(run.trace.jobs, run.clusters, run.schedule);
    NamedStatistics rows;
    for (std::size_t i = 0; i < each.size() && each.size() > 1; ++i) {
        rows.emplace_back(run.clusters[i].name, each[i]);
    }
    rows.emplace_back("all", stream_statistics(run.trace.jobs, run.clusters, run.schedule));
    print_trace(path, run);
    print_waits(rows);
    print_use(rows, run.rules.placement);
    print_refused(run);
}

Json scheduled_json(const std::string& path, const ScheduledTrace& run) {
    const auto each = cluster_statistics(run.trace.jobs, run.clusters, run.schedule);
    const bool knows_nodes = run.rules.placement != "pool";
    Json clusters = Json::array();
    for (std::size_t i = 0; i < each.size(); ++i) {
        Json cluster = {{"name", run.clusters[i].name},
                        {"nodes", run.clusters[i].nodes},
                        {"gpus_per_node", run.clusters[i].gpus_per_node}};
        cluster.update(statistics_json(each[i], knows_nodes));
        clusters.push_back(cluster);
    }
    const Json refused = json_array(run.schedule.refused, [&](const RefusedJob& r) -> Json {
        return {{"job", run.trace.ids[r.job]}, {"reason", r.reason}};
    });
    const JobTrace& t = run.trace;
    return {{"trace", path},
            {"version", version()},
            {"policy", run.rules.policy},
            {"placement", run.rules.placement},
            {"lines",
             {{"jobs", t.jobs.size()},
              {"without_gpus", t.without_gpus},
              {"never_started", t.never_started},
              {"still_running", t.still_running},
              {"waits_in_duration", t.waits_in_duration},
              {"gang_parts", t.gang_parts},
              {"steps", t.steps},
              {"bad", t.bad}}},
            {"all", statistics_json(stream_statistics(run.trace.jobs, run.clusters, run.schedule),
                                    knows_nodes)},
            {"virtual_clusters", clusters},
            {"refused", refused},
            {"without_virtual_cluster", run.homeless},
            {"digest", run.schedule.digest.hex()}};
}

}  // namespace railyard
