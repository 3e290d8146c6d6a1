// A replica as Prometheus would have scraped it: OpenMetrics under the names of the exporters of DCGM and
// Slurm, and a dashboard for Grafana. All GPUs of a job take the same step: the hosts of a scenario with one
// job are its node slots, of many the cluster's nodes.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "sim/check.h"
#include "tools/export/export.h"
#include "tools/export/held_nodes.h"
#include "tools/import/xid_faults.h"
#include "tools/program/json_text.h"
#include "tools/trace/world_history.h"

namespace railyard {

namespace {

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
struct MetricFamily {
    std::string name;
    const char* type;  // a counter's samples have _total behind its name
    const char* unit;  // as Grafana calls it
    std::string help;
    std::vector<Series> series;
    bool of_gpus = false;  // a series without labels is that of every GPU of the hosts
    bool changes = false;  // each is written when it comes, too: between two samples it may be over
};

// The hosts whose GPUs are told of one by one.
struct Hosts {
    std::int64_t nodes = 0;
    std::int64_t gpus_per_node = 0;
    std::string model;
};

std::string gpu_labels(std::int64_t node, std::int64_t gpu, const std::string& model) {
    const std::string host = fmt::format("node{:05}", node);
    return fmt::format("{},{},{},{},{},{}", label("gpu", std::to_string(gpu)),
                       label("UUID", fmt::format("GPU-{}-{}", host, gpu)),
                       label("device", fmt::format("nvidia{}", gpu)), label("modelName", model),
                       label("Hostname", host), label("instance", host));
}

class Exposition {
  public:
    Exposition(Hosts hosts, Duration length) : hosts_(std::move(hosts)), length_(length) {}

    void add(const char* name, const char* unit, const char* help, std::vector<Series> series,
             const char* type = "gauge") {
        families_.push_back({name, type, unit, help, std::move(series)});
    }
    void add_gpus(const char* name, const char* unit, const char* help, Steps steps) {
        add_gpus(name, unit, help, std::vector<Series>{{"", std::move(steps)}});
    }
    void add_gpus(const char* name, const char* unit, const char* help, std::vector<Series> series,
                  bool changes = false) {
        families_.push_back({name, "gauge", unit, help, std::move(series), true, changes});
    }

    std::string text() const {
        std::string out;
        for (const MetricFamily& family : families_) out += family_text(family);
        return out + "# EOF\n";
    }

    std::string dashboard(const std::string& title) const {
        const auto time = [&](Duration at) {
            const auto since = export_epoch.time_since_epoch() + at;
            return std::to_string(since / std::chrono::milliseconds(1));
        };
        Json variables = Json::array();
        for (const char* name : {"instance", "gpu"}) {
            variables.push_back(
                {{"name", name},
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

  private:
    // The shortest usual one that keeps a file below half a million samples.
    std::chrono::seconds interval() const {
        constexpr std::int64_t samples_max = 500'000;
        std::int64_t series = 0;
        for (const MetricFamily& family : families_) {
            const bool all = family.of_gpus && family.series.front().labels.empty();
            series += all ? hosts_.nodes * hosts_.gpus_per_node : std::ssize(family.series);
        }
        for (const std::int64_t s : {15, 30, 60, 300, 900, 3600, 21'600, 86'400}) {
            const std::chrono::seconds each(s);
            if (series * (length_ / each + 1) <= samples_max) return each;
        }
        throw ScenarioError(
            fmt::format("{} series for {}: more than {} samples, were they a day apart", series,
                        to_text(length_), samples_max),
            "fewer nodes, or --set run.duration=\"30 day\"");
    }

    // What follows a series' labels, at each time: a value and when it was so.
    std::string samples(const Steps& steps, bool changes) const {
        std::string out;
        const std::chrono::seconds every = interval();
        const auto end = std::chrono::ceil<std::chrono::seconds>(length_);
        std::set<std::chrono::seconds> times = {end};
        for (std::chrono::seconds at{}; at < end; at += every) times.insert(at);
        for (const auto& [at, value] : steps) {
            const auto seen = std::chrono::ceil<std::chrono::seconds>(at.time_since_epoch());
            if (changes && seen < end) times.insert(seen);
        }
        double value = 0;
        auto next = steps.begin();
        for (const std::chrono::seconds at : times) {
            for (; next != steps.end() && next->first <= Instant(at); ++next) value = next->second;
            out += fmt::format("\n {:.9g} {}", value,
                               (export_epoch.time_since_epoch() + at) / std::chrono::seconds(1));
        }
        return out;
    }

    std::string family_text(const MetricFamily& family) const {
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
            const std::string tail = samples(series.steps, family.changes);
            const bool all = family.of_gpus && series.labels.empty();
            if (!all) put(series.labels, tail);
            for (std::int64_t i = 0; all && i < hosts_.nodes * hosts_.gpus_per_node; ++i) {
                put(gpu_labels(i / hosts_.gpus_per_node, i % hosts_.gpus_per_node, hosts_.model),
                    tail);
            }
        }
        return out;
    }

    Json panel(const MetricFamily& family, std::size_t place) const {
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

    Hosts hosts_;
    Duration length_;
    std::vector<MetricFamily> families_;
};

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

// Which GPU of a node fails is not simulated: it is the first. Its Xid stays until the job is back.
void add_xids(Exposition& out, const Scenario& s, const ReplicaResult& result) {
    std::map<std::int64_t, Steps> slots;
    std::set<std::int64_t> held;
    for (const CampaignEvent& event : result.log) {
        const std::string_view kind = event.kind;
        if (kind == "resumed") {
            for (const std::int64_t slot : held) slots[slot][event.at] = 0;
            held.clear();
        }
        const int code = kind == "interruption" ? xid_of(event.cause) : 0;
        if (code == 0) continue;
        slots[event.slot][event.at] = code;
        held.insert(event.slot);
    }
    if (slots.empty()) return;
    std::vector<Series> series;
    for (std::int64_t i = 0; i < s.job.nodes * s.job.gpus_per_node; ++i) {
        const std::int64_t slot = i / s.job.gpus_per_node;
        const std::int64_t gpu = i % s.job.gpus_per_node;
        series.push_back({gpu_labels(slot, gpu, s.node.gpu.name), {{Instant{}, 0}}});
        if (gpu == 0) series.back().steps.merge(slots[slot]);
    }
    out.add_gpus("DCGM_FI_DEV_XID_ERRORS", "short", "Value of the last XID error encountered.",
                 std::move(series), true);
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
    // Fewer in a smaller stage, or while it waits for some.
    const Steps held =
        by_phase(record, [](JobPhase phase) { return holds_nodes(phase) ? 1.0 : 0.0; });
    Steps alloc = held;
    for (const NodeMove& move : record.moves) alloc[move.at] = 0;
    HeldNodes nodes(s, record);
    for (auto& [at, value] : alloc) {
        const auto before = held.upper_bound(at);
        const bool holds = before != held.begin() && std::prev(before)->second > 0;
        value = holds ? static_cast<double>(std::ssize(nodes.at(at))) : 0;
    }
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

void add_world(Exposition& out, const Scenario& s, const ReplicaResult& result) {
    const WorldHistory history(s, result);
    Steps running = {{Instant{}, 0}};
    Steps waiting = running;
    Steps held = running;
    WorldHistory::Counts now;
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

// What each GPU of the cluster does, from a job's start to its stop; which of a node's GPUs a job has is not
// simulated: it has the first that are free.
class WorldGpus {
  public:
    WorldGpus(const Scenario& s, const ReplicaTrace& record) : s_(s) {
        std::vector<std::size_t> first;  // card of each node
        const std::vector<NodeGroup>& groups = s.world->spec.groups;
        for (std::size_t g = 0; g < groups.size(); ++g) {
            for (std::int64_t n = 0; n < groups[g].nodes; ++n) {
                const auto node = std::ssize(first);
                first.push_back(cards_.size());
                for (std::int64_t i = 0; i < groups[g].gpus_per_node; ++i) {
                    cards_.push_back({node, i, g, {}});
                }
            }
        }
        for (const JobHold& hold : record.holds) {
            for (const NodeShare& share : hold.gpus) {
                std::size_t card = first[share.node];
                for (std::int64_t left = share.gpus; left > 0; ++card) {
                    RY_CHECK(card < cards_.size() && cards_[card].node == share.node);
                    std::vector<Hold>& holds = cards_[card].holds;
                    if (!holds.empty() && holds.back().until > hold.from) continue;
                    holds.push_back({hold.from, hold.until, hold.kind});
                    --left;
                }
            }
        }
    }

    void add(Exposition& out) const {
        const WorldScenario& world = *s_.world;
        const auto step_of = [&](std::size_t kind) -> const StepTime* {
            return world.models[kind] ? &world.models[kind]->job.step : nullptr;
        };
        const auto active = [&](std::size_t, std::size_t kind) {
            const StepTime* step = step_of(kind);
            const double length = step ? seconds(step->duration()) : 0;
            return length > 0 ? 1 - seconds(step->data_wait) / length : 1.0;
        };
        const auto none = [](std::size_t) { return 0.0; };
        out.add_gpus(
            "DCGM_FI_DEV_GPU_UTIL", "percent", "GPU utilization (in %).",
            series([&](std::size_t g, std::size_t k) { return 100 * active(g, k); }, none));
        out.add_gpus("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "percentunit",
                     "Ratio of time the graphics engine is active.", series(active, none));
        const std::vector<std::vector<NodeDraw>>& draws = world.power.draws;
        out.add_gpus(
            "DCGM_FI_DEV_POWER_USAGE", "watt", "Power draw (in W).",
            series([&](std::size_t g, std::size_t k) { return draws[g][k].gpu_mean.value; },
                   [&](std::size_t g) { return draws[g][0].node.gpu.at(Activity::idle).value; }));
        const bool modelled = std::ranges::all_of(world.models, [](const auto& model) {
            return model && !model->memory.empty() && model->job.step.model_flops > 0;
        });
        if (!modelled) return;
        const auto used = [&](std::size_t, std::size_t kind) {
            return total_bytes(world.models[kind]->memory) / (1024 * 1024);
        };
        out.add_gpus("DCGM_FI_DEV_FB_USED", "mbytes", "Framebuffer memory used (in MiB).",
                     series(used, none));
        const auto share = [&](std::size_t, std::size_t kind) {
            const Scenario& model = *world.models[kind];
            return model.job.step.model_flops /
                   (model.peak_flops() * seconds(model.job.step.duration()));
        };
        out.add_gpus("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "percentunit",
                     "Ratio of cycles the tensor (HMMA) pipe is active: here the MFU, without "
                     "recomputation.",
                     series(share, none));
    }

  private:
    struct Hold {
        Instant from;
        Instant until;
        std::size_t kind;
    };
    struct Card {
        std::int64_t node;
        std::int64_t place;
        std::size_t group;
        std::vector<Hold> holds;
    };
    // A series for each GPU: busy(group, kind) while a job of that kind runs there, else idle(group).
    template <class Busy, class Idle>
    std::vector<Series> series(Busy busy, Idle idle) const {
        std::vector<Series> out;
        for (const Card& card : cards_) {
            Steps steps = {{Instant{}, idle(card.group)}};
            for (const Hold& hold : card.holds) {
                steps[hold.from] = busy(card.group, hold.kind);
                steps[hold.until] = idle(card.group);
            }
            out.push_back({gpu_labels(card.node, card.place, s_.world->nodes[card.group].gpu.name),
                           std::move(steps)});
        }
        return out;
    }

    const Scenario& s_;
    std::vector<Card> cards_;
};

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
    const ReplicaResult result = run_replica(s, replica, true, &record);
    Hosts hosts;
    // Instances of GPUs are no devices of DCGM's there.
    const bool whole = s.world && s.world->spec.parts_per_gpu() == 1;
    if (!s.world) hosts = {s.job.nodes, s.job.gpus_per_node, s.node.gpu.name};
    if (whole) hosts.nodes = s.world->spec.nodes();
    Exposition out(hosts, result.simulated);
    if (whole) WorldGpus(s, record).add(out);
    if (s.world) {
        add_world(out, s, result);
    } else {
        add_gpus(out, s, record);
        add_xids(out, s, result);
        add_slurm(out, s, record);
        add_events(out, result);
        add_stores(out, s, record);
    }
    add_ledger(out, result);
    return {{"", out.text()}, {".dashboard.json", out.dashboard(s.title)}};
}

}  // namespace railyard
