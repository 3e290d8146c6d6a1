#include "tests/laws/oracles/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/scheduler/scheduler.h"
#include "tools/language/nodes_file.h"

namespace railyard {

namespace {

constexpr std::int64_t philly_gpus_per_node = 8;  // of all rows: the table's head

// A figure of a row. The table's times are in units of the trace, here seconds; it prints them to
// `decimals`, and its claim is that these are exact.
struct StreamFigure {
    const char* column;
    int decimals;
    double (*of)(const StreamStatistics&);
};

constexpr StreamFigure stream_figures[] = {
    {"mean_wait", 4, [](const StreamStatistics& s) { return s.mean_wait_s; }},
    {"mean_jct", 4, [](const StreamStatistics& s) { return s.mean_jct_s; }},
    {"p50_wait", 0, [](const StreamStatistics& s) { return seconds(*s.wait_p50); }},
    {"p90_wait", 0, [](const StreamStatistics& s) { return seconds(*s.wait_p90); }},
    {"p99_wait", 0, [](const StreamStatistics& s) { return seconds(*s.wait_p99); }},
    {"max_wait", 0, [](const StreamStatistics& s) { return seconds(*s.wait_max); }},
    {"zero_wait_frac", 6, [](const StreamStatistics& s) { return s.zero_wait; }},
    {"makespan_end", 0, [](const StreamStatistics& s) { return seconds(*s.end); }},
    {"utilisation", 6, [](const StreamStatistics& s) { return s.utilisation; }},
};

double rounded(double value, int decimals) {
    const double scale = std::pow(10, decimals);
    return std::round(value * scale) / scale;
}

class Schedules {
  public:
    explicit Schedules(const std::string& folder)
        : trace_(read_job_trace(folder + "/traces/chronus_philly_mix2.csv", {})),
          philly_(read_nodes_file(folder + "/traces/philly_vc_nodes.csv", philly_gpus_per_node)) {}
    // A row's statistics; nothing when it is of rules that are not here.
    std::optional<StreamStatistics> row(const Fields& f) const;

  private:
    std::optional<std::vector<VirtualCluster>> clusters(const Fields& f) const;

    JobTrace trace_;
    std::vector<VirtualCluster> philly_;
};

std::optional<std::vector<VirtualCluster>> Schedules::clusters(const Fields& f) const {
    const std::string& scope = f.text("scope");
    const std::int64_t nodes = f.integer("nodes");
    if (nodes < 1) return std::nullopt;
    if (scope == "vc" || scope == "one_pool") {
        return std::vector<VirtualCluster>{{f.text("vc"), nodes, philly_gpus_per_node}};
    }
    std::int64_t sum = 0;
    for (const VirtualCluster& c : philly_) sum += c.nodes;
    if (scope != "all_vcs" || nodes != sum) return std::nullopt;
    return philly_;
}

template <class Kind>
bool has_kind(const std::vector<Kind>& kinds, const std::string& name) {
    return std::any_of(kinds.begin(), kinds.end(), [&](const Kind& k) { return name == k.name; });
}

std::optional<StreamStatistics> Schedules::row(const Fields& f) const {
    StreamRules rules;
    rules.policy = f.text("policy");
    const std::string& placement = f.text("placement");
    rules.placement = placement.substr(0, placement.find('('));  // "pool(count only)"
    const auto on = clusters(f);
    if (!on || !has_kind(policy_kinds(), rules.policy) ||
        !has_kind(placement_kinds(), rules.placement)) {
        return std::nullopt;
    }
    JobTrace trace = trace_;
    if (f.text("scope") != "one_pool") assign_clusters(trace, *on);
    if (trace.jobs.empty()) return std::nullopt;
    return stream_statistics(trace.jobs, *on, run_job_stream(trace.jobs, *on, rules));
}

}  // namespace

std::optional<VerifiedTable> verify_schedules(const CsvTable& table) {
    if (!table.name.starts_with("63")) return std::nullopt;
    VerifiedTable out{table.name, "schedules of 30,746 Philly jobs, exact",
                      table.rows.size() * std::size(stream_figures)};
    const Schedules schedules(table.folder);
    each_row(table, out.unused, [&](const Fields& f) {
        const std::optional<StreamStatistics> statistics = schedules.row(f);
        if (!statistics) return;
        for (const StreamFigure& figure : stream_figures) {
            if (f.text(figure.column).empty()) continue;
            out.expressed.push_back(
                {fmt::format("{} {} on {}, {} {}", f.text("scope"), f.text("vc"), f.text("nodes"),
                             f.text("placement"), f.text("policy")),
                 figure.column, f.number(figure.column),
                 rounded(figure.of(*statistics), figure.decimals)});
        }
    });
    return out;
}

}  // namespace railyard
