#include "tools/report/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>

#include "models/campaign/campaign.h"
#include "tools/program/json_text.h"
#include "tools/program/lists.h"
#include "tools/program/program.h"
#include "tools/report/topology_drawing.h"
#include "tools/study/design_order.h"
#include "tools/study/verdict_estimates.h"
#include "tools/trace/world_history.h"

namespace railyard {

namespace {

using Windows = std::shared_ptr<WindowCache>;

ScenarioChanges changes_of(const FeaturedPoint& point, const Windows& windows) {
    ScenarioChanges changes;
    changes.settings = point.settings;
    changes.windows = windows;
    changes.phases = true;
    return changes;
}

std::int64_t ms(Instant t) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(t.time_since_epoch()).count();
}

// Instants in order, as differences: most are short.
class Instants {
  public:
    void add(Instant t) {
        out_.push_back(ms(t) - last_);
        last_ = ms(t);
    }
    Json take() { return std::move(out_); }

  private:
    Json out_ = Json::array();
    std::int64_t last_ = 0;
};

Json phases_json(const std::vector<PhaseStart>& phases) {
    Json names = Json::array();
    for (int p = 0; p <= static_cast<int>(JobPhase::done); ++p) {
        names.push_back(phase_name(static_cast<JobPhase>(p)));
    }
    Instants at;
    Json kinds = Json::array();
    for (const PhaseStart& start : phases) {
        at.add(start.at);
        kinds.push_back(static_cast<int>(start.phase));
    }
    return {{"names", names}, {"at_ms", at.take()}, {"phase", kinds}};
}

Json events_json(const std::vector<CampaignEvent>& log) {
    Instants at;
    Json kinds = Json::array();
    Json causes = Json::array();
    Json slots = Json::array();
    Json steps = Json::array();
    for (const CampaignEvent& e : log) {
        if (std::string_view(e.kind) == "resumed") continue;  // the phases say so
        at.add(e.at);
        kinds.push_back(e.kind);
        causes.push_back(e.cause);
        slots.push_back(e.slot);
        steps.push_back(e.steps);
    }
    return {{"at_ms", at.take()},
            {"kind", kinds},
            {"cause", causes},
            {"slot", slots},
            {"steps", steps}};
}

// A store's rates, MB/s. Of more changes than a screen can show, the highest rates of each of many equal
// stretches are kept: a burst stays as high as it was.
Json rates_json(const std::vector<StoreRates>& all, std::size_t store, Instant end) {
    constexpr std::size_t changes_max = 16000;
    constexpr std::size_t stretches = 4000;
    std::vector<StoreRates> rates;
    for (const StoreRates& r : all) {
        if (r.store == store) rates.push_back(r);
    }
    const bool thinned = rates.size() > changes_max;
    if (thinned) {
        std::vector<StoreRates> kept(stretches);
        const std::int64_t length = end.time_since_epoch().count() / std::int64_t{stretches} + 1;
        for (std::size_t i = 0; i < stretches; ++i) {
            kept[i].at = Instant(Duration(static_cast<std::int64_t>(i) * length));
        }
        for (std::size_t i = 0; i < rates.size(); ++i) {
            const Instant until = i + 1 < rates.size() ? rates[i + 1].at : end;
            auto k = static_cast<std::size_t>(rates[i].at.time_since_epoch().count() / length);
            for (; k < stretches && kept[k].at < until; ++k) {
                kept[k].read = std::max(kept[k].read, rates[i].read);
                kept[k].write = std::max(kept[k].write, rates[i].write);
            }
        }
        rates = std::move(kept);
    }
    const auto megabytes = [](Bandwidth b) { return std::llround(b.bytes_per_second() * 1e-6); };
    Instants at;
    Json read = Json::array();
    Json write = Json::array();
    for (const StoreRates& r : rates) {
        at.add(r.at);
        read.push_back(megabytes(r.read));
        write.push_back(megabytes(r.write));
    }
    return {{"at_ms", at.take()}, {"read_MBps", read}, {"write_MBps", write}, {"thinned", thinned}};
}

Json absences_json(const std::vector<NodeAbsence>& absences, Instant end) {
    return json_array(absences, [&](const NodeAbsence& a) -> Json {
        return {a.node, ms(a.from), ms(std::min(a.until, end)), a.cause};
    });
}

// What jobs of each size hold, and how many run and wait. Of more changes than a screen can show: the means
// of many equal stretches.
class WorldCurves {
  public:
    WorldCurves(const WorldHistory& history, Instant end) : history_(history), end_(end) {
        for (const auto& [at, change] : history.changes()) {
            Change& c = at_[at];
            c[running] += change.running;
            c[waiting] += change.waiting;
        }
        for (const JobStint& stint : history.stints()) {
            const auto size = static_cast<std::uint64_t>(std::ceil(history.gpus(stint.parts)));
            const std::size_t c =
                std::min<std::size_t>((std::bit_width(size - 1) + 2) / 3, sizes - 1);
            at_[stint.from][c] += stint.parts;
            at_[stint.until][c] -= stint.parts;
        }
    }

    Json json() const {
        constexpr std::size_t changes_max = 6000;
        constexpr std::int64_t stretches = 1500;
        const bool thinned = at_.size() > changes_max;
        std::vector<Instant> from{Instant{}};  // of each value
        if (thinned) {
            const auto whole = end_.time_since_epoch().count();
            for (std::int64_t i = 1; i < stretches; ++i) {
                from.emplace_back(Duration(whole / stretches * i));
            }
        } else {
            for (const auto& [at, change] : at_) {
                if (at > from.back() && at < end_) from.push_back(at);
            }
        }
        Instants at;
        std::array<Json, series> values;
        values.fill(Json::array());
        auto next = at_.begin();
        Change now{};
        for (std::size_t i = 0; i < from.size(); ++i) {
            const Instant until = i + 1 < from.size() ? from[i + 1] : end_;
            std::array<double, series> held{};
            for (Instant t = from[i]; t < until;) {
                for (; next != at_.end() && next->first <= t; ++next) add(now, next->second);
                const Instant then = next == at_.end() ? until : std::min(until, next->first);
                for (std::size_t c = 0; c < series; ++c) {
                    held[c] += (c < sizes ? history_.gpus(now[c]) : static_cast<double>(now[c])) *
                               seconds(then - t);
                }
                t = then;
            }
            at.add(from[i]);
            for (std::size_t c = 0; c < series; ++c) {
                const double mean = held[c] / std::max(seconds(until - from[i]), 1e-9);
                values[c].push_back(std::round(mean * 100) / 100);
            }
        }
        Json by_size = Json::object();
        for (std::size_t c = 0; c < sizes; ++c) by_size[size_names[c]] = values[c];
        return {{"at_ms", at.take()},
                {"gpus", by_size},
                {"running", values[running]},
                {"waiting", values[waiting]},
                {"thinned", thinned}};
    }

  private:
    static constexpr std::array size_names = {"1 GPU", "2 to 8", "9 to 64", "65 to 512",
                                              "over 512"};
    static constexpr std::size_t sizes = size_names.size();
    static constexpr std::size_t running = sizes;
    static constexpr std::size_t waiting = sizes + 1;
    static constexpr std::size_t series = sizes + 2;
    using Change = std::array<std::int64_t, series>;

    static void add(Change& to, const Change& change) {
        for (std::size_t c = 0; c < series; ++c) to[c] += change[c];
    }

    const WorldHistory& history_;
    Instant end_;
    std::map<Instant, Change> at_;
};

// What went wrong, or was taken from a job; starts, ends and returns to the queue are in the curves.
Json world_events_json(const std::vector<CampaignEvent>& log) {
    constexpr std::size_t events_max = 4000;
    constexpr std::array in_the_curves = {"started", "over", "requeued", "admitted",
                                          "pace_changed"};
    std::vector<CampaignEvent> events;
    for (const CampaignEvent& e : log) {
        if (!contains(in_the_curves, std::string_view(e.kind))) {
            events.push_back(e);
        }
    }
    const std::size_t left_out = events.size() - std::min(events.size(), events_max);
    events.resize(events.size() - left_out);
    Json out = events_json(events);
    out["left_out"] = left_out;
    return out;
}

Json world_timeline(const FeaturedPoint& point, const Scenario& s) {
    const ReplicaResult result = run_replica(s, 0, true);
    const Instant end(result.simulated);
    const WorldHistory history(s, result);
    return {{"point", point.index},
            {"same", fmt::format("{:016x}", result.outcome) == point.outcome},
            {"end_ms", ms(end)},
            {"gpus", s.gpus()},
            {"jobs", history.jobs()},
            {"curves", WorldCurves(history, end).json()},
            {"events", world_events_json(result.log)}};
}

// A cluster that changes has no single replica to draw: what is there from which day on.
Json phases_of(const FeaturedPoint& point, const Scenario& s) {
    Json lines = Json::array();
    for (const PhaseLine& line : phase_lines(s)) {
        Json each = {{"from", line.from}, {"nodes", line.nodes}};
        if (s.cost) each["bought"] = line.bought;
        if (s.cost) each["a_year"] = line.a_year;
        lines.push_back(std::move(each));
    }
    return {{"point", point.index}, {"cluster", std::move(lines)}};
}

Json timeline_of(const FeaturedPoint& point, const Windows& windows) {
    const Scenario s = load_scenario(point.toml, point.file, changes_of(point, windows));
    if (!s.no_path.empty()) throw ScenarioError(s.no_path);
    if (!s.phases.empty()) return phases_of(point, s);
    if (s.world) return world_timeline(point, s);
    ReplicaTrace trace;
    const ReplicaResult result = run_replica(s, 0, true, &trace);
    const Instant end(result.simulated);
    Json stores = Json::array();
    for (std::size_t i = 0; i < s.stores.size(); ++i) {
        Json store = rates_json(trace.store_rates, i, end);
        store["name"] = s.stores[i].name;
        stores.push_back(std::move(store));
    }
    return {{"point", point.index},
            {"same", fmt::format("{:016x}", result.outcome) == point.outcome},
            {"end_ms", ms(end)},
            {"nodes", s.nodes.nodes},
            {"job_nodes", s.job.nodes},
            {"phases", phases_json(trace.phases)},
            {"events", events_json(result.log)},
            {"absences", absences_json(trace.absences, end)},
            {"stores", stores},
            {"links_read_MBps", s.job.network.read.bytes_per_second() * 1e-6},
            {"links_write_MBps", s.job.network.write.bytes_per_second() * 1e-6}};
}

// Bytes over capacity on each link, relative to the link that takes longest.
std::vector<double> load_of(const NetworkWindow& window) {
    const std::vector<double> capacities = railyard::capacities(window.network->topology);
    std::vector<double> load(capacities.size());
    for (const PacketFlow& flow : window.window.flows) {
        for (const LinkId link : flow.path) {
            if (capacities[link] > 0)
                load[link] += static_cast<double>(flow.bytes) / capacities[link];
        }
    }
    const double most = load.empty() ? 0 : *std::ranges::max_element(load);
    if (most > 0) {
        for (double& l : load) l /= most;
    }
    return load;
}

Json topologies_of(const FeaturedPoint& point, const Windows& windows) {
    ScenarioChanges changes = changes_of(point, windows);
    changes.packets = true;
    const Scenario s = load_scenario(point.toml, point.file, changes);
    const std::vector<NetworkWindow> shown = packet_windows(s);
    Json out = Json::array();
    for (const NetworkWindow& window : shown) {
        const Topology& topology = window.network->topology;
        out.push_back({{"network", window.network->name},
                       {"kind", topology.spec().kind},
                       {"nodes", topology.nodes()},
                       {"flows", window.window.flows.size()},
                       {"own_traffic", s.window.given},
                       {"svg", topology_svg(topology,
                                            fmt::format("{} network: {}", window.network->name,
                                                        topology.spec().kind),
                                            load_of(window))}});
    }
    return {{"point", point.index}, {"drawings", out}};
}

Json change_json(const std::optional<EstimateEffect::Change>& change) {
    if (!change) return nullptr;
    return {{"goodput", change->goodput}, {"speed", change->speed}};
}

// What the report can do without is left out with its reason.
template <class Make>
Json or_problem(const FeaturedPoint& point, const Make& make) {
    try {
        return make();
    } catch (const Interrupted&) {
        throw;
    } catch (const std::exception& error) {
        return {{"point", point.index}, {"problem", error.what()}};
    }
}

}  // namespace

Json report_timeline(const FeaturedPoint& point, const Windows& windows) {
    return or_problem(point, [&] { return timeline_of(point, windows); });
}

Json report_topologies(const FeaturedPoint& point, const Windows& windows) {
    return or_problem(point, [&] { return topologies_of(point, windows); });
}

Json report_estimates(const FeaturedPoint& point, const Windows& windows, unsigned threads) {
    return or_problem(point, [&]() -> Json {
        TrialOptions like;
        like.replicas = 8;
        like.threads = threads;
        like.cancelled = &interrupted();
        Json rows = Json::array();
        for (const EstimateEffect& e :
             rank_estimates(like, {"", point.toml, point.file, changes_of(point, windows)})) {
            rows.push_back({{"path", e.estimate.path},
                            {"value", e.estimate.value},
                            {"source", e.estimate.source},
                            {"low_factor", e.estimate.low_factor},
                            {"high_factor", e.estimate.high_factor},
                            {"range_given", e.estimate.range_given},
                            {"low", change_json(e.low)},
                            {"high", change_json(e.high)}});
        }
        return {{"point", point.index}, {"rows", rows}};
    });
}

}  // namespace railyard
