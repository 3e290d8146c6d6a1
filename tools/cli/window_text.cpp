#include "tools/cli/window_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "models/fabric/fabric.h"
#include "sim/statistics.h"
#include "sim/text.h"
#include "tools/cli/cmd.h"

namespace railyard {

namespace {

constexpr std::size_t arm_columns = 15;

double to_seconds(Picoseconds t) {
    return static_cast<double>(t.count()) * 1e-12;
}
// "12.3 us", of a time to a few digits.
std::string packet_time_text(Picoseconds t) {
    if (t == PacketEngine::never) return "never";
    const double s = to_seconds(t);
    if (s < 1e-3) return fmt::format("{:.2f} us", s * 1e6);
    if (s < 1) return fmt::format("{:.2f} ms", s * 1e3);
    return fmt::format("{:.3f} s", s);
}

const char* ending_text(WindowEnding ending) {
    constexpr const char* names[] = {"resolved", "stuck", "out of time", "out of events",
                                     "cancelled"};
    return names[static_cast<std::size_t>(ending)];
}

// The flows of one [[window.traffic]].
struct TrafficSummary {
    std::int64_t flows = 0;
    std::int64_t ended = 0;
    std::int64_t failed = 0;
    std::int64_t bytes = 0;  // received by NICs
    std::vector<double> fct_s;
    Picoseconds begun = PacketEngine::never;
    Picoseconds last{};
};

std::map<std::size_t, TrafficSummary> summary_of_window(const NetworkWindow& window,
                                                        const WindowResult& result) {
    std::map<std::size_t, TrafficSummary> out;
    for (std::size_t f = 0; f < window.traffic.size(); ++f) {
        TrafficSummary& t = out[window.traffic[f]];
        ++t.flows;
        const LinkId last = window.window.flows[f].path.back();
        if (!aggregation_node_of(window.network->topology, last)) {
            t.bytes += result.received_bytes[f];
        }
        t.begun = std::min(t.begun, window.window.flows[f].start);
        t.failed += result.failed[f];
        if (result.ends[f] == PacketEngine::never) continue;
        ++t.ended;
        t.last = std::max(t.last, result.ends[f]);
        t.fct_s.push_back(to_seconds(result.ends[f] - result.begun[f]));
    }
    for (auto& [index, t] : out) std::ranges::sort(t.fct_s);
    return out;
}

double mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double v : values) sum += v;
    return values.empty() ? 0 : sum / static_cast<double>(values.size());
}
double quantile(const std::vector<double>& sorted, double q) {
    return sorted.empty() ? 0 : sorted[nearest_place(q, sorted.size())];
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
    std::ranges::stable_sort(out, [](const auto& a, const auto& b) { return a.second > b.second; });
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

Json traffic_json(const Scenario& s, const NetworkWindow& window, const WindowResult& r) {
    Json traffic = Json::array();
    for (const auto& [index, t] : summary_of_window(window, r)) {
        const TrafficSpec& spec = s.window.traffic[index];
        const auto of_ended = [ended = t.ended > 0](double time_s) {
            return ended ? Json(time_s) : Json();
        };
        traffic.push_back({{"kind", word_of(window_traffic_names, spec.kind)},
                           {"flows", t.flows},
                           {"ended", t.ended},
                           {"failed", t.failed},
                           {"received_bytes", t.bytes},
                           {"last_end_s", of_ended(to_seconds(t.last))},
                           {"fct_mean_s", of_ended(mean(t.fct_s))},
                           {"fct_p50_s", of_ended(quantile(t.fct_s, 0.5))},
                           {"fct_p99_s", of_ended(quantile(t.fct_s, 0.99))},
                           {"fct_max_s", of_ended(quantile(t.fct_s, 1))}});
    }
    return traffic;
}

Json tiers_json(const NetworkWindow& window, const WindowResult& r) {
    Json tiers = Json::array();
    for (const auto& [levels, t] : by_tier(window.network->topology, r)) {
        tiers.push_back({{"links", tier_name(levels)},
                         {"count", t.links},
                         {"paused", t.paused_links},
                         {"pauses", t.pauses},
                         {"paused_s", t.paused_s},
                         {"queue_bytes_max", t.queue_bytes_max}});
    }
    return tiers;
}

std::string seconds_text(double s) {
    return packet_time_text(Picoseconds(static_cast<std::int64_t>(s * 1e12)));
}

// From the first flow's begin to the last one's end, or to the window's where some have not ended.
std::string goodput_text(const TrafficSummary& t, const WindowResult& r) {
    const Picoseconds until = t.ended == t.flows ? t.last : r.end;
    const double span = to_seconds(until - t.begun);
    if (span <= 0) return "-";
    return fmt::format("{:.1f} GB/s", 1e-9 * static_cast<double>(t.bytes) / span);
}

void print_traffic(const Scenario& s, const NetworkWindow& window, const WindowResult& r) {
    Table table({"traffic", ">flows", ">ended", ">failed", ">last", ">FCT mean", ">p50", ">p99",
                 ">max", ">goodput"});
    for (const auto& [index, t] : summary_of_window(window, r)) {
        const TrafficSpec& spec = s.window.traffic[index];
        const bool any = t.ended > 0;
        table.add({word_of(window_traffic_names, spec.kind), fmt::format("{}", t.flows),
                   fmt::format("{}", t.ended), fmt::format("{}", t.failed),
                   any ? packet_time_text(t.last) : "-", any ? seconds_text(mean(t.fct_s)) : "-",
                   any ? seconds_text(quantile(t.fct_s, 0.5)) : "-",
                   any ? seconds_text(quantile(t.fct_s, 0.99)) : "-",
                   any ? seconds_text(quantile(t.fct_s, 1)) : "-", goodput_text(t, r)});
    }
    fmt::print("{}", table.text());
}

// What packets make of it: queues, marks, losses, unfairness.
void print_fair_shares(const Scenario& s, const NetworkWindow& window, const WindowResult& r) {
    StandaloneCatalogue own = s.open_catalogue();
    const auto ends =
        fair_ends(own.catalogue, window.network->topology, window.network->packets, window.window);
    if (!ends) return;
    WindowResult fair = r;
    fair.ends = *ends;
    fair.begun = begins_of(window.window.flows, *ends);
    const auto by_fair_shares = summary_of_window(window, fair);
    for (const auto& [index, t] : summary_of_window(window, r)) {
        const auto& other = by_fair_shares.at(index);
        if (t.ended < t.flows || other.ended < other.flows) continue;
        const TrafficSpec& spec = s.window.traffic[index];
        const auto more = [](double packets, double shares) {
            return 100 * (packets / shares - 1);
        };
        fmt::print(
            "  {} by fair shares, without packets: FCT mean {}, last {}; packets {:+.2f} % and "
            "{:+.2f} %\n",
            word_of(window_traffic_names, spec.kind), seconds_text(mean(other.fct_s)),
            packet_time_text(other.last), more(mean(t.fct_s), mean(other.fct_s)),
            more(to_seconds(t.last), to_seconds(other.last)));
    }
}

void print_tiers(const NetworkWindow& window, const WindowResult& r) {
    Table table({"links", ">count", ">paused", ">pauses", ">paused for (all)", ">longest queue"});
    for (const auto& [levels, t] : by_tier(window.network->topology, r)) {
        table.add({tier_name(levels), fmt::format("{}", t.links), fmt::format("{}", t.paused_links),
                   fmt::format("{}", t.pauses), seconds_text(t.paused_s),
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
    Table table({">at", "flows that move", ">moving", ">still", ">links paused"});
    constexpr std::size_t rows = 20;
    constexpr int width = 30;
    for (std::size_t row = 0; row < std::min(rows, r.timeline.size()); ++row) {
        const std::size_t last = r.timeline.size() - 1;
        const WindowSample& sample = r.timeline[row * last / (std::min(rows, last + 1) - 1)];
        table.add({packet_time_text(sample.at),
                   bar(static_cast<double>(sample.moving) / static_cast<double>(most), width),
                   fmt::format("{}", sample.moving), fmt::format("{}", sample.still),
                   fmt::format("{}", sample.paused_links)});
    }
    fmt::print("\n{}", table.text());
}

// The first flow that has neither ended nor failed. There is one.
std::size_t first_open(const WindowResult& r) {
    std::size_t f = 0;
    while (r.ends[f] != PacketEngine::never || r.failed[f]) ++f;
    return f;
}

}  // namespace

std::vector<NetworkWindow> windows_of(const Scenario& s) {
    std::vector<NetworkWindow> networks = packet_windows(s);
    if (!networks.empty()) return networks;
    throw ScenarioError(
        fmt::format("{}: window: nothing is sent by a job of {} node", s.file, s.job.nodes),
        "more nodes, or [[window.traffic]] of another kind");
}

Json window_json(const Scenario& s, const NetworkWindow& window, const WindowResult& r) {
    Json overflowing = Json::object();
    for (const auto& [name, packets] : overflows(window.network->topology, r)) {
        overflowing[name] = packets;
    }
    const Json timeline = json_array(r.timeline, [](const WindowSample& sample) -> Json {
        return {to_seconds(sample.at), sample.moving, sample.still, sample.paused_links};
    });
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
            {"paused_most", r.paused_most},
            {"pauser_chain", r.pauser_chain},
            {"deadlock", r.deadlock},
            {"deadlock_left", r.deadlock_left},
            {"traffic", traffic_json(s, window, r)},
            {"tiers", tiers_json(window, r)},
            {"lost_lossless", r.totals.lost_lossless},
            {"no_room_at", overflowing},
            {"loss_allowed", s.window.allow_loss},
            {"lost_lossy", r.totals.lost_lossy},
            {"lost_to_watchdog", r.totals.lost_to_watchdog},
            {"lost_to_lifetime", r.totals.lost_to_lifetime},
            {"lost_on_links", r.totals.lost_on_links},
            {"sent_again_by_links", r.totals.replayed},
            {"trimmed", r.totals.trimmed},
            {"trimmed_last_hop", r.totals.trimmed_last_hop},
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

void print_window(const Scenario& s, const NetworkWindow& window, const WindowResult& r) {
    const PacketProfile& p = window.network->packets;
    fmt::print("{} network: {}, {}; {}\n", window.network->name,
               window.network->topology.spec().kind,
               word_of(flow_control_names, p.flow_control) == "none"
                   ? std::string("no flow control")
                   : word_of(flow_control_names, p.flow_control),
               p.congestion == "none" ? "no congestion control" : p.congestion);
    print_traffic(s, window, r);
    print_fair_shares(s, window, r);
    print_tiers(window, r);
    print_timeline(r);
    fmt::print("\n  {} after {}{}\n", ending_text(r.ending), packet_time_text(r.end),
               r.ending == WindowEnding::resolved ? "" : ": all of this is partial");
    if (r.frozen_after != PacketEngine::never) {
        fmt::print("  nothing moved any more {} after the fault began\n",
                   packet_time_text(r.frozen_after));
    }
    if (r.paused_most > 0) {
        fmt::print("  {} paused at {}, one of them by: {}\n", counted(r.paused_most, "link"),
                   packet_time_text(r.paused_most_at), r.pauser_chain);
    }
    if (!r.deadlock.empty()) {
        fmt::print("  deadlock{}: {}\n",
                   r.deadlock_left ? ""
                                   : fmt::format(", seen at {}, broken since",
                                                 packet_time_text(r.deadlock_seen)),
                   r.deadlock);
    }
    if (r.failures > 0) {
        fmt::print("  {} flows failed, the first at {}: the job's error\n", r.failures,
                   packet_time_text(r.first_failure));
    }
    const PacketEngine::Totals& t = r.totals;
    fmt::print("  pause frames {}, watchdog detections {}, timeouts {}, packets sent again {}\n",
               t.pause_frames, t.storms_detected, t.timeouts, t.retransmitted);
    fmt::print(
        "  packets lost: {} of a lossless class, {} of a lossy one, {} to the watchdog, {} to "
        "their lifetime, {} on cables\n",
        t.lost_lossless, t.lost_lossy, t.lost_to_watchdog, t.lost_to_lifetime, t.lost_on_links);
    if (t.trimmed > 0) {
        fmt::print("  packets trimmed to their headers: {}, of these {} before a NIC\n", t.trimmed,
                   t.trimmed_last_hop);
    }
    if (t.replayed > 0) fmt::print("  packets that links sent again: {}\n", t.replayed);
    if (t.lost_lossless > 0) {
        fmt::print("  no room for a lossless class at: {}\n",
                   where_text(window.network->topology, r));
    }
    fmt::print("  {} data packet-hops, {} events; digest {}\n", t.data_hops, t.events, r.digest);
}

Complaint complaint(const Scenario& s, const NetworkWindow& window, const WindowResult& r) {
    const std::string& name = window.network->name;
    Complaint out;
    const auto open =
        std::ssize(r.ends) - r.failures -
        std::ranges::count_if(r.ends, [](Picoseconds end) { return end != PacketEngine::never; });
    if (r.ending == WindowEnding::stuck && open == 0) {
        out.text += fmt::format(
            "railyard: stuck: {} of {} flows on the {} network failed\n    deadlock: {}\n",
            r.failures, r.ends.size(), name, r.deadlock);
        out.code = exit_stuck;
    } else if (r.ending == WindowEnding::stuck) {
        const Topology& t = window.network->topology;
        const auto first = first_open(r);
        const PacketFlow& flow = window.window.flows[first];
        out.text += fmt::format(
            "railyard: stuck: {} of {} flows on the {} network can never go on, the first of them "
            "from {} to {}: none waits for an acknowledgement, so no timeout comes\n"
            "{}    a job would be ended by the watchdog of its collectives\n",
            open, r.ends.size(), name, source_name(t, window.window, flow),
            target_name(t, window.window, flow),
            r.deadlock.empty() ? "" : fmt::format("    deadlock: {}\n", r.deadlock));
        out.code = exit_stuck;
    } else if (r.ending != WindowEnding::resolved) {
        const bool time = r.ending == WindowEnding::out_of_time;
        out.text += fmt::format(
            "railyard: limit: window.{} was reached on the {} network, {} of {} flows had not "
            "ended: this result is partial\n    raise it with --set window.{}=...\n",
            time ? fmt::format("time_max = {}", to_text(s.window.time_max))
                 : fmt::format("events_max = {}", s.window.events_max),
            name, open, r.ends.size(), time ? "time_max" : "events_max");
        out.code = exit_limit;
    }
    if (r.totals.lost_lossless > 0 && !s.window.allow_loss) {
        out.text += fmt::format(
            "railyard: loss: {} packets of a lossless class found no room on the {} network: {}\n  "
            "  more headroom, pauses on every switch, or window.allow_loss = true\n",
            r.totals.lost_lossless, name, where_text(window.network->topology, r));
        out.code = exit_limit;
    }
    return out;
}

std::optional<double> capital_of(const Scenario& s) {
    if (!s.cost) return std::nullopt;
    const CostPlan& plan = s.cost->plan;
    return usd(capital_sum(plan, typical_prices(plan.prices)));
}

Table arms_table() {
    return Table({"arm", "traffic", ">last", ">FCT mean", ">p99", ">goodput", ">failed",
                  ">paused (all)", ">pauses", ">longest queue", ">lost", ">sent again", ">timeouts",
                  ">still after", ">capital"});
}

std::vector<std::vector<std::string>> arm_rows(const std::string& arm, const Scenario& s,
                                               const NetworkWindow& window, const WindowResult& r) {
    TierSummary all;
    for (const auto& [levels, tier] : by_tier(window.network->topology, r)) {
        all.pauses += tier.pauses;
        all.paused_s += tier.paused_s;
        all.queue_bytes_max = std::max(all.queue_bytes_max, tier.queue_bytes_max);
    }
    std::vector<std::vector<std::string>> out;
    const std::optional<double> capital = capital_of(s);
    for (const auto& [index, t] : summary_of_window(window, r)) {
        std::vector<std::string> row = {arm,
                                        word_of(window_traffic_names, s.window.traffic[index].kind),
                                        t.ended > 0 ? packet_time_text(t.last) : "-",
                                        t.ended > 0 ? seconds_text(mean(t.fct_s)) : "-",
                                        t.ended > 0 ? seconds_text(quantile(t.fct_s, 0.99)) : "-",
                                        goodput_text(t, r),
                                        fmt::format("{}", t.failed)};
        if (out.empty()) {
            row.insert(
                row.end(),
                {seconds_text(all.paused_s), fmt::format("{}", all.pauses),
                 to_text(Bytes::of(all.queue_bytes_max)), fmt::format("{}", r.lost()),
                 fmt::format("{}", r.totals.retransmitted), fmt::format("{}", r.totals.timeouts),
                 r.frozen_after == PacketEngine::never ? "-" : packet_time_text(r.frozen_after),
                 capital ? money_text(*capital) : "-"});
        }
        row.resize(arm_columns);
        out.push_back(std::move(row));
    }
    return out;
}

}  // namespace railyard
