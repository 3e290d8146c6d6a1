// railyard jobs: a trace of many jobs on a cluster, and who waits how long.

#include <fmt/format.h>

#include <algorithm>

#include "tools/cli/cmd.h"
#include "tools/cli/options.h"
#include "tools/cli/scheduled_text.h"
#include "tools/language/nodes_file.h"
#include "tools/program/lists.h"

namespace railyard {

namespace {

template <class Enum>
struct NamedValue {
    std::string name;
    Enum value;
};

// The one of `kinds` that an option names; `what` they are, for messages.
template <class Kind>
const Kind& kind_option(const po::variables_map& values, const char* option, const char* what,
                        const std::vector<Kind>& kinds) {
    const std::string name = text_of(values, option);
    return named(kinds, name, fmt::format("--{}: unknown {} '{}'", option, what, name));
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
        using Format = NamedValue<TraceFormat>;
        const std::vector<Format> formats = {
            {"csv", TraceFormat::csv}, {"sacct", TraceFormat::sacct}, {"swf", TraceFormat::swf}};
        out.format = kind_option(values, "format", "choice", formats).value;
    }
    return out;
}

StreamRules rules_of(const po::variables_map& values) {
    StreamRules out;
    out.policy = kind_option(values, "policy", "kind", policy_kinds()).name;
    out.placement = kind_option(values, "placement", "kind", placement_kinds()).name;
    const std::vector<NamedValue<RuntimeEstimate>> estimates = {{"exact", RuntimeEstimate::work},
                                                                {"limit", RuntimeEstimate::limit}};
    out.estimate = kind_option(values, "estimate", "choice", estimates).value;
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

    if (values.count("json")) {
        fmt::print("{}\n", one_line(scheduled_json(path, run)));
    } else {
        print_scheduled(path, run);
    }
    return exit_ok;
}

}  // namespace railyard
