#include "tools/verify/fleets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/campaign/campaign.h"

namespace railyard {

namespace {

constexpr std::int64_t gpus_per_node = 8;
constexpr double day_s = 86400;

// Jobs that never end, under Slurm, on their nodes and some more.
struct LongJob {
    std::int64_t jobs = 1;
    std::int64_t nodes = 1;  // of each
    double node_rate_per_day = 0;
    double own_rate_per_day = 0;  // of the job, for each of its nodes
    Duration interval{};
    Duration stall{};
    Duration restart{};
};

struct LongRun {
    double mttf_s = 0;
    double ettr = 0;
};

// Until it has failed so many times; broken nodes are back after an hour, and one in 20 nodes is over, so
// that it never waits.
LongRun run(const LongJob& wanted, double failures = 4000) {
    FleetSpec spec;
    const std::int64_t used = wanted.jobs * wanted.nodes;
    const std::int64_t nodes = used + std::max<std::int64_t>(2, used / 20);
    PartitionSpec all;
    all.name = "all";
    all.nodes = nodes;
    FleetJobKind kind;
    kind.name = "job";
    kind.checkpoint_interval = wanted.interval;
    kind.checkpoint_stall = wanted.stall;
    kind.restart = wanted.restart;
    kind.own_failure_rate_per_gpu = {wanted.own_rate_per_day / day_s / gpus_per_node};
    SlurmQos qos;
    qos.name = "normal";
    spec.groups = {{"all", nodes, gpus_per_node}};
    spec.partitions = {all};
    spec.accounts = {"all"};
    spec.slurm.shares = {1};
    spec.slurm.qos = {qos};
    spec.kinds = {kind};
    FailureCause cause;
    cause.name = "node";
    cause.rate_per_node = {wanted.node_rate_per_day / day_s};
    cause.remedy = Remedy::reset;
    cause.reset_time = std::chrono::hours(1);
    FleetJob job;
    job.gpus = wanted.nodes * gpus_per_node;
    job.gpus_per_pod = gpus_per_node;
    job.work = time_max;
    job.limit = time_max;
    const FleetJobs jobs{std::vector<FleetJob>(static_cast<std::size_t>(wanted.jobs), job)};
    const std::vector<FailureCause> causes = {cause};
    const double per_day =
        (wanted.node_rate_per_day + wanted.own_rate_per_day) * static_cast<double>(used);
    FleetRun fleet{.spec = spec, .jobs = jobs, .causes = causes};
    fleet.end = Instant(std::min(from_seconds(failures / per_day * day_s), time_max));
    double held = 0;
    double kept = 0;
    double interruptions = 0;
    for (const FleetJobRun& done : run_fleet(fleet).outcome.runs) {
        held += seconds(done.held);
        kept += seconds(done.kept);
        interruptions += static_cast<double>(done.interruptions);
    }
    return {held / std::max(1.0, interruptions),
            kept / seconds(fleet.end.time_since_epoch()) / static_cast<double>(wanted.jobs)};
}

std::string profile_of(const std::string& cluster) {
    return cluster.find("RSC-2") != std::string::npos ? "meta_rsc2" : "meta_rsc1";
}

double node_rate_per_day(Catalogue& c, const std::string& cluster) {
    return c.rate("aggregate", profile_of(cluster), "failure_rate_per_1000_nodes").per_second *
           day_s / 1000;
}

// What fails jobs of one node beyond the nodes' own rate: their code, data, mounts. In proportion to nodes,
// it is taken to hold for larger jobs.
double own_rate_per_day(Catalogue& c) {
    const double observed =
        day_s / seconds(c.time("aggregate", "meta_rsc1", "mttf_8_gpus_observed"));
    return observed - node_rate_per_day(c, "RSC-1");
}

// 20: observed times hold what fails jobs by themselves, projections the nodes' rate alone.
std::vector<VerifiedRow> mttf(Catalogue& c, const Fields& f) {
    const bool observed = f.text("kind").find("measured") != std::string::npos;
    LongJob job;
    job.nodes = std::max<std::int64_t>(1, f.integer("gpus") / gpus_per_node);
    job.node_rate_per_day = node_rate_per_day(c, f.text("cluster"));
    const std::string row = fmt::format("{} GPUs, {}", f.integer("gpus"), f.text("cluster"));
    const std::string& unit = f.text("unit");
    const double unit_s = unit == "day" ? day_s : unit == "h" ? 3600 : 60;
    std::vector<VerifiedRow> out;
    // By the nodes' rate alone, as the paper's formula has it: as many jobs as a thousand nodes hold.
    LongJob alone = job;
    alone.jobs = std::max<std::int64_t>(1, 1000 / job.nodes);
    const double failures = job.nodes > 1000 ? 6000 : 20000;
    const double alone_s = run(alone, failures).mttf_s;
    if (const double formula_h = f.number("mttf_from_rf_h"); formula_h > 0) {
        out.push_back({row, "MTTF by r_f, h", formula_h, alone_s / 3600});
    }
    if (observed && job.nodes == 1) return out;  // what the jobs' own rate was read from
    double simulated_s = alone_s;
    if (observed) {
        job.own_rate_per_day = own_rate_per_day(c);
        simulated_s = run(job).mttf_s;
    }
    out.push_back({row, "MTTF, " + unit, f.figure("mttf"), simulated_s / unit_s});
    return out;
}

// 23: against the paper's formula, which holds while little is lost.
std::vector<VerifiedRow> ettr(Catalogue&, const Fields& f) {
    LongJob job;
    job.nodes = std::max<std::int64_t>(1, f.integer("gpus") / gpus_per_node);
    job.node_rate_per_day = f.number("r_f_per_1000_node_days") / 1000;
    const auto minutes = [&](const char* column) { return from_seconds(60 * f.number(column)); };
    job.interval = minutes("ckpt_interval_min");
    job.stall = minutes("w_cp_min");
    job.restart = minutes("u0_min") + minutes("queue_min");
    const double lost = static_cast<double>(job.nodes) * job.node_rate_per_day / day_s *
                        seconds(job.restart + job.interval / 2);
    constexpr double small = 0.3;  // the table's own remark: beyond, a first-order formula is off
    if (lost > small) return {};
    return {{fmt::format("{} GPUs, checkpoints every {}", f.integer("gpus"), to_text(job.interval)),
             "ETTR", f.figure("formula_value"), run(job).ettr}};
}

}  // namespace

std::optional<VerifiedTable> verify_fleets(const CsvTable& table, const Value* overrides) {
    const bool is_mttf = table.name.starts_with("20");
    if (!is_mttf && !table.name.starts_with("23")) return std::nullopt;
    Diagnostics diagnostics;
    ValueReader reader(diagnostics, "catalogue");
    Catalogue catalogue(reader, ValueChoice::corrected, overrides);
    VerifiedTable out{table.name,
                      is_mttf ? "Meta RSC, time to failure by job size" : "Meta RSC, ETTR",
                      is_mttf ? 2 * table.rows.size() : table.rows.size()};
    each_row(table, out.unused, [&](const Fields& f) {
        for (const VerifiedRow& each : is_mttf ? mttf(catalogue, f) : ettr(catalogue, f)) {
            out.expressed.push_back(each);
        }
    });
    diagnostics.raise_if_any();
    return out;
}

}  // namespace railyard
