#include "models/fabric/packet_senders.h"

#include <algorithm>

#include "sim/check.h"

namespace railyard {

PacketSenders::PacketSenders(PacketRun& run, PacketLinks& links, PacketFlows& flows,
                             Congestion& congestion)
    : run_(run),
      links_(links),
      flows_(flows),
      congestion_(congestion),
      timers_can_wait_(congestion.timers_can_wait()),
      follows_marks_alone_(congestion.follows_marks_alone()),
      round_trips_wanted_(congestion.wants_round_trips() || run.spec.order_loss.enabled),
      unordered_(run, links, *this, congestion) {
    RY_CHECK(run_.spec.payload_bytes > 0 && run_.spec.ack_every > 0);
    RY_CHECK(run_.full_packet() <= UINT16_MAX);
    // Its header goes where acknowledgements go, which must be packets.
    RY_CHECK(!run_.spec.trimming.enabled || (run_.unordered() && run_.spec.ack_class >= 0));
    RY_CHECK(!run_.unordered() || !congestion_.wants_telemetry());
    run_.packets.keep({.times = round_trips_wanted_,
                       .notes = run_.selective(),
                       .telemetry = congestion_.wants_telemetry(),
                       .wanted = congestion_.tells_receivers(),
                       .reports = run_.unordered()});
}

void PacketSenders::expect(std::size_t queue_pairs) {
    pairs_.reserve(queue_pairs);
    rarely_.reserve(queue_pairs);
}

// ---- queue pairs and their flows ----

std::uint32_t PacketSenders::add(const PacketFlow& given) {
    const auto flow = static_cast<std::uint32_t>(pairs_.size());
    QueuePair& f = pairs_.emplace_back();
    f.traffic_class = static_cast<std::uint8_t>(given.traffic_class);
    f.routing = given.routing;
    Rarely& rarely = rarely_.emplace_back();
    set_path(flow, given.path);
    if (f.routing != PacketRouting::path) {
        RY_CHECK(!congestion_.wants_telemetry());
        links_.ways.expect(flow, f.routing, f.hops);
    }
    if (given.ports.size() > 1) {  // a bit for each in QueuePair::queued
        RY_CHECK(given.routing != PacketRouting::path && given.ports.size() <= planes_max);
        rarely.first_port = static_cast<std::uint32_t>(flow_ports_.size());
        rarely.ports = static_cast<std::uint32_t>(given.ports.size());
        flow_ports_.insert(flow_ports_.end(), given.ports.begin(), given.ports.end());
    }
    RY_CHECK(run_.unordered() || f.routing != PacketRouting::entropy);
    if (run_.selective()) {
        selective_.emplace_back(run_.spec.recovery_window, run_.spec.reordering);
    } else if (run_.unordered()) {
        unordered_.add(f.routing);
    }
    return flow;
}

bool PacketSenders::fits(std::uint32_t flow, const PacketFlow& given) const {
    const QueuePair& f = pairs_[flow];
    return run_.packets.link_at(f.first) == given.path.front() &&
           f.traffic_class == given.traffic_class && f.routing == given.routing;
}

void PacketSenders::set_path(std::uint32_t flow, const std::vector<LinkId>& path) {
    const PacketPorts& ports = links_.ports;
    RY_CHECK(ports.port(path.front()).at_nic && !ports.to_switch(path.back()));
    pairs_[flow].first = run_.packets.add_path(path);
    pairs_[flow].hops = static_cast<std::uint8_t>(path.size());
    std::int64_t& ack_latency = rarely_[flow].ack_latency;
    ack_latency = 0;
    for (const LinkId l : path) {
        const LinkPort& back = ports.port(reverse_link(l));
        ack_latency += back.latency + transfer_ps(run_.spec.ack_bytes, back.ps_per_byte);
    }
}

void PacketSenders::reroute(std::uint32_t flow, const std::vector<LinkId>& path) {
    RY_CHECK(path.front() == run_.packets.link_at(pairs_[flow].first));
    set_path(flow, path);
    congestion_.rerouted(flow);
}

VertexId PacketSenders::target_of(const QueuePair& f) const {
    return links_.ports.link(run_.packets.link_at(f.first + f.hops - 1U)).to;
}

void PacketSenders::start(std::uint32_t index) {
    const std::uint32_t flow = flows_[index].queue_pair;
    QueuePair& f = pairs_[flow];
    if (f.phase == Phase::failed) return flows_.fail(index);
    Rarely& rarely = rarely_[flow];
    const bool alone = f.oldest == PacketRun::none;
    const FlowRecord& r =
        flows_.start(index, alone ? PacketRun::none : rarely.newest, f.packets, rarely.bytes);
    rarely.bytes += r.bytes;
    f.packets = r.ends();
    f.last_begins = r.first;
    f.last_payload = static_cast<std::uint16_t>(r.bytes - (r.packets - std::int64_t{1}) *
                                                              run_.spec.payload_bytes);
    if (alone) {
        f.oldest = index;
        f.oldest_ends = f.packets;
    }
    rarely.newest = index;
    const double rate_before = f.pace.bits_per_s;
    if (f.phase == Phase::waiting) {
        const Bandwidth line = links_.ports.link(run_.packets.link_at(f.first)).rate;
        // With what one acknowledgement covers, which a slow link spreads.
        const std::int64_t covered =
            run_.unordered() ? run_.spec.ack_bytes_due : run_.spec.ack_every * run_.full_packet();
        std::uint64_t slowest = 0;
        std::int64_t round_trip = rarely.ack_latency;
        for (std::uint32_t hop = 0; hop < f.hops; ++hop) {
            const LinkPort& port = links_.ports.port(run_.packets.link_at(f.first + hop));
            round_trip += port.latency + transfer_ps(run_.full_packet(), port.ps_per_byte);
            slowest = std::max(slowest, port.ps_per_byte);
        }
        const LinkPort& first = links_.ports.port(run_.packets.link_at(f.first));
        round_trip += transfer_ps(covered, slowest - first.ps_per_byte);
        congestion_.start(flow,
                          {real(line.bits_per_second()) * rarely.ports, run_.spec.payload_bytes,
                           run_.full_packet(), target_of(f), Picoseconds(round_trip)},
                          f.pace);
    } else if (f.phase == Phase::ended) {
        congestion_.resumed(flow, Picoseconds(rarely.idle_since), run_.time(), f.pace);
    }
    f.phase = Phase::moving;
    follow_pace(flow, rate_before);
    offer(flow);
}

// Those of a queue pair whose last packet is acknowledged.
void PacketSenders::end_flows(std::uint32_t flow) {
    QueuePair& f = pairs_[flow];
    if (f.acknowledged == f.packets) {
        f.phase = Phase::ended;
        rarely_[flow].idle_since = run_.now;
        congestion_.ended(flow, f.pace);
        wake_other(f.pace);
    }
    while (f.acknowledged >= f.oldest_ends) {
        flows_.end(f.oldest);
        f.oldest = flows_[f.oldest].next;
        f.oldest_ends = f.oldest == PacketRun::none ? PacketRun::none : flows_[f.oldest].ends();
    }
}

// With all that waits for its flows; what would start on it later fails then.
void PacketSenders::fail(std::uint32_t flow) {
    QueuePair& f = pairs_[flow];
    congestion_.ended(flow, f.pace);
    wake_other(f.pace);
    f.phase = Phase::failed;
    for (std::uint32_t i = f.oldest; i != PacketRun::none; i = flows_[i].next) flows_.fail(i);
}

// ---- turns ----

// Then it waits for an acknowledgement, which must not wait for more packets: the last one sent has asked for
// it. If a window has shrunk, one more does.
bool PacketSenders::must_wait(std::uint32_t flow) const {
    const QueuePair& f = pairs_[flow];
    if (!window_is_full(flow)) return false;
    if (run_.unordered()) return true;
    return run_.spec.ack_every == 1 || f.asked || f.to_send == f.acknowledged;
}

bool PacketSenders::window_is_full(std::uint32_t flow) const {
    const QueuePair& f = pairs_[flow];
    if (run_.unordered()) {
        const bool fresh = f.to_send == f.sent;
        if (fresh && f.sent - f.acknowledged >= run_.spec.recovery_window) return true;
        if (follows_marks_alone_) return false;
        const std::int64_t packet = run_.full_packet();
        return unordered_.sender(flow).under_way_bytes() > f.pace.window_bytes - packet;
    }
    if (run_.selective() && f.to_send - f.acknowledged >= run_.spec.recovery_window) return true;
    if (follows_marks_alone_ || f.pace.window_bytes == INT64_MAX) return false;
    const std::uint32_t under_way =
        run_.selective() ? selective_[flow].under_way(f.sent) : f.to_send - f.acknowledged;
    return under_way * run_.spec.payload_bytes >= f.pace.window_bytes;
}

bool PacketSenders::is_held_up(std::uint32_t flow) const {
    const QueuePair& f = pairs_[flow];
    const auto stands = [&](LinkId link) {
        return links_.faults.is_down(link) ||
               (links_.ports.port(link).stopped() >> f.traffic_class & 1) != 0;
    };
    if (!has_ports(flow)) return stands(run_.packets.link_at(f.first));
    const auto first = flow_ports_.begin() + rarely_[flow].first_port;
    const VertexId target = target_of(f);
    return std::all_of(first, first + rarely_[flow].ports, [&](LinkId link) {
        return stands(link) || !links_.ways.leads(link, target);
    });
}

void PacketSenders::offer(std::uint32_t flow) {
    QueuePair& f = pairs_[flow];
    if (has_ports(flow)) return offer_to_ports(flow);
    if (f.queued != 0 || f.phase != Phase::moving || f.to_send == f.packets || must_wait(flow)) {
        return;
    }
    const LinkId link = run_.packets.link_at(f.first);
    if (f.ready_at > std::max(run_.now, links_.ports.port(link).busy_until)) {
        return await_pace(flow);
    }
    f.queued = 1;
    links_.take_turn(link, f.traffic_class, flow);
}

// Likewise into the turns of all ports that lead to its target: a packet goes by the one that is free first,
// and of several that are free by the next in turn. Else a flow that its window holds back would send by one
// alone.
void PacketSenders::offer_to_ports(std::uint32_t flow) {
    QueuePair& f = pairs_[flow];
    const Rarely& rarely = rarely_[flow];
    const VertexId target = target_of(f);
    const std::uint32_t begin = flow + f.to_send;
    for (std::uint32_t i = 0; i < rarely.ports; ++i) {
        const std::uint32_t p = (begin + i) % rarely.ports;
        // A packet that has left by one port may be the last that the window or the pace allows.
        if (f.phase != Phase::moving || f.to_send == f.packets || must_wait(flow)) return;
        if (f.ready_at > run_.now) return await_pace(flow);
        const LinkId link = flow_ports_[rarely.first_port + p];
        const auto bit = static_cast<std::uint8_t>(1U << p);
        if ((f.queued & bit) != 0 || !links_.ways.leads(link, target)) continue;
        f.queued |= bit;
        links_.take_turn(link, f.traffic_class, flow);
    }
}

void PacketSenders::wake(std::uint32_t flow) {
    if (pairs_[flow].wake_at != run_.now) return;  // overtaken by another
    pairs_[flow].wake_at = PacketRun::unset;
    offer(flow);
}

void PacketSenders::await_pace(std::uint32_t flow) {
    QueuePair& f = pairs_[flow];
    if (f.wake_at <= f.ready_at) return;  // it will be looked at again then
    f.wake_at = f.ready_at;
    run_.schedule(f.wake_at, PacketEvent::flow_ready, flow);
}

// What says in QueuePair::queued that it has its turn there.
std::uint8_t PacketSenders::port_bit(std::uint32_t flow, LinkId link) const {
    if (!has_ports(flow)) return 1;
    const auto first = flow_ports_.begin() + rarely_[flow].first_port;
    return static_cast<std::uint8_t>(
        1U << (std::find(first, first + rarely_[flow].ports, link) - first));
}

bool PacketSenders::send_in_turn(LinkId link, std::size_t traffic_class) {
    const Turns& turns = links_.ports.turns(links_.ports.slot(link, traffic_class));
    bool sent = false;
    while (!sent && !turns.empty()) {
        const std::uint32_t flow = links_.ports.pop_turn(link, traffic_class);
        QueuePair& f = pairs_[flow];
        f.queued &= static_cast<std::uint8_t>(~port_bit(flow, link));
        // Its pace or window may have shrunk while it waited.
        if (f.phase == Phase::moving && f.to_send < f.packets && f.ready_at <= run_.now &&
            !must_wait(flow)) {
            send_data(link, flow);
            sent = true;
        }
        offer(flow);
    }
    if (!turns.empty()) {
        fetch_line(&pairs_[turns.first()]);
        fetch_line(&pairs_[turns.first()].pace);
    }
    return sent;
}

std::pair<std::int64_t, bool> PacketSenders::payload_of(const QueuePair& f,
                                                        std::uint32_t number) const {
    if (number >= f.last_begins) {
        const bool last = number + 1 == f.packets;
        return {last ? f.last_payload : run_.spec.payload_bytes, last};
    }
    std::uint32_t flow = f.oldest;
    while (number >= flows_[flow].ends()) flow = flows_[flow].next;
    const FlowRecord& r = flows_[flow];
    const bool last = number + 1 == r.ends();
    const std::int64_t before = (r.packets - std::int64_t{1}) * run_.spec.payload_bytes;
    return {last ? r.bytes - before : run_.spec.payload_bytes, last};
}

std::uint32_t PacketSenders::new_packet(LinkId link, const Packet& packet) {
    const std::uint32_t id = run_.packets.take();
    run_.packets[id] = packet;
    if (round_trips_wanted_) run_.packets.sent_at(id) = run_.now;
    const QueuePair& f = pairs_[packet.flow];
    if (f.routing != PacketRouting::path) links_.ways.begin(id, f.hops, link, f.routing);
    if (f.routing == PacketRouting::entropy) {
        run_.packets.note(id) = unordered_.next_entropy(packet.flow);
    }
    return id;
}

void PacketSenders::send_data(LinkId link, std::uint32_t flow) {
    QueuePair& f = pairs_[flow];
    const auto [payload, last] = payload_of(f, f.to_send);
    const std::uint32_t id =
        new_packet(link, {f.first, flow, f.to_send,
                          static_cast<std::uint16_t>(payload + run_.spec.header_bytes),
                          f.traffic_class, last ? flag_asks : std::uint8_t{0}});
    if (run_.unordered()) {
        unordered_.send(id);
        f.ready_at = run_.now + transfer_ps(run_.packets[id].bytes, f.ps_per_byte);
        return links_.transmit(link, id);
    }
    if (f.sent == f.acknowledged) restart_timeout(flow);
    await_timeout(flow);
    if (run_.selective() && f.to_send < f.sent) {
        selective_[flow].send_again(f.to_send);
        ++run_.totals.retransmitted;
        aim(flow);
    } else {
        ++f.to_send;
        f.sent = std::max(f.sent, f.to_send);
    }
    if (run_.spec.ack_every > 1) {
        f.asked = last || window_is_full(flow);
        if (f.asked) run_.packets[id].flags |= flag_asks;
    }
    catch_up(flow);
    f.ready_at = run_.now + transfer_ps(run_.packets[id].bytes, f.ps_per_byte);
    links_.transmit(link, id);
}

// What it makes of an acknowledgement of so many packets more.
void PacketSenders::tell_congestion(std::uint32_t id, std::uint32_t fresh, bool lost) {
    const Packet& packet = run_.packets[id];
    const std::uint32_t flow = packet.flow;
    QueuePair& f = pairs_[flow];
    Acknowledgement ack;
    ack.now = run_.time();
    ack.congestion = (packet.flags & flag_marked) != 0;
    ack.next = packet.number;
    ack.to_send = run_.selective() ? f.sent : f.to_send;
    ack.bytes = fresh * run_.spec.payload_bytes;
    if (run_.packets.telemetry_hops() > 0 &&
        packet.place - f.first <= 2U * f.hops) {  // else it has been rerouted
        ack.hops = {run_.packets.telemetry(id), static_cast<std::size_t>(f.hops) - 1};
    }
    if (round_trips_wanted_) ack.round_trip = Picoseconds(run_.now - run_.packets.sent_at(id));
    catch_up(flow);
    const double rate_before = f.pace.bits_per_s;
    congestion_.acknowledged(flow, ack, f.pace);
    if (lost) congestion_.lost(flow, {run_.time(), f.acknowledged, f.sent}, f.pace);
    follow_pace(flow, rate_before);
}

void PacketSenders::hear(std::uint32_t id) {
    if (run_.unordered()) return unordered_.hear(id);
    const Packet packet = run_.packets[id];
    const std::uint32_t flow = packet.flow;
    QueuePair& f = pairs_[flow];
    if (f.phase != Phase::moving) return run_.packets.free(id);
    const std::uint32_t fresh = packet.number > f.acknowledged ? packet.number - f.acknowledged : 0;
    if (fresh > 0) {
        f.acknowledged = packet.number;
        f.to_send = std::max(f.to_send, packet.number);
        f.retries = 0;
    }
    bool lost = false;
    if (run_.selective()) {
        lost = selective_[flow].acknowledged(packet.number, run_.packets.note(id), f.sent) > 0;
        aim(flow);
    } else if ((packet.flags & flag_nack) != 0 && packet.number == f.acknowledged) {
        lost = true;
        go_back(f, packet.number);
    }
    const bool marked = (packet.flags & flag_marked) != 0;
    if (marked || lost || !follows_marks_alone_) tell_congestion(id, fresh, lost);
    if (fresh > 0) {
        restart_timeout(flow);
        if (f.sent != f.acknowledged) await_timeout(flow);  // it may have come nearer
    }
    run_.packets.free(id);
    move_on(flow);
}

void PacketSenders::move_on(std::uint32_t flow) {
    if (pairs_[flow].acknowledged >= pairs_[flow].oldest_ends) end_flows(flow);
    offer(flow);
}

void PacketSenders::go_back(QueuePair& f, std::uint32_t number) {
    run_.totals.retransmitted += f.to_send - number;
    f.to_send = number;
}

void PacketSenders::aim(std::uint32_t flow) {
    QueuePair& f = pairs_[flow];
    const auto first_of = [&](const auto& sender) {
        return sender.has_lost() ? sender.first_lost() : f.sent;
    };
    f.to_send = run_.unordered() ? first_of(unordered_.sender(flow)) : first_of(selective_[flow]);
}

// The gap that runs was measured at the pace of its packet; a new pace holds from the next one on.
void PacketSenders::follow_pace(std::uint32_t flow, double rate_before) {
    QueuePair& f = pairs_[flow];
    if (f.pace.bits_per_s != rate_before) {
        f.ps_per_byte = static_cast<std::uint64_t>(8e12 / f.pace.bits_per_s * (1 << 20));
    }
    if (!timers_can_wait_ && f.pace.wake.count() < f.timer_at) {
        f.timer_at = f.pace.wake.count();
        run_.schedule(f.timer_at, PacketEvent::flow_timer, flow);
    }
    wake_other(f.pace);
}

void PacketSenders::wake_other(Pace& pace) {
    if (pace.wake_other == PacketRun::none) return;
    const std::uint32_t other = std::exchange(pace.wake_other, PacketRun::none);
    pairs_[other].pace.wake = run_.time();
    pairs_[other].timer_at = run_.now;
    run_.schedule(run_.now, PacketEvent::flow_timer, other);
}

void PacketSenders::tick(std::uint32_t flow) {
    QueuePair& f = pairs_[flow];
    if (f.timer_at != run_.now) return;  // overtaken by another
    f.timer_at = PacketRun::unset;
    if (f.phase != Phase::moving) return;
    const double rate_before = f.pace.bits_per_s;
    const std::int64_t window_before = f.pace.window_bytes;
    if (f.pace.wake.count() <= run_.now) congestion_.timer(flow, run_.time(), f.pace);
    follow_pace(flow, rate_before);
    if (f.pace.window_bytes != window_before) offer(flow);
}

// Those timers that have become due, each at its own time. A flow that stands still costs nothing.
void PacketSenders::catch_up(std::uint32_t flow) {
    Pace& pace = pairs_[flow].pace;
    if (!timers_can_wait_ || pace.wake.count() > run_.now) return;
    const double rate_before = pace.bits_per_s;
    while (pace.wake.count() <= run_.now) congestion_.timer(flow, pace.wake, pace);
    follow_pace(flow, rate_before);
}

void PacketSenders::restart_timeout(std::uint32_t flow) {
    const std::int64_t own = follows_marks_alone_ ? 0 : pairs_[flow].pace.timeout.count();
    const std::int64_t timeout = own > 0 ? own : run_.spec.retransmission_timeout.count();
    pairs_[flow].timeout_at = timeout > 0 ? run_.now + timeout : PacketRun::unset;
}

// One event for each flow: it finds out whether its deadline has moved.
void PacketSenders::await_timeout(std::uint32_t flow) {
    QueuePair& f = pairs_[flow];
    if (f.timeout_at == PacketRun::unset || f.timeout_at >= f.timeout_event) return;
    f.timeout_event = f.timeout_at;
    run_.schedule(f.timeout_at, PacketEvent::flow_timeout, flow);
}

void PacketSenders::time_out(std::uint32_t flow) {
    QueuePair& f = pairs_[flow];
    if (f.timeout_event != run_.now) return;  // overtaken by another
    f.timeout_event = PacketRun::unset;
    if (f.phase != Phase::moving || f.sent == f.acknowledged) return;
    if (f.timeout_at <= run_.now) {
        if (run_.unordered()) return unordered_.time_out_oldest(flow);
        ++run_.totals.timeouts;
        if (f.retries == run_.spec.retries) return fail(flow);
        ++f.retries;
        if (run_.selective()) {
            selective_[flow].time_out(f.sent);
            aim(flow);
        } else {
            go_back(f, f.acknowledged);
        }
        congestion_.timed_out(flow, {run_.time(), f.acknowledged, f.sent}, f.pace);
        restart_timeout(flow);
    }
    await_timeout(flow);
    offer(flow);
}

}  // namespace railyard
