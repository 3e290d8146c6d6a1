#include "tools/trace/trace_tracks.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "sim/text.h"
#include "tools/program/lists.h"
#include "tools/trace/world_history.h"

namespace railyard {

namespace {

std::int64_t ns(Instant t) {
    return t.time_since_epoch().count();
}
std::int64_t ns(Picoseconds t) {
    return std::chrono::duration_cast<Nanoseconds>(t).count();
}

void trace_phases(PerfettoTrace& trace, PerfettoTrace::Track job, const ReplicaTrace& record) {
    const auto track = trace.track(job, "phase");
    for (std::size_t i = 0; i + 1 < record.phases.size(); ++i) {
        const auto& [at, phase] = record.phases[i];
        trace.slice(track, std::string(phase_name(phase)), ns(at), ns(record.phases[i + 1].at));
    }
}

void trace_events(PerfettoTrace& trace, PerfettoTrace::Track job, const ReplicaResult& result) {
    const auto interruptions = trace.track(job, "interruptions");
    const auto checkpoints = trace.track(job, "checkpoints");
    const auto steps = trace.counter(job, "steps that are safe", "steps");
    trace.count(steps, 0, 0);
    for (const CampaignEvent& e : result.log) {
        const std::string_view kind = e.kind;
        if (kind == "checkpoint_safe") {
            trace.instant(checkpoints, "safe", ns(e.at), {{"steps", e.steps}});
            trace.count(steps, ns(e.at), static_cast<double>(e.steps));
        } else if (kind == "interruption" || kind == "storm" || kind == "data_lost") {
            trace.instant(interruptions, e.cause, ns(e.at),
                          {{"kind", std::string(kind)},
                           {"job's node slot", e.slot},
                           {kind == "storm" ? "steps so far" : "steps lost", e.steps}});
        }
    }
}

void trace_nodes(PerfettoTrace& trace, const ReplicaResult& result, const ReplicaTrace& record) {
    if (record.absences.empty()) return;
    const auto group = trace.group("nodes out of service");
    std::map<std::int64_t, PerfettoTrace::Track> tracks;
    for (const NodeAbsence& a : record.absences) tracks[a.node] = 0;
    for (auto& [node, track] : tracks) track = trace.track(group, fmt::format("node {}", node));
    const Instant end(result.simulated);
    for (const NodeAbsence& a : record.absences) {
        trace.slice(tracks[a.node], a.cause, ns(a.from), ns(std::min(a.until, end)),
                    {{"back after", to_text(a.until - a.from)}});
    }
}

void trace_stores(PerfettoTrace& trace, const Scenario& s, const ReplicaResult& result,
                  const ReplicaTrace& record) {
    const auto group = trace.group("storage");
    struct Counters {
        PerfettoTrace::Track read;
        PerfettoTrace::Track write;
    };
    std::vector<Counters> counters;
    for (const StoreSetup& store : s.stores) {
        counters.push_back({trace.counter(group, store.name + ", read", "GB/s"),
                            trace.counter(group, store.name + ", write", "GB/s")});
        trace.count(counters.back().read, 0, 0);
        trace.count(counters.back().write, 0, 0);
    }
    const auto gigabytes = [](Bandwidth b) { return b.bytes_per_second() * 1e-9; };
    for (const StoreRates& rates : record.store_rates) {
        trace.count(counters[rates.store].read, ns(rates.at), gigabytes(rates.read));
        trace.count(counters[rates.store].write, ns(rates.at), gigabytes(rates.write));
    }
    for (const Counters& c : counters) {
        trace.count(c.read, result.simulated.count(), 0);
        trace.count(c.write, result.simulated.count(), 0);
    }
}

// Slices one after another from 0; ends are rounded, so that they never drift.
class SpanRow {
  public:
    SpanRow(PerfettoTrace& trace, PerfettoTrace::Track track) : trace_(trace), track_(track) {}
    void add(const std::string& name, double length_s, PerfettoTrace::Facts facts = {}) {
        if (length_s <= 0) return;
        const std::int64_t begin = from_seconds(at_s_).count();
        at_s_ += length_s;
        trace_.slice(track_, name, begin, from_seconds(at_s_).count(), std::move(facts));
    }

  private:
    PerfettoTrace& trace_;
    PerfettoTrace::Track track_;
    double at_s_ = 0;
};

// Slices that are under way at once lie on tracks beside each other, all of one name: "node 3", "node 3 (2)".
class Lanes {
  public:
    Lanes(PerfettoTrace& trace, PerfettoTrace::Track group) : trace_(trace), group_(group) {}

    // Asked for in the order of the beginnings.
    PerfettoTrace::Track track(const std::string& name, std::int64_t begin_ns,
                               std::int64_t end_ns) {
        std::vector<Lane>& lanes = lanes_[name];
        for (Lane& lane : lanes) {
            if (lane.busy_until_ns > begin_ns) continue;
            lane.busy_until_ns = end_ns;
            return lane.track;
        }
        const std::string numbered =
            lanes.empty() ? name : fmt::format("{} ({})", name, lanes.size() + 1);
        lanes.push_back({trace_.track(group_, numbered), end_ns});
        return lanes.back().track;
    }

  private:
    struct Lane {
        PerfettoTrace::Track track;
        std::int64_t busy_until_ns;
    };
    PerfettoTrace& trace_;
    PerfettoTrace::Track group_;
    std::map<std::string, std::vector<Lane>> lanes_;
};

void trace_counts(PerfettoTrace& trace, PerfettoTrace::Track group, const WorldHistory& history) {
    const auto running = trace.counter(group, "jobs that run", "jobs");
    const auto waiting = trace.counter(group, "jobs that wait", "jobs");
    const auto gpus = trace.counter(group, "GPUs that jobs hold", "GPUs");
    WorldHistory::Counts now;
    const auto put = [&](PerfettoTrace::Track track, Instant at, std::int64_t& value,
                         std::int64_t change, double unit = 1) {
        if (change == 0 && at != Instant{}) return;
        value += change;
        trace.count(track, ns(at), static_cast<double>(value) * unit);
    };
    const auto put_all = [&](Instant at, const WorldHistory::Counts& change) {
        put(running, at, now.running, change.running);
        put(waiting, at, now.waiting, change.waiting);
        put(gpus, at, now.parts, change.parts, history.gpus(1));
    };
    if (!history.changes().contains(Instant{})) put_all(Instant{}, {});
    for (const auto& [at, change] : history.changes()) put_all(at, change);
}

// "1 GPU", "up to 64 GPUs": more than half as many.
std::string size_name(std::int64_t gpus) {
    if (gpus == 1) return "1 GPU";
    return fmt::format("up to {} GPUs", std::bit_ceil(static_cast<std::uint64_t>(gpus)));
}

std::size_t trace_runs(PerfettoTrace& trace, const Scenario& s, std::vector<JobStint> runs) {
    constexpr std::size_t runs_max = 50'000;  // as many as a browser can hold
    std::ranges::stable_sort(runs, [](const JobStint& a, const JobStint& b) {
        return a.part_seconds() > b.part_seconds();
    });
    const std::size_t left_out = runs.size() - std::min(runs.size(), runs_max);
    runs.resize(runs.size() - left_out);
    std::ranges::stable_sort(runs, {}, &JobStint::from);
    Lanes lanes(trace, trace.group("jobs that run, by size"));
    for (const JobStint& run : runs) {
        trace.slice(lanes.track(size_name(run.job->gpus), ns(run.from), ns(run.until)),
                    fmt::format("job {}", s.world->spec.name_of(*run.job)), ns(run.from),
                    ns(run.until),
                    {{"GPUs", run.job->gpus},
                     {"first node", run.first_node},
                     {"waited", to_text(run.waited)},
                     {"then", run.how}});
    }
    return left_out;
}

// What else happened, to jobs and to nodes: a track for each kind of event.
void trace_world_events(PerfettoTrace& trace, PerfettoTrace::Track group,
                        const ReplicaResult& result) {
    std::map<std::string, PerfettoTrace::Track> tracks;
    for (const CampaignEvent& e : result.log) {
        const std::string kind = e.kind;
        if (kind == "started" || kind == "over") continue;
        auto& track = tracks[kind];
        if (track == 0) track = trace.track(group, kind);
        trace.instant(track, e.cause.empty() ? kind : e.cause, ns(e.at), {{"node", e.slot}});
    }
}

// A flow is named by its ends and lies on a track of its sender's.
void trace_flows(PerfettoTrace& trace, PerfettoTrace::Track group, const NetworkWindow& window,
                 const WindowResult& r, const std::vector<TrafficSpec>& traffic) {
    const Topology& topology = window.network->topology;
    std::vector<std::size_t> order;
    for (std::size_t f = 0; f < window.window.flows.size(); ++f) {
        if (r.begun[f] <= r.end) order.push_back(f);
    }
    std::ranges::stable_sort(order,
                             [&](std::size_t a, std::size_t b) { return r.begun[a] < r.begun[b]; });
    Lanes senders(trace, group);
    for (const std::size_t f : order) {
        const PacketFlow& flow = window.window.flows[f];
        const std::string from = source_name(topology, window.window, flow);
        const std::string to = target_name(topology, window.window, flow);
        const bool ended = r.ends[f] != PacketEngine::never;
        const Picoseconds end = ended ? r.ends[f] : r.end;
        const auto kind = static_cast<std::size_t>(traffic[window.traffic[f]].kind);
        trace.slice(senders.track(from, ns(r.begun[f]), ns(end)),
                    fmt::format("{} to {}", window_traffic_names[kind], to), ns(r.begun[f]),
                    ns(end),
                    {{"bytes", flow.bytes},
                     {"received", r.received_bytes[f]},
                     {"ended", std::string(r.failed[f] ? "failed"
                                           : ended     ? "yes"
                                                       : "no")}});
    }
}

void trace_samples(PerfettoTrace& trace, PerfettoTrace::Track group, const WindowResult& r) {
    const auto moving = trace.counter(group, "flows that move", "flows");
    const auto still = trace.counter(group, "flows that stand still", "flows");
    const auto paused = trace.counter(group, "links paused", "links");
    for (const WindowSample& sample : r.timeline) {
        trace.count(moving, ns(sample.at), static_cast<double>(sample.moving));
        trace.count(still, ns(sample.at), static_cast<double>(sample.still));
        trace.count(paused, ns(sample.at), static_cast<double>(sample.paused_links));
    }
}

std::string link_name(const Topology& topology, LinkId link) {
    return fmt::format("{} to {}", topology.name(topology.links()[link].from),
                       topology.name(topology.links()[link].to));
}

// Most first, as many as people can look through.
std::vector<LinkId> busiest(const WindowResult& r) {
    constexpr std::size_t links_max = 400;
    auto links = mapped(r.links, [&](const WindowLink& link) { return &link; });
    std::ranges::stable_sort(links, [](const auto* a, const auto* b) {
        return std::pair(a->paused, a->queue_bytes_max) > std::pair(b->paused, b->queue_bytes_max);
    });
    links.resize(std::min(links.size(), links_max));
    return mapped(links, &WindowLink::link);
}

void trace_pauses(PerfettoTrace& trace, const std::string& name, const Topology& topology,
                  const std::vector<LinkId>& shown, const WindowResult& r,
                  const WindowRecord& record) {
    using Key = std::pair<LinkId, int>;
    std::map<Key, PerfettoTrace::Track> tracks;
    std::map<Key, Picoseconds> since;
    const auto group = trace.group(name + ": links that wait");
    for (const PauseEdge& edge : record.pauses) tracks[{edge.link, edge.traffic_class}] = 0;
    for (const LinkId link : shown) {
        for (auto it = tracks.lower_bound({link, 0}); it != tracks.end() && it->first.first == link;
             ++it) {
            it->second = trace.track(
                group, fmt::format("{}, class {}", link_name(topology, link), it->first.second));
        }
    }
    const auto close = [&](const Key& key, Picoseconds from, Picoseconds until) {
        if (tracks[key] != 0) trace.slice(tracks[key], "waits", ns(from), ns(until));
    };
    for (const PauseEdge& edge : record.pauses) {
        const Key key{edge.link, edge.traffic_class};
        if (edge.waits) {
            since[key] = edge.at;
        } else if (const auto begun = since.extract(key)) {
            close(key, begun.mapped(), edge.at);
        }
    }
    for (const auto& [key, from] : since) close(key, from, r.end);
}

void trace_queues(PerfettoTrace& trace, const std::string& name, const Topology& topology,
                  const std::vector<LinkId>& shown, const WindowRecord& record) {
    const auto group = trace.group(name + ": queues");
    std::map<LinkId, PerfettoTrace::Track> tracks;
    for (const QueueSample& sample : record.queues) tracks[sample.link] = 0;
    for (const LinkId link : shown) {
        const auto found = tracks.find(link);
        if (found == tracks.end()) continue;
        found->second = trace.counter(group, link_name(topology, link), "B");
        trace.count(found->second, 0, 0);
    }
    for (const QueueSample& sample : record.queues) {
        const auto track = tracks[sample.link];
        if (track != 0) trace.count(track, ns(sample.at), static_cast<double>(sample.bytes));
    }
}

void trace_faults(PerfettoTrace& trace, PerfettoTrace::Track group, const NetworkWindow& window,
                  const WindowResult& r) {
    for (const WindowFault& fault : window.window.faults) {
        const std::string kind = word_of(window_fault_names, fault.kind);
        const auto track = trace.track(
            group,
            fmt::format("fault: {}, {}", kind, link_name(window.network->topology, fault.link)));
        const Picoseconds begin = std::min(fault.start, r.end);
        trace.slice(track, kind, ns(begin), ns(std::clamp(fault.end, begin, r.end)));
    }
}

}  // namespace

std::size_t trace_world(PerfettoTrace& trace, const Scenario& s, const ReplicaResult& result) {
    const WorldHistory history(s, result);
    const auto group =
        trace.group(fmt::format("{} jobs, replica {}", history.jobs(), result.index));
    trace_counts(trace, group, history);
    trace_world_events(trace, group, result);
    return trace_runs(trace, s, history.stints());
}

void trace_replica(PerfettoTrace& trace, const Scenario& s, const ReplicaResult& result,
                   const ReplicaTrace& record) {
    const auto job =
        trace.group(fmt::format("job on {} nodes, replica {}", s.job.nodes, result.index));
    trace_phases(trace, job, record);
    trace_events(trace, job, result);
    trace_stores(trace, s, result, record);
    trace_nodes(trace, result, record);
}

void trace_step(PerfettoTrace& trace, const Scenario& s) {
    const StepTime& step = s.job.step;
    const auto group = trace.group(fmt::format("one step: {}", to_text(step.duration())));
    SpanRow parts(trace, trace.track(group, "where the time goes"));
    parts.add("compute", seconds(step.compute));
    parts.add("exposed communication", seconds(step.exposed_communication));
    parts.add("pipeline bubble", seconds(step.bubble));
    parts.add("straggler wait", seconds(step.straggler_wait));
    parts.add("waiting for silent faults", seconds(step.degraded));
    parts.add("data wait", seconds(step.data_wait));
    if (!step_is_modelled(s)) return;
    Communicators groups = communicators(s, s.fidelity);
    const CriticalPath path =
        critical_path(s.model, s.plan, groups, s.parameter_bytes, s.optimizer_traffic);
    constexpr const char* kinds[] = {"compute", "communication", "bubble", "straggler"};
    SpanRow chain(trace, trace.track(group, "critical path, each kind of work together"));
    for (const PathPart& part : path) {
        chain.add(std::string(part.name), part.seconds,
                  {{"kind", std::string(kinds[static_cast<std::size_t>(part.kind)])},
                   {"times a step", part.count},
                   {"seconds each", part.count > 0 ? part.seconds / part.count : 0}});
    }
}

std::size_t trace_window(PerfettoTrace& trace, const Scenario& s, const NetworkWindow& window,
                         const WindowResult& r, const WindowRecord& record) {
    const std::string name = window.network->name + " network";
    const auto group = trace.group(name);
    trace_samples(trace, group, r);
    trace_faults(trace, group, window, r);
    trace_flows(trace, trace.group(name + ": flows by sender"), window, r, s.window.traffic);
    const std::vector<LinkId> shown = busiest(r);
    trace_pauses(trace, name, window.network->topology, shown, r, record);
    trace_queues(trace, name, window.network->topology, shown, record);
    return r.links.size() - shown.size();
}

}  // namespace railyard
