// railyard jobs: a trace of many jobs on a cluster, and who waits how long.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/campaign/campaign.h"
#include "models/scheduler/scheduler.h"
#include "tools/cli/cmd.h"
#include "tools/cli/options.h"
#include "tools/cli/terminal.h"
#include "tools/language/nodes_file.h"
#include "tools/program/json_text.h"
#include "tools/program/lists.h"

namespace railyard {

namespace {

// A trace on its cluster, and what became of it.
struct ScheduledTrace {
    JobTrace trace;
    std::map<std::string, std::int64_t> homeless;  // jobs by a virtual cluster that has no nodes
    std::vector<VirtualCluster> clusters;
    StreamRules rules;
    StreamSchedule schedule;
};

template <class Kind>
std::string kind_option(const po::variables_map& values, const char* option,
                        const std::vector<Kind>& kinds) {
    const std::string name = text_of(values, option);
    return std::string(
        named(kinds, name, fmt::format("--{}: unknown kind '{}'", option, name)).name);
}

template <class Enum>
struct NamedValue {
    std::string name;
    Enum value;
};

template <class Enum>
Enum choice(const po::variables_map& values, const char* option,
            const std::vector<NamedValue<Enum>>& choices) {
    const std::string name = values[option].as<std::string>();
    return named(choices, name, fmt::format("--{}: unknown choice '{}'", option, name)).value;
}

std::optional<std::int64_t> count_given(const po::variables_map& values, const char* option,
                                        std::int64_t most) {
    if (!values.count(option)) return std::nullopt;
    const auto count = values[option].as<std::int64_t>();
    if (count < 1 || count > most) {
        throw ScenarioError(fmt::format("--{}: expected a whole number from 1 to {}, found {}",
                                        option, most, count));
    }
    return count;
}

Duration time_option(const po::variables_map& values, const char* option) {
    std::string why;
    const auto time = parse_quantity(values[option].as<std::string>(), why, Dimension::time);
    constexpr Duration most = std::chrono::hours(24 * 365);
    if (!time || time->dimension != Dimension::time || !time->integer || *time->integer < 1 ||
        Duration(*time->integer) > most) {
        throw ScenarioError(fmt::format("--{}: expected a time above zero, up to a year{}{}",
                                        option, why.empty() ? "" : ": ", why),
                            fmt::format("--{} \"1 min\"", option));
    }
    return Duration(*time->integer);
}

TraceReading reading_of(const po::variables_map& values) {
    TraceReading out;
    out.time_unit = time_option(values, "time-unit");
    out.skip_bad = values.count("skip-bad") > 0;
    if (values.count("format")) {
        out.format = choice<TraceFormat>(
            values, "format",
            {{"csv", TraceFormat::csv}, {"sacct", TraceFormat::sacct}, {"swf", TraceFormat::swf}});
    }
    return out;
}

StreamRules rules_of(const po::variables_map& values) {
    StreamRules out;
    out.policy = kind_option(values, "policy", policy_kinds());
    out.placement = kind_option(values, "placement", placement_kinds());
    out.estimate = choice<RuntimeEstimate>(
        values, "estimate", {{"exact", RuntimeEstimate::work}, {"limit", RuntimeEstimate::limit}});
    BackfillRules& backfill = out.backfill;
    backfill.interval = time_option(values, "bf-interval");
    backfill.window = time_option(values, "bf-window");
    backfill.resolution = time_option(values, "bf-resolution");
    constexpr std::int64_t jobs_max = 1'000'000'000;
    backfill.depth = count_given(values, "bf-depth", jobs_max).value_or(backfill.depth);
    out.submitted_max = count_given(values, "max-submit", jobs_max).value_or(0);
    return out;
}

// What is given and the policy does not look at.
void warn_of_idle_options(const po::variables_map& values, const StreamRules& rules) {
    const auto warn = [&](std::initializer_list<const char*> options,
                          std::initializer_list<std::string_view> users) {
        if (contains(users, rules.policy)) return;
        for (const char* option : options) {
            if (values[option].defaulted()) continue;
            fmt::print(stderr, "railyard: warning: --{} has no effect with --policy {}\n", option,
                       rules.policy);
        }
    };
    warn({"bf-interval", "bf-window", "bf-resolution", "bf-depth"}, {"backfill"});
    warn({"estimate"}, {"sjf", "easy", "backfill"});
}

// What is given and the trace has no use for.
void warn_of_idle_options(const po::variables_map& values, const JobTrace& trace) {
    if (!values["time-unit"].defaulted() && trace.format != TraceFormat::csv) {
        fmt::print(stderr, "railyard: warning: --time-unit has no effect: the trace is no CSV\n");
    }
    const bool limits =
        std::ranges::any_of(trace.jobs, [](const StreamJob& job) { return job.limit.count() > 0; });
    if (values["estimate"].as<std::string>() == "limit" && !limits) {
        fmt::print(stderr,
                   "railyard: warning: --estimate has no effect: the trace has no time limits\n");
    }
}

std::vector<VirtualCluster> clusters_of(const po::variables_map& values) {
    const auto nodes = count_given(values, "nodes", nodes_max);
    const auto gpus = count_given(values, "gpus-per-node", gpus_per_node_max);
    if (values.count("nodes-file")) {
        if (nodes) throw ScenarioError("--nodes and --nodes-file: give one of them");
        return read_nodes_file(values["nodes-file"].as<std::string>(), gpus);
    }
    if (!nodes || !gpus) {
        throw ScenarioError("jobs needs nodes to run on",
                            "--nodes 96 --gpus-per-node 8, or --nodes-file NODES.csv");
    }
    return {{"all", *nodes, *gpus}};
}

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

void print_waits(const std::vector<std::pair<std::string, StreamStatistics>>& rows) {
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

void print_use(const std::vector<std::pair<std::string, StreamStatistics>>& rows,
               const std::string& placement) {
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
    if (run.trace.first_bad) {
        fmt::print(stderr, "{}\n", format_diagnostic(*run.trace.first_bad, "warning"));
    }
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

void print_json(const std::string& path, const ScheduledTrace& run, const StreamStatistics& all,
                const std::vector<StreamStatistics>& each) {
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
    const Json out = {{"trace", path},
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
                      {"all", statistics_json(all, knows_nodes)},
                      {"virtual_clusters", clusters},
                      {"refused", refused},
                      {"without_virtual_cluster", run.homeless},
                      {"digest", run.schedule.digest.hex()}};
    fmt::print("{}\n", one_line(out));
}

template <class Kind>
std::string kinds_text(const char* what, const std::vector<Kind>& kinds) {
    std::string out = fmt::format("\n{}:\n", what);
    for (const Kind& kind : kinds) out += fmt::format("  {:12} {}\n", kind.name, kind.doc);
    return out;
}

void add_trace_options(CommandLine& line) {
    line.positional("trace", 1);
    line.add()("nodes", a_count(), "Nodes, all behind one queue");
    line.add()("gpus-per-node", a_count(), "GPUs of each");
    line.add()("nodes-file", a_text(),
               "Virtual clusters, each with a queue of its own: a CSV with columns vc, nodes and, "
               "unless --gpus-per-node says it, gpus_per_node. A job's is named by its vc or "
               "partition, or by its user in a trace without these");
    line.add()("policy", a_text("fifo"), "Who starts next");
    line.add()("placement", a_text("pool"), "On which GPUs");
    line.add()("estimate", a_text("exact"),
               "What sjf, easy and backfill take for a duration: exact, or the time limit that the "
               "job asked for");
    line.add()(
        "max-submit", a_count(),
        "Refuse jobs while so many run and wait in their virtual cluster (Slurm's MaxSubmitJobs)");
    line.add()("bf-interval", a_text("30 s"),
               "Time between two looks of the policy backfill at the queue");
    line.add()("bf-window", a_text("1 day"), "How far ahead it plans");
    line.add()("bf-resolution", a_text("1 min"), "What it rounds expected ends up to");
    line.add()("bf-depth", a_count(100), "How many jobs it looks at");
    line.add()("format", a_text(), "csv, sacct or swf, if the file does not show it");
    line.add()("time-unit", a_text("1 s"), "Unit of the times in a CSV");
    line.add()("skip-bad", "Count malformed lines instead of refusing the file");
    line.add_json();
}

}  // namespace

int cmd_jobs(const std::vector<std::string>& arguments) {
    CommandLine line(
        "railyard jobs TRACE (--nodes N --gpus-per-node G | --nodes-file CSV) [options]",
        "Schedules the jobs of a trace and prints who waits how long, and how well the GPUs are\n"
        "used. The trace is a CSV (job_id, user, vc, gpus, submit_time, duration, time_limit,\n"
        "priority; those of Philly, Helios and Acme have their own names for them), what Slurm's\n"
        "'sacct -P' prints, or the Standard Workload Format.\n" +
            kinds_text("Policies", policy_kinds()) + kinds_text("Placements", placement_kinds()));
    add_trace_options(line);
    const auto values = line.parse(arguments);
    const std::string path = word_given(values, "trace", "jobs needs a trace",
                                        "railyard jobs TRACE --nodes 96 --gpus-per-node 8");
    ScheduledTrace run;
    run.rules = rules_of(values);
    warn_of_idle_options(values, run.rules);
    run.clusters = clusters_of(values);
    run.trace = read_job_trace(path, reading_of(values));
    warn_of_idle_options(values, run.trace);
    if (values.count("nodes-file")) run.homeless = assign_clusters(run.trace, run.clusters);
    run.schedule = run_job_stream(run.trace.jobs, run.clusters, run.rules);

    const StreamStatistics all = stream_statistics(run.trace.jobs, run.clusters, run.schedule);
    const auto each = cluster_statistics(run.trace.jobs, run.clusters, run.schedule);
    if (values.count("json")) {
        print_json(path, run, all, each);
        return exit_ok;
    }
    std::vector<std::pair<std::string, StreamStatistics>> rows;
    for (std::size_t i = 0; i < each.size() && each.size() > 1; ++i) {
        rows.emplace_back(run.clusters[i].name, each[i]);
    }
    rows.emplace_back("all", all);
    print_trace(path, run);
    print_waits(rows);
    print_use(rows, run.rules.placement);
    print_refused(run);
    return exit_ok;
}

}  // namespace railyard
