#include "models/fabric/packet_window.h"

#include <algorithm>
#include <map>
#include <optional>

#include "models/fabric/aggregation_tree.h"
#include "models/fabric/link_failover.h"
#include "models/fabric/packet_deadlock.h"
#include "sim/cancel.h"

namespace railyard {

namespace {

// Samples come closer together just after the first fault, where things happen in microseconds, than later,
// where they take seconds.
class SampleTimes {
  public:
    explicit SampleTimes(Picoseconds anchor) : anchor_(anchor) {}
    Picoseconds after(Picoseconds now) const {
        constexpr Picoseconds shortest = std::chrono::microseconds(10);
        constexpr int per_stretch = 25;  // samples in each doubling, and some more
        const Picoseconds elapsed = now < anchor_ ? now : now - anchor_;
        const Picoseconds next = now + std::max(shortest, elapsed / per_stretch);
        return now < anchor_ ? std::min(next, anchor_) : next;
    }

  private:
    Picoseconds anchor_;
};

class Watcher {
  public:
    Watcher(const PacketEngine& engine, const PacketWindow& window, std::size_t links,
            std::size_t classes)
        : engine_(engine), window_(window), links_(links), classes_(static_cast<int>(classes)) {
        received_.resize(window.flows.size());
    }

    WindowSample look(WindowResult& result) {
        WindowSample sample;
        sample.at = engine_.now();
        foreground_ended_ = true;
        ended_ = 0;
        for (std::size_t f = 0; f < received_.size(); ++f) {
            if (engine_.failed(f)) {
                ++ended_;
                if (f >= window_.background_from) continue;
                result.first_failure = std::min(result.first_failure, engine_.failed_at(f));
                continue;
            }
            if (engine_.end(f) != PacketEngine::never) {
                ++ended_;
                continue;
            }
            if (f < window_.background_from) foreground_ended_ = false;
            if (!engine_.begun(f)) continue;
            const std::int64_t now = engine_.received_bytes(f);
            ++(now > received_[f] ? sample.moving : sample.still);
            received_[f] = now;
        }
        for (LinkId l = 0; l < links_; ++l) {
            bool paused = false;
            for (int c = 0; c < classes_; ++c) paused = paused || engine_.paused(l, c);
            sample.paused_links += paused;
        }
        return sample;
    }

    // From the first link that is paused.
    std::vector<LinkId> pauser_chain() const {
        for (LinkId l = 0; l < links_; ++l) {
            for (int c = 0; c < classes_; ++c) {
                if (engine_.paused(l, c)) return PacketWaits(engine_).pauser_chain(l, c);
            }
        }
        return {};
    }

    // At the last look.
    bool foreground_ended() const { return foreground_ended_; }
    std::int64_t ended() const { return ended_; }

  private:
    const PacketEngine& engine_;
    const PacketWindow& window_;
    std::size_t links_;
    int classes_;
    std::vector<std::int64_t> received_;
    bool foreground_ended_ = false;
    std::int64_t ended_ = 0;
};

class QueueRecorder {
  public:
    QueueRecorder(const PacketEngine& engine, std::size_t links, std::size_t classes)
        : engine_(engine), classes_(static_cast<int>(classes)), last_(links) {}

    void look(std::vector<QueueSample>& out) {
        for (LinkId l = 0; l < last_.size(); ++l) {
            std::int64_t bytes = 0;
            for (int c = 0; c < classes_; ++c) bytes += engine_.queue_bytes(l, c);
            if (bytes != last_[l]) out.push_back({engine_.now(), l, bytes});
            last_[l] = bytes;
        }
    }

  private:
    const PacketEngine& engine_;
    int classes_;
    std::vector<std::int64_t> last_;
};

// When all flows stood still for the first time, behind pauses and long enough.
Picoseconds frozen_at(const std::vector<WindowSample>& timeline, Picoseconds first_fault) {
    constexpr Picoseconds long_enough = std::chrono::microseconds(100);
    const WindowSample* first = nullptr;
    for (const WindowSample& sample : timeline) {
        if (sample.moving > 0 || sample.still == 0 || sample.paused_links == 0 ||
            sample.at < first_fault) {
            first = nullptr;
            continue;
        }
        if (first == nullptr) first = &sample;
        if (sample.at - first->at >= long_enough) return first->at;
    }
    return PacketEngine::never;
}

std::vector<WindowLink> look_at_links(const PacketEngine& engine, std::size_t links,
                                      std::size_t classes) {
    std::vector<WindowLink> out;
    for (LinkId l = 0; l < links; ++l) {
        WindowLink link;
        link.link = l;
        link.overflows = engine.overflows(l);
        for (int c = 0; c < static_cast<int>(classes); ++c) {
            link.pauses += engine.pauses(l, c);
            link.paused = std::max(link.paused, engine.paused_time(l, c));
            link.queue_bytes_max = std::max(link.queue_bytes_max, engine.queue_bytes_max(l, c));
            link.stormed = link.stormed || engine.stormed(l, c);
        }
        if (link.pauses > 0 || link.queue_bytes_max > 0 || link.overflows > 0) out.push_back(link);
    }
    return out;
}

// "leaf-0 -> spine-1, spine-1 -> leaf-2, ...": each waits for the next.
std::string describe_waits(const Topology& topology, const std::vector<LinkId>& links) {
    std::string text;
    for (const LinkId l : links) {
        if (!text.empty()) text += ", ";
        text += topology.name(topology.links()[l].from) + " -> " +
                topology.name(topology.links()[l].to);
    }
    return text;
}

std::vector<CableOutage> outages_of(const PacketWindow& window) {
    std::vector<CableOutage> outages;
    for (const WindowFault& f : window.faults) {
        if (f.kind == WindowFault::Kind::link_down) outages.push_back({f.link, f.start, f.end});
    }
    return outages;
}

// Asks the catalogue only if a cable goes down.
FailoverTimes failover_times(Catalogue& catalogue, const PacketProfile& profile,
                             const PacketWindow& window) {
    if (outages_of(window).empty()) return {};
    return read_failover_times(catalogue, profile.flow_control == FlowControl::credits);
}

void begin_fault(PacketEngine& engine, const WindowFault& fault, const PacketSpec& spec) {
    switch (fault.kind) {
        case WindowFault::Kind::pause:
            for (std::size_t c = 0; c < spec.classes.size(); ++c) {
                if (spec.classes[c].lossless()) {
                    engine.storm(fault.link, static_cast<int>(c), fault.start, fault.end);
                }
            }
            return;
        case WindowFault::Kind::slow_receiver:
            return engine.slow_receiver(fault.link, fault.rate, fault.start, fault.end);
        case WindowFault::Kind::link_down:
            return engine.flap(fault.link, fault.start, fault.end);
        case WindowFault::Kind::bit_errors:
            return;  // a property of the link
    }
}

// An endpoint in the switch, as fast as all its ports together, where nothing waits.
void add_aggregation_nodes(PacketNetwork& network, const Topology& topology,
                           const PacketProfile& profile, const std::vector<VertexId>& switches) {
    for (const VertexId v : switches) {
        std::int64_t bits_per_s = 0;
        for (const LinkId l : topology.up_links(v))
            bits_per_s += topology.line_rate(l).bits_per_second();
        for (const LinkId l : topology.down_links(v))
            bits_per_s += topology.line_rate(l).bits_per_second();
        const VertexId node = network.add_nic();
        const LinkId out = network.add_cable(node, v, Bandwidth::bits_per_second(bits_per_s), {});
        // Room of its own for what it sends, apart from the ports'.
        const std::int64_t room = profile.vl_buffer.count() * topology.ports_used(v);
        network.links[out].vl_buffer_bytes = room;
        network.links[reverse_link(out)].vl_buffer_bytes = room;
        network.buffer_bytes[v] += room * static_cast<std::int64_t>(profile.spec.classes.size());
    }
}

std::string node_name(const Topology& topology, const PacketWindow& window, std::size_t node) {
    return topology.name(window.aggregating[node]) + ".sharp";
}

// The errors that a cable has all the time.
void set_bit_errors(PacketNetwork& network, const PacketWindow& window) {
    for (const WindowFault& fault : window.faults) {
        if (fault.kind != WindowFault::Kind::bit_errors) continue;
        for (const LinkId l : {fault.link, reverse_link(fault.link)}) {
            network.links[l].bit_error_rate = fault.bit_error_rate;
        }
    }
}

// Adds the flows and the faults; when the first fault begins.
Picoseconds fill(PacketEngine& engine, const Topology& topology, const PacketSpec& spec,
                 const PacketWindow& window) {
    const bool chooses = std::ranges::any_of(
        window.flows, [](const auto& f) { return f.routing != PacketRouting::path; });
    if (chooses) engine.choose_from(NextHops(topology, spec.seed));
    engine.expect(window.flows.size());
    for (const PacketFlow& flow : window.flows) engine.add(flow);
    Picoseconds first_fault = PacketEngine::never;
    for (const WindowFault& fault : window.faults) {
        begin_fault(engine, fault, spec);
        if (fault.kind == WindowFault::Kind::bit_errors) continue;  // all the time
        first_fault = std::min(first_fault, fault.start);
    }
    return first_fault;
}

void note(const PacketEngine& engine, const Topology& topology, const Watcher& watcher,
          const WindowSample& sample, WindowResult& result) {
    result.timeline.push_back(sample);
    result.still_max = std::max(result.still_max, sample.still);
    if (sample.paused_links > result.paused_most) {
        result.paused_most = sample.paused_links;
        result.paused_most_at = sample.at;
        result.pauser_chain = describe_waits(topology, watcher.pauser_chain());
    }
    if (result.deadlock.empty() && sample.still > 0 && sample.paused_links > 0) {
        result.deadlock = describe_waits(topology, PacketWaits(engine).deadlock());
        result.deadlock_seen = engine.now();
    }
}

void note_flows(const PacketEngine& engine, const PacketWindow& window, WindowResult& result) {
    for (std::size_t f = 0; f < window.flows.size(); ++f) {
        result.ends.push_back(engine.end(f));
        result.failed.push_back(engine.failed(f));
        result.failures += engine.failed(f);
        result.received_bytes.push_back(engine.received_bytes(f));
    }
    result.begun = begins_of(window.flows, result.ends);
}

// Why a window that has not resolved ends now.
std::optional<WindowEnding> why_over(PacketEngine& engine, const LinkFailover& failover,
                                     const PacketWindow& window, const WindowObserver& observer) {
    if (engine.stuck() && failover.next() == PacketEngine::never) return WindowEnding::stuck;
    if (observer.cancelled == nullptr) heed_cancel();
    if (observer.cancelled != nullptr && *observer.cancelled) return WindowEnding::cancelled;
    if (engine.totals().events >= window.events_max) return WindowEnding::out_of_events;
    if (engine.now() >= window.time_max) return WindowEnding::out_of_time;
    return std::nullopt;
}

}  // namespace

std::vector<Picoseconds> begins_of(const std::vector<PacketFlow>& flows,
                                   const std::vector<Picoseconds>& ends) {
    std::vector<Picoseconds> out;
    std::map<std::int64_t, Picoseconds> joint_ends;
    for (std::size_t f = 0; f < flows.size(); ++f) {
        const PacketFlow& flow = flows[f];
        Picoseconds waited = flow.start;
        if (flow.after >= 0) waited = ends[flow.after];
        if (flow.after_joint >= 0) waited = joint_ends.at(flow.after_joint);
        if (flow.joins >= 0) {
            Picoseconds& last = joint_ends[flow.joins];
            last = std::max(last, ends[f]);
        }
        out.push_back(std::max(flow.start, waited));
    }
    return out;
}

std::string source_name(const Topology& topology, const PacketWindow& window,
                        const PacketFlow& flow) {
    const LinkId first = flow.path.front();
    if (const auto node = aggregation_node_of(topology, first)) {
        return node_name(topology, window, *node);
    }
    return topology.name(topology.links()[first].from);
}

std::string target_name(const Topology& topology, const PacketWindow& window,
                        const PacketFlow& flow) {
    const LinkId last = flow.path.back();
    if (const auto node = aggregation_node_of(topology, last)) {
        return node_name(topology, window, *node);
    }
    return topology.name(topology.links()[last].to);
}

std::uint64_t window_key(Catalogue& catalogue, const Topology& topology,
                         const PacketProfile& profile, const PacketWindow& window) {
    Fingerprint key;
    const PacketNetwork network = packet_network(catalogue, topology, profile);
    for (const std::int64_t bytes : network.buffer_bytes) key.add(bytes);
    for (const PacketLink& l : network.links) {
        key.add_all(l.from, l.to, l.rate.bits_per_second(), l.latency, l.ecn.kmin_bytes,
                    l.ecn.kmax_bytes, l.ecn.pmax, l.headroom_bytes, l.pausing, l.vl_buffer_bytes);
    }
    const PacketSpec& s = profile.spec;
    key.add_all(
        s.payload_bytes, s.header_bytes, s.ack_bytes, s.ack_every, s.ack_class, s.cut_through,
        s.buffer.alpha, s.buffer.reserve_bytes, s.buffer.resume_offset_bytes,
        s.buffer.headroom_oversubscription, s.lossy_queue_bytes, s.pause_quanta,
        s.pause_frame_bytes, s.pause_reaction, s.cnp_interval, s.cnp_delay,
        static_cast<int>(s.recovery), s.recovery_window, s.reordering, s.retransmission_timeout,
        s.retries, s.watchdog.poll, s.watchdog.detection, s.watchdog.restoration,
        static_cast<int>(s.watchdog.action), s.watchdog.polls_together, s.watchdog.drops_arrivals,
        s.flowlet_gap, s.trimming.enabled, s.trimming.bytes, s.ack_bytes_due, s.entropy.values,
        s.timeout_growth, s.request_gap, s.order_loss.enabled, s.order_loss.windows,
        s.order_loss.packets_least, s.order_loss.window_max_bytes, s.order_loss.round_trip,
        s.order_loss.target, s.order_loss.probe_busy, s.order_loss.probe_again, s.late_round_trip,
        s.queue_step_bytes, s.credits.block_bytes, s.credits.lifetime, s.credits.leaf_lifetime,
        s.credits.stall_count, s.credits.leaf_stall_count, s.receive_buffer.bytes,
        s.receive_buffer.xoff_bytes, s.receive_buffer.xon_bytes, s.seed);
    for (const PacketClass& c : s.classes) {
        key.add_all(static_cast<int>(c.flow_control), c.ecn, c.weight);
    }
    key.add(s.entropy.choice);
    make_congestion(catalogue, topology, profile)->identify(key);
    for (const PacketFlow& f : window.flows) {
        for (const LinkId l : f.path) key.add(l);
        for (const LinkId l : f.ports) key.add(l);
        key.add_all(f.bytes, f.start, f.after, f.after_joint, f.joins, f.continues, f.traffic_class,
                    f.queue_pair, static_cast<int>(f.routing));
    }
    for (const VertexId v : window.aggregating) key.add(v);
    for (const WindowFault& f : window.faults) {
        key.add_all(static_cast<int>(f.kind), f.link, f.start, f.end, f.rate.bits_per_second(),
                    f.bit_error_rate);
    }
    const FailoverTimes failover = failover_times(catalogue, profile, window);
    key.add_all(failover.local, failover.everywhere, static_cast<int>(window.routing.policy),
                window.routing.queue_pairs, window.routing.hash_seed,
                window.routing.hash_polarized);
    key.add_all(window.until_failure, static_cast<std::uint64_t>(window.background_from),
                window.time_max, window.events_max);
    return key.value();
}

WindowResult run_window(Catalogue& catalogue, const Topology& topology,
                        const PacketProfile& profile, const PacketWindow& window,
                        const WindowObserver& observer, WindowRecord* record) {
    PacketNetwork network = packet_network(catalogue, topology, profile);
    add_aggregation_nodes(network, topology, profile, window.aggregating);
    set_bit_errors(network, window);
    PacketEngine engine(network, profile.spec, make_congestion(catalogue, topology, profile));
    const Picoseconds first_fault = fill(engine, topology, profile.spec, window);

    LinkFailover failover(topology, window.routing, failover_times(catalogue, profile, window),
                          outages_of(window), window.flows, profile.spec.seed);

    WindowResult result;
    const std::size_t links =
        topology.links().size();  // an aggregation node's are inside its switch
    const std::size_t classes = profile.spec.classes.size();
    const SampleTimes times(first_fault == PacketEngine::never ? Picoseconds{} : first_fault);
    Watcher watcher(engine, window, links, classes);
    const auto flows = static_cast<std::int64_t>(window.flows.size());
    QueueRecorder queues(engine, links, classes);
    if (record != nullptr) engine.log_pauses(record->pauses);
    for (;;) {
        const Picoseconds until =
            std::min({times.after(engine.now()), window.time_max, failover.next()});
        const std::uint64_t left = window.events_max - engine.totals().events;
        const bool done = engine.run(until, left);
        if (!done && engine.now() == failover.next()) failover.act(engine);
        const WindowSample sample = watcher.look(result);
        note(engine, topology, watcher, sample, result);
        if (record != nullptr) queues.look(record->queues);
        if (done || watcher.foreground_ended() ||
            (window.until_failure && result.first_failure != PacketEngine::never))
            break;
        if (observer.progress) observer.progress(watcher.ended(), flows);
        if (const auto ending = why_over(engine, failover, window, observer)) {
            result.ending = *ending;
            break;
        }
    }
    if (observer.progress) observer.progress(flows, flows);
    if (record != nullptr) {
        std::erase_if(record->pauses, [&](const PauseEdge& e) {
            return aggregation_node_of(topology, e.link).has_value();
        });
    }
    result.end = engine.now();
    const Picoseconds frozen = frozen_at(result.timeline, first_fault);
    if (frozen != PacketEngine::never) result.frozen_after = frozen - first_fault;
    note_flows(engine, window, result);
    result.links = look_at_links(engine, links, classes);
    result.deadlock_left = !result.deadlock.empty() && !PacketWaits(engine).deadlock().empty();
    // Those that were in it have failed, and it is still there.
    if (result.deadlock_left && result.ending == WindowEnding::resolved) {
        result.ending = WindowEnding::stuck;
    }
    result.totals = engine.totals();
    result.digest = engine.digest();
    return result;
}

}  // namespace railyard
