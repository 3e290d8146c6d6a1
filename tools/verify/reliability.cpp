#include "tools/verify/reliability.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

#include "models/campaign/campaign.h"
#include "tools/program/installation.h"

namespace railyard {

namespace {

constexpr std::int64_t meta_gpus_per_node = 8;
constexpr double hour_s = 3600;

// "~600", ">100", "<=15": the number, and what is said of it.
struct Figure {
    explicit Figure(const Fields& f) {
        const std::vector<std::string> groups =
            f.groups("value", "(~|<=?|>=?)?([0-9]+(?:[.][0-9]+)?(?:e-?[0-9]+)?)", "<=15");
        if (groups[0].starts_with('<')) as = Published::at_most;
        if (groups[0].starts_with('>')) as = Published::at_least;
        value = std::stod(groups[1]);
    }
    double value = 0;
    Published as = Published::figure;
};

VerifiedRow row_of(std::string row, std::string quantity, const Figure& published,
                   double simulated) {
    return {std::move(row), std::move(quantity), published.value, simulated, published.as};
}

double mean(const CampaignResult& r, std::string_view metric) {
    return r.metric(metric).summary.mean;
}

CampaignResult run_text(const std::string& text) {
    return run_campaign(load_scenario(text, "verify"), {});
}

Scenario study(const char* name, std::vector<std::string> settings) {
    ScenarioChanges changes;
    changes.settings = std::move(settings);
    return load_scenario_file(shipped_file(fmt::format("scenarios/studies/{}.toml", name)),
                              changes);
}

// A job that fails and does nothing else.
CampaignResult run_failing_job(std::int64_t nodes, const std::string& length, std::int64_t replicas,
                               const std::string& failures) {
    return run_text(
        fmt::format("[run]\nreplicas = {}\nduration = \"{}\"\n[cluster]\nnodes = {}\n"
                    "[job]\nstep.time = \"1 s\"\ncheckpoint.mode = \"none\"\n"
                    "recovery = {{ replacement = \"0 s\", restart = \"0 s\", restore = \"0 s\", "
                    "recompute = false }}\n{}",
                    replicas, length, nodes, failures));
}

// ---- Llama 3: the study that ships, given the counts by cause ----

struct Llama3 {
    Scenario scenario;
    CampaignResult result;
};

const Llama3& llama3() {
    static const Llama3 run = [] {
        Scenario s = study("llama3_405b_54_days", {"run.replicas=400"});
        CampaignResult result = run_campaign(s, {});
        return Llama3{std::move(s), std::move(result)};
    }();
    return run;
}

// Confirmed or suspected hardware: not software, and not maintenance.
double llama3_hardware_share() {
    const std::vector<FailureCause>& causes = llama3().scenario.causes;
    double hardware = 0;
    double all = 0;
    for (std::size_t i = 0; i < causes.size(); ++i) {
        const double n = llama3().result.interruptions[i];
        all += n;
        const bool is_part =
            causes[i].remedy != Remedy::restart && causes[i].name != "host_maintenance";
        if (is_part) hardware += n;
    }
    return hardware / all;
}

// 07: the counts are the campaign's input; it loses those that strike while the job is down.
std::optional<VerifiedRow> llama3_cause(const Fields& f) {
    static const std::map<std::string, const char*> names = {
        {"Faulty GPU", "gpu_hw"},
        {"GPU HBM3 Memory", "gpu_hbm"},
        {"Software Bug", "software"},
        {"Network Switch/Cable", "network_switch_cable"},
        {"Host Maintenance", "host_maintenance"},
        {"GPU SRAM Memory", "gpu_sram"},
        {"GPU System Processor", "gpu_gsp"},
        {"NIC", "nic"},
        {"NCCL Watchdog Timeouts", "nccl_watchdog"},
        {"Silent Data Corruption", "sdc"},
        {"GPU Thermal Interface + Sensor", "gpu_thermal"},
        {"SSD", "ssd"},
        {"Power Supply", "psu"},
        {"Server Chassis", "chassis"},
        {"IO Expansion Board", "io_board"},
        {"Dependency", "dependency"},
        {"CPU", "cpu"},
        {"System Memory", "host_memory"}};
    const auto found = names.find(f.text("component"));
    if (found == names.end()) return std::nullopt;
    const std::vector<FailureCause>& causes = llama3().scenario.causes;
    for (std::size_t i = 0; i < causes.size(); ++i) {
        if (causes[i].name != found->second) continue;
        return VerifiedRow{found->first, "interruptions in 54 days", f.figure("count"),
                           llama3().result.interruptions[i]};
    }
    return std::nullopt;
}

// 08
std::optional<VerifiedRow> llama3_scalar(const Fields& f) {
    const std::string& what = f.text("quantity");
    const CampaignResult& r = llama3().result;
    const bool training = mentions(what, "effective_training");
    double simulated = 0;
    if (what == "unexpected_interruptions_54d_16384gpu") {
        simulated = mean(r, "interruptions");
    } else if (what == "mtbf_unexpected_hours") {
        simulated = mean(r, "mean_time_between_interruptions") / hour_s;
    } else if (what == "total_interruptions") {
        simulated = mean(r, "interruptions") + mean(r, "planned_interruptions");
    } else if (what == "hardware_attributed_fraction") {
        simulated = llama3_hardware_share();
    } else if (training) {
        simulated = mean(r, "ettr");
    } else {
        return std::nullopt;
    }
    Figure published(f);
    if (training && published.value > 1) published.value /= 100;
    if (training) published.as = Published::at_least;
    return row_of(what, what, published, simulated);
}

// ---- MegaScale: a 175B model on 12,288 GPUs for four weeks, with Llama 3's failures by node ----

// Its step of 6.34 s is the one published (table 09); checkpoints as the program would choose them.
CampaignResult megascale(std::int64_t nodes) {
    return run_text(fmt::format(
        "[run]\nreplicas = 50\nduration = \"28 day\"\n[cluster]\nnode = \"dgx_a100\"\n"
        "nodes = {}\n[storage]\nserver_write_bandwidth = \"1 TB/s\"\n"
        "server_read_bandwidth = \"1 TB/s\"\nservers = 1\n[job]\nnodes = {}\n"
        "step.time = \"6.34 s\"\ncheckpoint = {{ mode = \"sync\", size = \"2.45 TB\" }}\n"
        "[failures]\nprofile = \"llama3_405b\"\n",
        nodes + nodes / 50, nodes));
}

// What setting up communicators takes of a restart: the restart of a job of so many GPUs, less that of the
// same job to which it takes nothing.
double communicator_set_up_s(std::int64_t gpus) {
    const auto restart = [gpus](const char* override_text) {
        return mean(run_text(fmt::format(
                        "[run]\nreplicas = 1\nduration = \"1 day\"\n[cluster]\nnodes = {}\n"
                        "[job]\nstep.time = \"1 s\"\ncheckpoint.mode = \"none\"\nrecovery = {{ "
                        "restore = \"0 s\", recompute = false }}\n[[failures.cause]]\nname = "
                        "\"crash\"\nrate_per_job = \"0 /h\"\n[[inject]]\nat = \"1 h\"\ncause = "
                        "\"crash\"\n{}",
                        gpus / meta_gpus_per_node, override_text)),
                    "restart_per_interruption");
    };
    return restart("") - restart("[override.restart.nccl_init_2048_tuned]\ntime = \"0 s\"\n");
}

// Those that a program notices, not a person.
double found_by_a_program() {
    const Duration person = [] {
        StandaloneCatalogue own;
        return own.catalogue.time("detection", "human", "time");
    }();
    const std::vector<FailureCause>& causes = llama3().scenario.causes;
    double by_program = 0;
    double all = 0;
    for (std::size_t i = 0; i < causes.size(); ++i) {
        all += llama3().result.interruptions[i];
        if (causes[i].detection < person) by_program += llama3().result.interruptions[i];
    }
    return by_program / all;
}

// 12. Where NCCL's set-up at 2,048 GPUs comes from is the same table: an input.
std::optional<VerifiedRow> megascale_scalar(const Fields& f) {
    static const CampaignResult run = megascale(1536);
    const std::string& what = f.text("quantity");
    double simulated = 0;
    if (what == "restarts_in_weeks_run") {
        simulated = mean(run, "interruptions");
    } else if (what == "auto_handled_fraction") {
        simulated = found_by_a_program();
    } else if (what == "detect_and_diagnose_minutes") {
        simulated = mean(run, "detection_per_interruption") / 60;
    } else if (what == "catch_up_minutes") {
        // From the latest checkpoint: the job has started again before.
        simulated =
            (mean(run, "restore_per_interruption") + mean(run, "lost_work_per_interruption")) / 60;
    } else if (what == "nccl_init_s_10000gpu_opt") {
        simulated = communicator_set_up_s(10000);
    } else if (mentions(what, "effective_training")) {
        simulated = mean(run, "ettr");
    } else {
        return std::nullopt;
    }
    return row_of(what, what, Figure(f), simulated);
}

// ---- restarts of large jobs ----

// Replacing nodes, starting and reading the state back, once it is known that the job has failed: on average
// over Llama 3's causes, which come a hundredth as often, so that none finds the job down.
double cold_restart_s(std::int64_t gpus) {
    const std::int64_t nodes = gpus / meta_gpus_per_node;
    Scenario s = load_scenario(
        fmt::format("[run]\nreplicas = 20\nduration = \"{} day\"\n[cluster]\nnodes = {}\n"
                    "[storage]\nserver_write_bandwidth = \"2 TB/s\"\nserver_read_bandwidth = \"2 "
                    "TB/s\"\nservers = 1\n[job]\nnodes = {}\nstep.time = \"6 s\"\n"
                    "checkpoint = {{ mode = \"sync\", size = \"5.67 TB\", interval = \"1 day\" "
                    "}}\n[failures]\nprofile = \"llama3_405b\"\n",
                    2000 * 2048 / nodes, nodes + 64, nodes),
        "verify");
    for (FailureCause& cause : s.causes) cause.rate_per_node.per_second /= 100;
    const CampaignResult r = run_campaign(s, {});
    return mean(r, "replacement_per_interruption") + mean(r, "restart_per_interruption") +
           mean(r, "restore_per_interruption");
}

// 26. ByteRobust's times of detection are the periods of its own inspections: inputs.
std::optional<VerifiedRow> recovery(const Fields& f) {
    const std::string& what = f.text("quantity");
    if (what != "cold restart total" && what != "full warm-up recovery") return std::nullopt;
    return row_of(f.text("gpus") + " GPUs", what + ", s", Figure(f),
                  cold_restart_s(f.integer("gpus")));
}

// ---- other clusters ----

// 21: interruptions by nodes, of all jobs: 2,000 nodes, 7,200 jobs a day of which nine in ten have a node or
// less, and 83 % of the GPUs in use, as the same table has them.
double rsc_hardware_failures_percent() {
    const CampaignResult r = run_text(R"(
[run]
replicas = 5
duration = "20 day"
[cluster]
node = "dgx_a100"
nodes = 2000
[scheduler]
[failures]
profile = "meta_rsc1"
[[jobs.kind]]
name = "small"
rate = "6480 /day"
work = "65 min"
size = [{ gpus = 1, share = 1 }, { gpus = 8, share = 1 }]
[[jobs.kind]]
name = "large"
rate = "720 /day"
gpus = 64
work = "6.2 h"
)");
    double by_nodes = 0;
    for (const double n : r.interruptions) by_nodes += n;
    return 100 * by_nodes / mean(r, "jobs");
}

std::optional<VerifiedRow> rsc_scalar(const Fields& f) {
    const std::string& what = f.text("quantity");
    if (what != "hw_infra_failure_share_of_jobs_pct") return std::nullopt;
    return row_of(f.text("cluster"), what, Figure(f), rsc_hardware_failures_percent());
}

// Mean time between failures of a job on nodes with this rate, h.
double mtbf_h(std::int64_t nodes, double rate_per_node_day) {
    const double failures_per_day = rate_per_node_day * static_cast<double>(nodes);
    const CampaignResult r = run_failing_job(
        nodes, fmt::format("{} day", 2000 / failures_per_day), 10,
        fmt::format("[[failures.cause]]\nname = \"node\"\nrate_per_node = \"{} /day\"\n",
                    rate_per_node_day));
    return mean(r, "mean_time_between_interruptions") / hour_s;
}

// 24: what a note says of the time between failures, from the rate in its row.
std::optional<VerifiedRow> other_cluster(const Fields& f) {
    const std::string& id = f.text("id");
    const std::string& what = f.text("quantity");
    const std::int64_t nodes = f.integer("gpus") / meta_gpus_per_node;
    if (id == "llama3_16384" && mentions(what, "unexpected interruptions in 54 d")) {
        return VerifiedRow{id, what, f.figure("value"), mean(llama3().result, "interruptions")};
    }
    if (mentions(what, "per 1000 servers per day") && mentions(f.text("note"), "h MTBF")) {
        const std::string hours = f.groups("note", "([0-9.]+) h MTBF", "2.55 h MTBF")[0];
        return VerifiedRow{id, "MTBF, h", std::stod(hours),
                           mtbf_h(nodes, f.figure("value") / 1000)};
    }
    if (mentions(what, "cluster MTTF with 50,000 h accelerator MTTF")) {
        constexpr double per_gpu_hour = 1.0 / 50000;
        return VerifiedRow{id, "MTBF, h", f.figure("value"),
                           mtbf_h(nodes, per_gpu_hour * 24 * meta_gpus_per_node)};
    }
    return std::nullopt;
}

// 28: the share of replicas in which anything fails.
double any_failure_percent(double per_gpu_year, std::int64_t gpus, const char* length) {
    const CampaignResult r =
        run_failing_job(gpus / meta_gpus_per_node, length, 4000,
                        fmt::format("[[failures.cause]]\nname = \"gpu\"\nrate_per_gpu = \"{} "
                                    "/year\"\n",
                                    per_gpu_year));
    const auto some = std::ranges::count_if(r.values.find("interruptions")->values,
                                            [](double n) { return n > 0; });
    return 100 * static_cast<double>(some) / static_cast<double>(r.replicas);
}

// ---- mixes: what was put in, through a campaign, by cause ----

struct Mix {
    std::string system;
    std::vector<std::string> causes;
    std::vector<double> counts;  // in any unit
};

// Interruptions by cause, scaled to the mix's own sum.
std::vector<double> through_a_campaign(const Mix& mix) {
    double sum = 0;
    for (const double count : mix.counts) sum += count;
    std::string causes;
    for (std::size_t i = 0; i < mix.counts.size(); ++i) {
        // Ten failures a day, each noticed after a minute.
        causes += fmt::format(
            "[[failures.cause]]\nname = \"cause_{}\"\nrate_per_job = \"{} /day\"\n"
            "detection = \"1 min\"\n",
            i, 10 * mix.counts[i] / sum);
    }
    const CampaignResult r = run_failing_job(16, "1000 day", 20, causes);
    double all = 0;
    for (const double n : r.interruptions) all += n;
    std::vector<double> out;
    for (const double n : r.interruptions) out.push_back(n / all * sum);
    return out;
}

std::vector<VerifiedRow> mix_rows(const Mix& mix, const std::string& quantity) {
    std::vector<VerifiedRow> out;
    const std::vector<double> simulated = through_a_campaign(mix);
    for (std::size_t i = 0; i < simulated.size(); ++i) {
        out.push_back({fmt::format("{} {}", mix.system, mix.causes[i]), quantity, mix.counts[i],
                       simulated[i]});
    }
    return out;
}

// 22, 25, 27: one system, a column of causes and one of counts.
std::vector<VerifiedRow> one_mix(const CsvTable& table, std::vector<Diagnostic>& unused,
                                 const char* cause, const char* count) {
    Mix mix;
    each_row(table, unused, [&](const Fields& f) {
        mix.counts.push_back(f.number(count));
        mix.causes.push_back(f.text(cause));
    });
    return mix_rows(mix, count);
}

// 28: events, or shares of what failed, of several systems; single figures between them are no mixes.
std::vector<VerifiedRow> mixes_of_systems(const CsvTable& table, std::vector<Diagnostic>& unused) {
    std::vector<Mix> mixes;
    std::vector<VerifiedRow> out;
    each_row(table, unused, [&](const Fields& f) {
        const std::string& what = f.text("cause_or_quantity");
        const std::string& unit = f.text("unit");
        if (what.starts_with("P(at least one failure in 30 d), 1% per GPU-year")) {
            out.push_back({f.text("system"), "P(any failure), %", f.figure("value"),
                           any_failure_percent(0.01, 1024, "30 day")});
        }
        const bool counts = unit == "events" || unit == "of 17" || unit == "% of tasks";
        const bool shares = unit == "%" && !what.starts_with("P(");
        if ((!counts && !shares) || f.number("value") <= 0) return;
        if (mixes.empty() || mixes.back().system != f.text("system")) {
            mixes.push_back({f.text("system"), {}, {}});
        }
        mixes.back().causes.push_back(what);
        mixes.back().counts.push_back(f.figure("value"));
    });
    for (const Mix& mix : mixes) {
        if (mix.counts.size() < 2) continue;
        const std::vector<VerifiedRow> rows = mix_rows(mix, "share of a mix");
        out.insert(out.end(), rows.begin(), rows.end());
    }
    return out;
}

template <std::optional<VerifiedRow> (*row)(const Fields&)>
std::vector<VerifiedRow> each(const CsvTable& table, std::vector<Diagnostic>& unused) {
    std::vector<VerifiedRow> out;
    each_row(table, unused, [&](const Fields& f) {
        if (const auto verified = row(f)) out.push_back(*verified);
    });
    return out;
}

struct ReliabilityFormat {
    const char* number;
    const char* what;
    std::vector<VerifiedRow> (*rows)(const CsvTable&, std::vector<Diagnostic>& unused);
};
constexpr ReliabilityFormat reliability_formats[] = {
    {"07", "Llama 3's causes, through its 54 days", each<llama3_cause>},
    {"08", "Llama 3's failures, from its mix of causes", each<llama3_scalar>},
    {"12", "MegaScale, with Llama 3's failures", each<megascale_scalar>},
    {"21", "Meta RSC, failures among jobs", each<rsc_scalar>},
    {"22", "Meta RSC, causes of lemons, in and out",
     [](const CsvTable& t, std::vector<Diagnostic>& unused) {
         return one_mix(t, unused, "component", "count_of_39");
     }},
    {"24", "failures of other clusters", each<other_cluster>},
    {"25", "FT-HSDP's mix, in and out",
     [](const CsvTable& t, std::vector<Diagnostic>& unused) {
         return one_mix(t, unused, "cause", "count");
     }},
    {"26", "restarts of large jobs", each<recovery>},
    {"27", "Acme's mix, in and out",
     [](const CsvTable& t, std::vector<Diagnostic>& unused) {
         return one_mix(t, unused, "reason", "count");
     }},
    {"28", "mixes of other systems, in and out", mixes_of_systems},
};

}  // namespace

std::optional<VerifiedTable> verify_reliability(const CsvTable& table) {
    for (const ReliabilityFormat& format : reliability_formats) {
        if (!table.name.starts_with(format.number)) continue;
        VerifiedTable out{table.name, format.what, table.rows.size()};
        out.expressed = format.rows(table, out.unused);
        return out;
    }
    return std::nullopt;
}

}  // namespace railyard
