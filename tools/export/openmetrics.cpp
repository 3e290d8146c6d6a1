// A replica as Prometheus would have scraped it: OpenMetrics under the names of the exporters of DCGM and
// Slurm, and a dashboard for Grafana. All GPUs of a job take the same step: its hosts are its node slots.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "tools/export/export.h"
#include "tools/program/json_text.h"
#include "tools/trace/fleet_history.h"

namespace railyard {

namespace {

using Json = nlohmann::ordered_json;

// From each instant on, from 0.
using Steps = std::map<Instant, double>;

std::string label(const char* name, const std::string& value) {
    std::string out = fmt::format("{}=\"", name);
    for (const char c : value) {
        if (c == '\\' || c == '"') out += '\\';
        if (c == '\n') {
            out += "\\n";
        } else {
            out += c;
        }
    }
    return out + "\"";
}

struct Series {
    std::string labels;
    Steps steps;
};

// Series of one metric.
struct Family {
    std::string name;
    const char* type;  // a counter's samples have _total behind its name
    const char* unit;  // as Grafana calls it
    std::string help;
    std::vector<Series> series;
    bool of_gpus = false;  // each series is that of every GPU of the hosts
};

// The hosts whose GPUs are told of one by one.
struct Hosts {
    std::int64_t nodes = 0;
    std::int64_t gpus_per_node = 0;
    std::string model;
};

class Exposition {
  public:
    Exposition(Hosts hosts, Duration length) : hosts_(std::move(hosts)), length_(length) {}

    void add(const char* name, const char* unit, const char* help, std::vector<Series> series,
             const char* type = "gauge") {
        families_.push_back({name, type, unit, help, std::move(series)});
    }
    void add_gpus(const char* name, const char* unit, const char* help, Steps steps) {
        families_.push_back({name, "gauge", unit, help, {{"", std::move(steps)}}, true});
    }
    std::string text() const;
    std::string dashboard(const std::string& title) const;

  private:
    std::chrono::seconds interval() const;
    std::string samples(const Steps& steps) const;
    std::string family_text(const Family& family) const;
    Json panel(const Family& family, std::size_t place) const;

    Hosts hosts_;
    Duration length_;
    std::vector<Family> families_;
};

// The shortest usual one that keeps a file below half a million samples.
std::chrono::seconds Exposition::interval() const {
    constexpr std::int64_t samples_max = 500'000;
    std::int64_t series = 0;
    for (const Family& family : families_) {
        series += family.of_gpus ? hosts_.nodes * hosts_.gpus_per_node : std::ssize(family.series);
    }
    for (const std::int64_t s : {15, 30, 60, 300, 900, 3600, 21'600, 86'400}) {
        const std::chrono::seconds each(s);
        if (series * (length_ / each + 1) <= samples_max) return each;
    }
    throw ScenarioError(fmt::format("{} series for {}: more than {} samples, were they a day apart",
                                    series, to_text(length_), samples_max),
                        "fewer nodes, or --set run.duration=\"30 day\"");
}

// What follows a series' labels, at each time: a value and when it was so.
std::string Exposition::samples(const Steps& steps) const {
    std::string out;
    const std::chrono::seconds every = interval();
    const auto end = std::chrono::ceil<std::chrono::seconds>(length_);
    double value = 0;
    auto next = steps.begin();
    for (std::chrono::seconds at{}; at <= end;
         at = at < end ? std::min(at + every, end) : end + every) {
        for (; next != steps.end() && next->first <= Instant(at); ++next) value = next->second;
        out += fmt::format("\n {:.9g} {}", value,
                           (export_epoch.time_since_epoch() + at) / std::chrono::seconds(1));
    }
    return out;
}

std::string Exposition::family_text(const Family& family) const {
    std::string out =
        fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", family.name, family.help, family.type);
    const std::string name =
        family.name + (std::string_view(family.type) == "counter" ? "_total" : "");
    const auto put = [&](const std::string& labels, const std::string& samples) {
        const std::string head = labels.empty() ? name : fmt::format("{}{{{}}}", name, labels);
        for (std::size_t at = 0; at < samples.size();) {
            const std::size_t end = std::min(samples.find('\n', at + 1), samples.size());
            out += head;
            out.append(samples, at + 1, end - at - 1);
            out += '\n';
            at = end;
        }
    };
    for (const Series& series : family.series) {
        const std::string tail = samples(series.steps);
        if (!family.of_gpus) put(series.labels, tail);
        for (std::int64_t i = 0; family.of_gpus && i < hosts_.nodes * hosts_.gpus_per_node; ++i) {
            const std::int64_t gpu = i % hosts_.gpus_per_node;
            const std::string host = fmt::format("node{:05}", i / hosts_.gpus_per_node);
            put(fmt::format("{},{},{},{},{},{}", label("gpu", std::to_string(gpu)),
                            label("UUID", fmt::format("GPU-{}-{}", host, gpu)),
                            label("device", fmt::format("nvidia{}", gpu)),
                            label("modelName", hosts_.model), label("Hostname", host),
                            label("instance", host)),
                tail);
        }
    }
    return out;
}

std::string Exposition::text() const {
    std::string out;
    for (const Family& family : families_) out += family_text(family);
    return out + "# EOF\n";
}

Json Exposition::panel(const Family& family, std::size_t place) const {
    const std::string every = fmt::format("{}s", interval().count());
    const bool counter = std::string_view(family.type) == "counter";
    const std::string all = family.name + (counter ? "_total" : "");
    // Prometheus forgets a sample after five minutes: a longer interval must be said.
    const std::string last =
        fmt::format("last_over_time({}{}[{}])", all,
                    family.of_gpus ? R"({instance=~"$instance", gpu=~"$gpu"})" : "", every);
    const Json source = {{"type", "prometheus"}, {"uid", "${DS_PROMETHEUS}"}};
    constexpr std::size_t columns = 2;
    constexpr std::size_t width = 12;
    constexpr std::size_t height = 8;
    return {{"id", place + 1},
            {"type", "timeseries"},
            {"title", family.name},
            {"description", family.help},
            {"datasource", source},
            {"interval", every},
            {"gridPos",
             {{"h", height},
              {"w", width},
              {"x", place % columns * width},
              {"y", place / columns * height}}},
            {"fieldConfig",
             {{"defaults", {{"unit", family.unit}, {"min", 0}}}, {"overrides", Json::array()}}},
            {"targets",
             {{{"refId", "A"},
               {"datasource", source},
               {"expr", last},
               {"legendFormat", family.of_gpus ? "{{instance}} GPU {{gpu}}" : "__auto"}}}}};
}

std::string Exposition::dashboard(const std::string& title) const {
    const auto time = [&](Duration at) {
        const auto since = export_epoch.time_since_epoch() + at;
        return std::to_string(since / std::chrono::milliseconds(1));
    };
    Json variables = Json::array();
    for (const char* name : {"instance", "gpu"}) {
        variables.push_back({{"name", name},
                             {"type", "query"},
                             {"datasource", {{"type", "prometheus"}, {"uid", "${DS_PROMETHEUS}"}}},
                             {"query", fmt::format("label_values(DCGM_FI_DEV_GPU_UTIL, {})", name)},
                             {"refresh", 2},
                             {"includeAll", true},
                             {"multi", true},
                             {"current", {{"text", "All"}, {"value", "$__all"}}}});
    }
    Json out = {{"__inputs",
                 {{{"name", "DS_PROMETHEUS"},
                   {"label", "Prometheus"},
                   {"type", "datasource"},
                   {"pluginId", "prometheus"}}}},
                {"id", nullptr},
                {"title", title.empty() ? "railyard" : title},
                {"schemaVersion", 39},
                {"timezone", "utc"},
                {"time", {{"from", time({})}, {"to", time(length_)}}},
                {"templating", {{"list", hosts_.nodes > 0 ? variables : Json::array()}}},
                {"panels", Json::array()}};
    for (std::size_t i = 0; i < families_.size(); ++i) {
        out["panels"].push_back(panel(families_[i], i));
    }
    return one_line(out) + "\n";
}

// ---- one job ---------------------------------------------------------------------------------------------

// What a value is in each phase.
template <class Value>
Steps by_phase(const ReplicaTrace& record, Value value) {
    Steps out;
    for (const PhaseStart& phase : record.phases) out[phase.at] = value(phase.phase);
    return out;
}

// Kernels that wait for others spin: a GPU is busy while a peer is dead and nobody has noticed.
bool spins(JobPhase phase) {
    return phase == JobPhase::detection || phase == JobPhase::storm_stall;
}

void add_gpus(Exposition& out, const Scenario& s, const ReplicaTrace& record) {
    const StepTime& step = s.job.step;
    const double length = seconds(step.duration());
    const double busy = length > 0 ? 1 - seconds(step.data_wait) / length : 0;
    const auto active = [&](JobPhase phase) {
        return phase == JobPhase::running ? busy : spins(phase) ? 1.0 : 0.0;
    };
    out.add_gpus("DCGM_FI_DEV_GPU_UTIL", "percent", "GPU utilization (in %).",
                 by_phase(record, [&](JobPhase phase) { return 100 * active(phase); }));
    out.add_gpus("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "percentunit",
                 "Ratio of time the graphics engine is active.", by_phase(record, active));
    if (step.model_flops > 0 && length > 0) {
        const double share = step.model_flops / (s.peak_flops() * length);
        out.add_gpus("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "percentunit",
                     "Ratio of cycles the tensor (HMMA) pipe is active: here the MFU, without "
                     "recomputation.",
                     by_phase(record, [&](JobPhase phase) {
                         return phase == JobPhase::running ? share : 0.0;
                     }));
    }
    const GpuPower& power = s.power.node.gpu;
    out.add_gpus("DCGM_FI_DEV_POWER_USAGE", "watt", "Power draw (in W).",
                 by_phase(record, [&](JobPhase phase) {
                     if (phase == JobPhase::running) return s.power.gpu_mean.value;
                     return power.at(spins(phase) ? Activity::communication : Activity::idle).value;
                 }));
    if (s.memory.empty()) return;
    const double used = total_bytes(s.memory) / (1024 * 1024);
    out.add_gpus("DCGM_FI_DEV_FB_USED", "mbytes", "Framebuffer memory used (in MiB).",
                 by_phase(record, [&](JobPhase phase) { return holds_nodes(phase) ? used : 0; }));
}

// How many nodes are out of service.
Steps nodes_out(const ReplicaTrace& record) {
    std::map<Instant, double> changes = {{Instant{}, 0}};
    for (const NodeAbsence& absence : record.absences) {
        changes[absence.from] += 1;
        changes[absence.until] -= 1;
    }
    double now = 0;
    for (auto& [at, value] : changes) value = now += value;
    return changes;
}

void add_slurm(Exposition& out, const Scenario& s, const ReplicaTrace& record) {
    const Steps down = nodes_out(record);
    const Steps alloc = by_phase(record, [&](JobPhase phase) {
        return holds_nodes(phase) ? static_cast<double>(s.job.nodes) : 0.0;
    });
    Steps idle = down;
    for (const auto& [at, value] : alloc) idle[at] = 0;
    const auto value_at = [](const Steps& steps, Instant at) {
        const auto after = steps.upper_bound(at);
        return after == steps.begin() ? 0 : std::prev(after)->second;
    };
    for (auto& [at, value] : idle) {
        value = std::max(
            0.0, static_cast<double>(s.nodes.nodes) - value_at(alloc, at) - value_at(down, at));
    }
    Steps gpus = alloc;
    for (auto& [at, value] : gpus) value *= static_cast<double>(s.job.gpus_per_node);
    out.add("slurm_nodes_alloc", "short", "Allocated nodes", {{"", alloc}});
    out.add("slurm_nodes_down", "short", "Down nodes", {{"", down}});
    out.add("slurm_nodes_idle", "short", "Idle nodes", {{"", idle}});
    out.add("slurm_gpus_alloc", "short", "Allocated GPUs", {{"", gpus}});
    out.add("slurm_gpus_total", "short", "Total GPUs",
            {{"", {{Instant{}, static_cast<double>(s.gpus())}}}});
}

void add_events(Exposition& out, const ReplicaResult& result) {
    std::map<std::string, Steps> causes;
    Steps safe = {{Instant{}, 0}};
    for (const CampaignEvent& event : result.log) {
        const std::string_view kind = event.kind;
        if (kind == "checkpoint_safe") safe[event.at] = static_cast<double>(event.steps);
        if (kind != "interruption") continue;
        Steps& counted = causes[event.cause];
        if (counted.empty()) counted[Instant{}] = 0;
        counted[event.at] = counted.rbegin()->second + 1;
    }
    std::vector<Series> series;
    for (auto& [cause, counted] : causes) series.push_back({label("cause", cause), counted});
    if (!series.empty())
        out.add("railyard_interruptions", "short", "Interruptions of the job", series, "counter");
    out.add("railyard_steps_safe", "short", "Steps that a checkpoint holds", {{"", safe}});
}

void add_stores(Exposition& out, const Scenario& s, const ReplicaTrace& record) {
    std::map<std::string, Steps> paths;
    for (const StoreRates& rates : record.store_rates) {
        const std::string store = label("store", s.stores[rates.store].name);
        paths[store + ",direction=\"read\""][rates.at] = rates.read.bytes_per_second();
        paths[store + ",direction=\"write\""][rates.at] = rates.write.bytes_per_second();
    }
    std::vector<Series> series;
    for (auto& [labels, steps] : paths) series.push_back({labels, steps});
    if (series.empty()) return;
    out.add("railyard_store_bytes_per_second", "Bps", "What a store reads and writes", series);
}

// ---- many ------------------------------------------------------------------------------------------------

void add_fleet(Exposition& out, const Scenario& s, const ReplicaResult& result) {
    const FleetHistory history(s, result);
    Steps running = {{Instant{}, 0}};
    Steps waiting = running;
    Steps held = running;
    FleetHistory::Counts now;
    for (const auto& [at, change] : history.changes()) {
        running[at] = static_cast<double>(now.running += change.running);
        waiting[at] = static_cast<double>(now.waiting += change.waiting);
        held[at] = history.gpus(now.parts += change.parts);
    }
    out.add("slurm_queue_running", "short", "Running jobs in the cluster", {{"", running}});
    out.add("slurm_queue_pending", "short", "Pending jobs in queue", {{"", waiting}});
    out.add("slurm_gpus_alloc", "short", "Allocated GPUs", {{"", held}});
    out.add("slurm_gpus_total", "short", "Total GPUs",
            {{"", {{Instant{}, static_cast<double>(s.gpus())}}}});
}

// Known when all is over: counted there.
void add_ledger(Exposition& out, const ReplicaResult& result) {
    std::vector<Series> series;
    for (std::size_t i = 0; i < category_count; ++i) {
        const auto category = static_cast<Category>(i);
        const double gpu_seconds = static_cast<double>(result.ledger.booked(category)) * 1e-9;
        if (gpu_seconds == 0) continue;
        series.push_back({label("entry", std::string(category_name(category))),
                          {{Instant{}, 0}, {Instant(result.simulated), gpu_seconds}}});
    }
    out.add("railyard_ledger_seconds", "s", "GPU-seconds by what they went into, at the end",
            series, "counter");
}

}  // namespace

std::vector<ExportedFile> export_openmetrics(const Scenario& s, std::int64_t replica) {
    ReplicaTrace record;
    const ReplicaResult result = run_replica(s, replica, true, s.fleet ? nullptr : &record);
    Hosts hosts;
    if (!s.fleet) hosts = {s.job.nodes, s.job.gpus_per_node, s.node.gpu.name};
    Exposition out(hosts, result.simulated);
    if (s.fleet) {
        add_fleet(out, s, result);
    } else {
        add_gpus(out, s, record);
        add_slurm(out, s, record);
        add_events(out, result);
        add_stores(out, s, record);
    }
    add_ledger(out, result);
    return {{"", out.text()}, {".dashboard.json", out.dashboard(s.title)}};
}

}  // namespace railyard
