// railyard window: the scenario's traffic and faults, packet by packet.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "models/campaign/campaign.h"
#include "tools/cmd.h"
#include "tools/options.h"
#include "tools/terminal.h"

namespace railyard {

namespace {

using Json = nlohmann::ordered_json;

double to_seconds(Picoseconds t) {
    return static_cast<double>(t.count()) * 1e-12;
}
// "12.3 us", of a time to a few digits.
std::string time_text(Picoseconds t) {
    if (t == PacketEngine::never) return "never";
    const double s = to_seconds(t);
    if (s < 1e-3) return fmt::format("{:.2f} us", s * 1e6);
    if (s < 1) return fmt::format("{:.2f} ms", s * 1e3);
    return fmt::format("{:.3f} s", s);
}

const char* ending_text(WindowEnding ending) {
    switch (ending) {
        case WindowEnding::resolved:
            return "resolved";
        case WindowEnding::out_of_time:
            return "out of time";
        case WindowEnding::out_of_events:
            return "out of events";
        case WindowEnding::cancelled:
            break;
    }
    return "cancelled";
}

// The flows of one [[window.traffic]].
struct TrafficSummary {
    std::int64_t flows = 0;
    std::int64_t ended = 0;
    std::int64_t failed = 0;
    std::int64_t bytes = 0;  // received
    std::vector<double> fct_s;
    Picoseconds begun = PacketEngine::never;
    Picoseconds last{};
};

std::map<std::size_t, TrafficSummary> summarise(const NetworkWindow& window,
                                                const WindowResult& result) {
    std::map<std::size_t, TrafficSummary> out;
    for (std::size_t f = 0; f < window.traffic.size(); ++f) {
        TrafficSummary& t = out[window.traffic[f]];
        ++t.flows;
        t.bytes += result.received_bytes[f];
        t.begun = std::min(t.begun, window.window.flows[f].start);
        t.failed += result.failed[f];
        if (result.ends[f] == PacketEngine::never) continue;
        ++t.ended;
        t.last = std::max(t.last, result.ends[f]);
        t.fct_s.push_back(to_seconds(result.ends[f] - result.begun[f]));
    }
    for (auto& [index, t] : out) std::sort(t.fct_s.begin(), t.fct_s.end());
    return out;
}

double mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double v : values) sum += v;
    return values.empty() ? 0 : sum / static_cast<double>(values.size());
}
double quantile(const std::vector<double>& sorted, double q) {
    if (sorted.empty()) return 0;
    const auto last = static_cast<double>(sorted.size() - 1);
    return sorted[static_cast<std::size_t>(q * last + 0.5)];
}

// Links by where they run: what was paused and queued between two levels.
struct TierSummary {
    std::int64_t links = 0;
    std::int64_t paused_links = 0;
    std::int64_t pauses = 0;
    double paused_s = 0;
    std::int64_t queue_bytes_max = 0;
    std::int64_t stormed = 0;
};

std::map<std::pair<int, int>, TierSummary> by_tier(const Topology& topology,
                                                   const WindowResult& result) {
    std::map<std::pair<int, int>, TierSummary> out;
    const auto tier = [&](LinkId l) -> TierSummary& {
        const Link& link = topology.links()[l];
        return out[{topology.level(link.from), topology.level(link.to)}];
    };
    for (LinkId l = 0; l < topology.links().size(); ++l) ++tier(l).links;
    for (const WindowLink& link : result.links) {
        TierSummary& t = tier(link.link);
        t.paused_links += link.pauses > 0;
        t.pauses += link.pauses;
        t.paused_s += to_seconds(link.paused);
        t.queue_bytes_max = std::max(t.queue_bytes_max, link.queue_bytes_max);
        t.stormed += link.stormed;
    }
    return out;
}

// Packets of a lossless class that found no room, by the name of where: those with most first.
std::vector<std::pair<std::string, std::int64_t>> overflows(const Topology& topology,
                                                            const WindowResult& result) {
    std::map<VertexId, std::int64_t> at;
    for (const WindowLink& link : result.links) {
        if (link.overflows > 0) at[topology.links()[link.link].to] += link.overflows;
    }
    std::vector<std::pair<std::string, std::int64_t>> out;
    for (const auto& [vertex, packets] : at) out.emplace_back(topology.name(vertex), packets);
    std::stable_sort(out.begin(), out.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    return out;
}

// "leaf-0 (12), spine-1 (3)"
std::string where_text(const Topology& topology, const WindowResult& r) {
    constexpr std::size_t named = 8;
    const auto places = overflows(topology, r);
    std::string text;
    for (std::size_t i = 0; i < std::min(named, places.size()); ++i) {
        text += fmt::format("{}{} ({})", i > 0 ? ", " : "", places[i].first, places[i].second);
    }
    if (places.size() > named) text += fmt::format(" and {} more", places.size() - named);
    return text;
}

std::string tier_name(std::pair<int, int> levels) {
    return fmt::format("{} to {}", level_name(levels.first), level_name(levels.second));
}

Json to_json(const Scenario& s, const NetworkWindow& window, const WindowResult& r) {
    Json traffic = Json::array();
    for (const auto& [index, t] : summarise(window, r)) {
        const TrafficSpec& spec = s.window.traffic[index];
        traffic.push_back({{"kind", window_traffic_names()[static_cast<std::size_t>(spec.kind)]},
                           {"flows", t.flows},
                           {"ended", t.ended},
                           {"failed", t.failed},
                           {"received_bytes", t.bytes},
                           {"last_end_s", to_seconds(t.last)},
                           {"fct_mean_s", mean(t.fct_s)},
                           {"fct_p50_s", quantile(t.fct_s, 0.5)},
                           {"fct_p99_s", quantile(t.fct_s, 0.99)},
                           {"fct_max_s", quantile(t.fct_s, 1)}});
    }
    Json tiers = Json::array();
    for (const auto& [levels, t] : by_tier(window.network->topology, r)) {
        tiers.push_back({{"links", tier_name(levels)},
                         {"count", t.links},
                         {"paused", t.paused_links},
                         {"pauses", t.pauses},
                         {"paused_s", t.paused_s},
                         {"queue_bytes_max", t.queue_bytes_max}});
    }
    Json overflowing = Json::object();
    for (const auto& [name, packets] : overflows(window.network->topology, r)) {
        overflowing[name] = packets;
    }
    Json timeline = Json::array();
    for (const WindowSample& sample : r.timeline) {
        timeline.push_back(
            {to_seconds(sample.at), sample.moving, sample.still, sample.paused_links});
    }
    const auto time = [](Picoseconds t) {
        return t == PacketEngine::never ? Json() : Json(to_seconds(t));
    };
    return {{"network", window.network->name},
            {"ending", ending_text(r.ending)},
            {"complete", r.ending == WindowEnding::resolved},
            {"end_s", to_seconds(r.end)},
            {"failures", r.failures},
            {"first_failure_s", time(r.first_failure)},
            {"frozen_after_s", time(r.frozen_after)},
            {"deadlock", r.deadlock},
            {"traffic", traffic},
            {"tiers", tiers},
            {"lost_lossless", r.totals.lost_lossless},
            {"no_room_at", overflowing},
            {"loss_allowed", s.window.allow_loss},
            {"lost_lossy", r.totals.lost_lossy},
            {"lost_to_watchdog", r.totals.lost_to_watchdog},
            {"lost_to_lifetime", r.totals.lost_to_lifetime},
            {"lost_on_links", r.totals.lost_on_links},
            {"retransmitted", r.totals.retransmitted},
            {"timeouts", r.totals.timeouts},
            {"pause_frames", r.totals.pause_frames},
            {"storms_detected", r.totals.storms_detected},
            {"data_packet_hops", r.totals.data_hops},
            {"events", r.totals.events},
            {"digest", r.digest},
            {"timeline",
             {{"columns", {"at_s", "moving", "still", "paused_links"}}, {"rows", timeline}}}};
}

void print_traffic(const Scenario& s, const NetworkWindow& window, const WindowResult& r) {
    Table table({{"traffic"},
                 {"flows", Table::Align::right},
                 {"ended", Table::Align::right},
                 {"failed", Table::Align::right},
                 {"last", Table::Align::right},
                 {"FCT mean", Table::Align::right},
                 {"p50", Table::Align::right},
                 {"p99", Table::Align::right},
                 {"max", Table::Align::right},
                 {"goodput", Table::Align::right}});
    const auto text = [](double s_) {
        return time_text(Picoseconds(static_cast<std::int64_t>(s_ * 1e12)));
    };
    for (const auto& [index, t] : summarise(window, r)) {
        const TrafficSpec& spec = s.window.traffic[index];
        const bool any = t.ended > 0;
        const Picoseconds until = t.ended == t.flows ? t.last : r.end;
        const double span = to_seconds(until - t.begun);
        table.add({window_traffic_names()[static_cast<std::size_t>(spec.kind)],
                   fmt::format("{}", t.flows), fmt::format("{}", t.ended),
                   fmt::format("{}", t.failed), any ? time_text(t.last) : "-",
                   any ? text(mean(t.fct_s)) : "-", any ? text(quantile(t.fct_s, 0.5)) : "-",
                   any ? text(quantile(t.fct_s, 0.99)) : "-",
                   any ? text(quantile(t.fct_s, 1)) : "-",
                   span > 0 ? fmt::format("{:.1f} GB/s", 1e-9 * static_cast<double>(t.bytes) / span)
                            : "-"});
    }
    fmt::print("{}", table.text());
}

void print_tiers(const NetworkWindow& window, const WindowResult& r) {
    Table table({{"links"},
                 {"count", Table::Align::right},
                 {"paused", Table::Align::right},
                 {"pauses", Table::Align::right},
                 {"paused for (all)", Table::Align::right},
                 {"longest queue", Table::Align::right}});
    for (const auto& [levels, t] : by_tier(window.network->topology, r)) {
        table.add({tier_name(levels), fmt::format("{}", t.links), fmt::format("{}", t.paused_links),
                   fmt::format("{}", t.pauses),
                   time_text(Picoseconds(static_cast<std::int64_t>(t.paused_s * 1e12))),
                   to_text(Bytes::of(t.queue_bytes_max))});
    }
    fmt::print("\n{}", table.text());
}

// How many flows moved, over time. Samples come further apart as time goes on, and so do the rows.
void print_timeline(const WindowResult& r) {
    if (r.still_max == 0 || r.timeline.size() < 2) return;
    std::int64_t most = 1;
    for (const WindowSample& sample : r.timeline) {
        most = std::max(most, sample.moving + sample.still);
    }
    Table table({{"at", Table::Align::right},
                 {"flows that move"},
                 {"moving", Table::Align::right},
                 {"still", Table::Align::right},
                 {"links paused", Table::Align::right}});
    constexpr std::size_t rows = 20;
    constexpr int width = 30;
    for (std::size_t row = 0; row < std::min(rows, r.timeline.size()); ++row) {
        const std::size_t last = r.timeline.size() - 1;
        const WindowSample& sample = r.timeline[row * last / (std::min(rows, last + 1) - 1)];
        table.add({time_text(sample.at),
                   bar(static_cast<double>(sample.moving) / static_cast<double>(most), width),
                   fmt::format("{}", sample.moving), fmt::format("{}", sample.still),
                   fmt::format("{}", sample.paused_links)});
    }
    fmt::print("\n{}", table.text());
}

void print_window(const Scenario& s, const NetworkWindow& window, const WindowResult& r) {
    const PacketProfile& p = window.network->packets;
    fmt::print("{} network: {}, {}; {}\n", window.network->name, window.network->topology.kind(),
               flow_control_names()[static_cast<std::size_t>(p.flow_control)] == "none"
                   ? std::string("no flow control")
                   : flow_control_names()[static_cast<std::size_t>(p.flow_control)],
               p.congestion == "none" ? "no congestion control" : p.congestion);
    print_traffic(s, window, r);
    print_tiers(window, r);
    print_timeline(r);
    fmt::print("\n  {} after {}{}\n", ending_text(r.ending), time_text(r.end),
               r.ending == WindowEnding::resolved ? "" : ": all of this is partial");
    if (r.frozen_after != PacketEngine::never) {
        fmt::print("  nothing moved any more {} after the fault began\n",
                   time_text(r.frozen_after));
    }
    if (!r.deadlock.empty()) fmt::print("  deadlock: {}\n", r.deadlock);
    if (r.failures > 0) {
        fmt::print("  {} flows failed, the first at {}: the job's error\n", r.failures,
                   time_text(r.first_failure));
    }
    const PacketEngine::Totals& t = r.totals;
    fmt::print("  pause frames {}, watchdog detections {}, timeouts {}, packets sent again {}\n",
               t.pause_frames, t.storms_detected, t.timeouts, t.retransmitted);
    fmt::print(
        "  packets lost: {} of a lossless class, {} of a lossy one, {} to the watchdog, {} to "
        "their lifetime, {} on cables\n",
        t.lost_lossless, t.lost_lossy, t.lost_to_watchdog, t.lost_to_lifetime, t.lost_on_links);
    if (t.lost_lossless > 0) {
        fmt::print("  no room for a lossless class at: {}\n",
                   where_text(window.network->topology, r));
    }
    fmt::print("  {} data packet-hops, {} events; digest {}\n", t.data_hops, t.events, r.digest);
}

// Says on standard error why the result is not to be relied on, and returns the exit code.
int complain(const Scenario& s, const NetworkWindow& window, const WindowResult& r) {
    const std::string& name = window.network->name;
    int code = exit_ok;
    if (r.ending != WindowEnding::resolved) {
        const bool time = r.ending == WindowEnding::out_of_time;
        const auto open = static_cast<std::int64_t>(r.ends.size()) - r.failures -
                          std::count_if(r.ends.begin(), r.ends.end(),
                                        [](Picoseconds end) { return end != PacketEngine::never; });
        fmt::print(stderr,
                   "railyard: limit: window.{} was reached on the {} network, {} of {} flows had "
                   "not ended: this result is partial\n    raise it with --set window.{}=...\n",
                   time ? fmt::format("time_max = {}", to_text(s.window.time_max))
                        : fmt::format("events_max = {}", s.window.events_max),
                   name, open, r.ends.size(), time ? "time_max" : "events_max");
        code = exit_limit;
    }
    if (r.totals.lost_lossless > 0 && !s.window.allow_loss) {
        fmt::print(stderr,
                   "railyard: loss: {} packets of a lossless class found no room on the {} "
                   "network: {}\n    more headroom, pauses on every switch, or "
                   "window.allow_loss = true\n",
                   r.totals.lost_lossless, name, where_text(window.network->topology, r));
        code = exit_limit;
    }
    return code;
}

}  // namespace

int cmd_window(const std::vector<std::string>& arguments) {
    CommandLine line("railyard window SCENARIO.toml [options]",
                     "Runs the scenario's [window] packet by packet: its traffic and its faults on "
                     "the networks,\n"
                     "until every flow has ended or failed. Without [window.traffic], a ring over "
                     "the job's nodes.");
    line.positional("scenario", 1);
    line.add_settings();
    line.add()("json", "Print one JSON object on standard output and nothing else");
    const auto parsed = line.parse(arguments);
    if (!parsed) return exit_ok;
    const po::variables_map& values = *parsed;
    if (!values.count("scenario")) {
        throw ScenarioError("window needs a scenario file", "railyard window SCENARIO.toml");
    }
    ScenarioChanges changes;
    changes.must_fit = false;
    changes.packets = true;
    changes.settings = settings_of(values);
    const Scenario s =
        load_scenario_file(values["scenario"].as<std::vector<std::string>>()[0], changes);
    Diagnostics diagnostics;
    ValueReader reader(diagnostics, s.file);
    Catalogue catalogue(reader, s.values, &s.overrides);
    const bool json = values.count("json") > 0;
    const std::vector<NetworkWindow> networks = packet_windows(s);
    if (!json) {
        for (const Diagnostic& warning : s.warnings)
            fmt::print(stderr, "{}\n", format_diagnostic(warning, "warning"));
    }
    if (networks.empty()) {
        throw ScenarioError(
            fmt::format("{}: window: nothing is sent by a job of {} node", s.file, s.job.nodes),
            "more nodes, or [[window.traffic]] of another kind");
    }
    if (!json) fmt::print("{}\n\n", s.title);
    Json windows = Json::array();
    int code = exit_ok;
    for (const NetworkWindow& window : networks) {
        const WindowResult r = run_window(catalogue, window.network->topology,
                                          window.network->packets, window.window, interrupted());
        if (json) {
            windows.push_back(to_json(s, window, r));
        } else {
            print_window(s, window, r);
        }
        if (r.ending == WindowEnding::cancelled) return exit_interrupted;
        code = std::max(code, complain(s, window, r));
    }
    if (json) {
        fmt::print("{}\n",
                   Json{{"scenario", s.file}, {"version", version()}, {"windows", windows}}.dump());
    }
    return code;
}

}  // namespace railyard
