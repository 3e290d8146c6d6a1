#include <fmt/format.h>

#include <cmath>
#include <map>

#include "tools/cli/run_text.h"
#include "tools/cli/terminal.h"
#include "tools/program/csv_field.h"

namespace railyard {

namespace {

std::string count_text(double v) {
    return v < 1000 ? fmt::format("{:.1f}", v) : grouped(std::round(v));
}

void print_waits(const CampaignResult& r) {
    Table table({"jobs", ">mean", ">median", ">p95"});
    const auto row = [&](const char* label, const std::string& name, const auto& show) {
        table.add({label, show(r.mean(name + "_mean")), show(r.mean(name + "_median")),
                   show(r.mean(name + "_p95"))});
    };
    const auto time = [](double v) { return std::isnan(v) ? std::string("-") : time_text(v); };
    row("wait until the first start", "wait", time);
    row("submission to end (JCT), of those that ended", "jct", time);
    row("bounded slowdown, of all so far", "bounded_slowdown",
        [](double v) { return std::isnan(v) ? std::string("-") : fmt::format("{:.2f}", v); });
    fmt::print("\n{}", table.text());
    const double never = r.mean("jobs_never_started");
    if (never > 0) {
        fmt::print("  {} had not started: their waits count up to the end, and would be longer\n",
                   count_text(never));
    }
}

void print_ends(const CampaignResult& r) {
    fmt::print(
        "\n  {} jobs submitted: {} ended, {} running, {} waiting, {} refused\n  of those that "
        "ended",
        count_text(r.mean("jobs")), count_text(r.mean("jobs_ended")),
        count_text(r.mean("jobs_running")), count_text(r.mean("jobs_waiting")),
        count_text(r.mean("jobs_refused")));
    const char* separator = " ";
    for (const char* name : {"jobs_completed", "jobs_failed", "jobs_node_fail", "jobs_timeout",
                             "jobs_preempted", "jobs_cancelled"}) {
        if (r.mean(name) == 0) continue;
        const std::string label = std::string(name).substr(std::string("jobs_").size());
        fmt::print("{}{} {}", separator, count_text(r.mean(name)), label);
        separator = ", ";
    }
    fmt::print(
        "\n  {} interruptions, {} of them of jobs by themselves; {} preemptions; {} failures on "
        "idle nodes\n",
        count_text(r.mean("interruptions")), count_text(r.mean("own_failures")),
        count_text(r.mean("preemptions")), count_text(r.mean("failures_on_idle_nodes")));
}

// One line for what the scenario asks for.
void print_nodes(const CampaignResult& r) {
    const auto has = [&](const char* name) { return find_named(r.metrics, name) != nullptr; };
    struct Line {
        const char* metric;
        const char* text;
        const char* second = "";
    };
    constexpr Line lines[] = {
        {"domain_failures", "  {} failures of domains\n"},
        {"breaker_trips", "  {} trips of breakers\n"},
        {"pump_losses", "  {} losses of pumps, {} ridden through\n", "pump_losses_ridden_through"},
        {"corruptions_found", "  {} jobs went back for wrong numbers, {} were done with some\n",
         "corrupted_results"},
        {"nodes_blamed", "  {} sound nodes blamed for others\n"},
        {"nodes_quarantined", "  {} nodes quarantined\n"}};
    for (const Line& line : lines) {
        if (!has(line.metric)) continue;
        fmt::print(fmt::runtime(line.text), count_text(r.mean(line.metric)),
                   *line.second != 0 ? count_text(r.mean(line.second)) : "");
    }
    if (has("repairs")) {
        fmt::print(
            "  {} repairs, {} after a wait for a crew or a part; {} left the fault in, {} of these "
            "back in service\n",
            count_text(r.mean("repairs")), time_text(r.mean("repair_wait")),
            count_text(r.mean("repairs_found_bad") + r.mean("repairs_let_out_bad")),
            count_text(r.mean("repairs_let_out_bad")));
    }
}

void print_sizes(const CampaignResult& r) {
    Table table({">GPUs of a job", ">MTTF", ">ETTR"});
    bool any = false;
    for (const MetricSummary& m : r.metrics) {
        constexpr std::string_view mttf = "mttf_gpus_";
        if (!m.name.starts_with(mttf)) continue;
        const std::string gpus = m.name.substr(mttf.size());
        const double ettr = r.mean("ettr_gpus_" + gpus);
        if (!std::isfinite(ettr)) continue;
        any = true;
        const std::int64_t most = std::stoll(gpus);
        table.add({most > 2 ? fmt::format("{} to {}", most / 2 + 1, most) : gpus,
                   time_text(m.summary.mean), percent(ettr)});
    }
    if (any) fmt::print("\n{}", table.text());
}

// Shares are of the time of the GPUs that jobs of the kind held.
void print_kinds(const WorldScenario& world, const CampaignResult& r) {
    const std::vector<WorldJobKind>& kinds = world.spec.kinds;
    if (kinds.size() < 2) return;
    const auto of = [&](const char* metric, std::size_t k) {
        return r.mean(metric + world.kind_key(k));
    };
    struct Share {
        const char* title;
        const char* metric;
        bool always;
    };
    std::vector<Share> shares = {{"productive", "goodput_kind_", true},
                                 {"saving", "checkpoint_stall_kind_", false},
                                 {"lost work", "lost_work_kind_", false},
                                 {"contention", "contention_kind_", false}};
    std::erase_if(shares, [&](const Share& column) {
        for (std::size_t k = 0; k < kinds.size(); ++k) {
            if (column.always || of(column.metric, k) > 0) return false;
        }
        return true;
    });
    std::vector<Table::Column> columns = {"kind", ">jobs", ">wait", ">JCT", ">slowdown"};
    for (const Share& column : shares) columns.push_back({column.title, Table::Align::right});
    Table table(columns);
    const auto time = [](double v) { return std::isnan(v) ? std::string("-") : time_text(v); };
    const auto share = [](double v) { return std::isnan(v) ? std::string("-") : percent(v); };
    for (std::size_t k = 0; k < kinds.size(); ++k) {
        const double slowdown = of("bounded_slowdown_mean_kind_", k);
        std::vector<std::string> row = {
            kinds[k].name, count_text(of("jobs_kind_", k)), time(of("wait_mean_kind_", k)),
            time(of("jct_mean_kind_", k)),
            std::isnan(slowdown) ? "-" : fmt::format("{:.2f}", slowdown)};
        for (const Share& column : shares) row.push_back(share(of(column.metric, k)));
        table.add(row);
    }
    fmt::print("\n{}", table.text());
    bool drifts = false;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
        if (!(of("contention_kind_", k) > 0)) continue;
        std::string by;
        for (std::size_t other = 0; other < kinds.size(); ++other) {
            if (!kinds[other].traffic) continue;
            const double part = r.metric(fmt::format("contention_kind_{}_by_{}", world.kind_key(k),
                                                     world.kind_key(other)))
                                    .summary.mean;
            if (part > 0)
                by += fmt::format("{}{} {}", by.empty() ? "" : ", ", kinds[other].name,
                                  percent(part));
        }
        fmt::print("  {} waits on shared links for: {}\n", kinds[k].name, by);
        drifts = true;
    }
    if (drifts) fmt::print("  (taken: steps of different jobs drift against each other)\n");
}

void print_refused(const CampaignResult& r) {
    std::map<std::string, std::int64_t> reasons;
    for (const RefusedJob& job : r.refused) ++reasons[job.reason];
    for (const auto& [reason, count] : reasons) {
        fmt::print("  refused, {} of replica 0: {}\n", count, reason);
    }
}

}  // namespace

std::string failures_text(const Scenario& s) {
    const double per_second = strike_rate(s).per_second;
    const double per_job = strike_rate_per_job(s).per_second;
    if (per_second <= 0 && per_job <= 0) return s.nodes.injected.empty() ? "none" : "as injected";
    std::string out = counted(s.causes.size(), "cause");
    if (per_second > 0) {
        out += fmt::format(", one every {}{}", time_text(1 / per_second),
                           s.world ? "" : " of running");
    }
    if (per_job > 0) {
        out += fmt::format(", one every {} of each running job", time_text(1 / per_job));
    }
    return out;
}

void print_world_design(const Scenario& s) {
    const WorldSpec& spec = s.world->spec;
    fmt::print("{}\n", coloured(s.title, Colour::bold));
    fmt::print("  {} GPUs on {} nodes", grouped(static_cast<double>(spec.gpus())),
               grouped(static_cast<double>(spec.nodes())));
    if (spec.groups.size() > 1) {
        for (const NodeGroup& group : spec.groups) {
            fmt::print(", {} {} of {} GPUs", group.nodes, group.name, group.gpus_per_node);
        }
    }
    fmt::print("\n  scheduler {}, {} partition{}, {} kind{} of jobs\n", spec.scheduler,
               spec.partitions.size(), spec.partitions.size() == 1 ? "" : "s", spec.kinds.size(),
               spec.kinds.size() == 1 ? "" : "s");
    fmt::print("  failures of nodes: {}\n", failures_text(s));
}

void print_world(const Scenario& s, const CampaignResult& r) {
    Table table({"", ">mean", ""});
    const auto row = [&](const char* metric, const char* meaning) {
        table.add({coloured(metric, Colour::bold), percent(r.mean(metric)),
                   coloured(meaning, Colour::dim)});
    };
    row("goodput", "productive GPU time / all GPU time of the cluster");
    row("utilisation", "GPU time that jobs hold / all");
    row("occupancy", "GPU time of nodes that have a job / all");
    if (s.world->spec.parts_per_gpu() > 1) {
        row("mig_stranded", "slices that no instance can have / all of cut GPUs");
    }
    fmt::print("\n{}", table.text());
    print_waits(r);
    print_kinds(*s.world, r);
    print_ends(r);
    print_nodes(r);
    print_refused(r);
    print_sizes(r);
}

JobsFile::JobsFile(const std::string& path, const std::vector<std::string>& inputs)
    : file_(path, inputs),
      lines_(
          "job,kind,gpus,submit_s,start_s,end_s,wait_s,state,starts,interruptions,held_s,kept_s,"
          "contention_s\n") {}

void JobsFile::add(const JobRecord& job) {
    const auto time = [](double s) {
        return std::isnan(s) ? std::string() : fmt::format("{:.3f}", s);
    };
    lines_ +=
        fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_field(job.name),
                    csv_field(job.kind), job.gpus, time(job.submit_s), time(job.start_s),
                    time(job.end_s), time(job.wait_s), job.state, job.starts, job.interruptions,
                    time(job.held_s), time(job.kept_s), time(job.contention_s));
    constexpr std::size_t worth_a_write = 1 << 16;
    if (lines_.size() < worth_a_write) return;
    file_.write(lines_);
    lines_.clear();
}

void JobsFile::keep() {
    file_.write(lines_);
    file_.keep();
}

}  // namespace railyard
