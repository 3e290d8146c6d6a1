// PacketEngine: flows at their two ends, pacing, acknowledgements and recovery.

#include <algorithm>
#include <utility>

#include "models/fabric/packet_engine.h"
#include "sim/check.h"

namespace railyard {

void PacketEngine::expect(std::size_t flows) {
    record_.reserve(flows);
    flows_.reserve(flows);
    rarely_.reserve(flows);
}

std::size_t PacketEngine::add(const PacketFlow& given) {
    RY_CHECK(!given.path.empty() && given.bytes > 0 && given.start.count() >= now_);
    const auto index = static_cast<std::uint32_t>(record_.size());
    Record r;
    r.start = given.start;
    r.bytes = given.bytes;
    const std::int64_t packets = (given.bytes + spec_.payload_bytes - 1) / spec_.payload_bytes;
    RY_CHECK(packets < none);  // they are counted in 32 bits
    r.packets = static_cast<std::uint32_t>(packets);
    if (given.continues < 0) {
        r.queue_pair = add_queue_pair(given);
    } else {
        r.queue_pair = record_[static_cast<std::size_t>(given.continues)].queue_pair;
        const Flow& f = flows_[r.queue_pair];
        RY_CHECK(paths_[f.first] == given.path.front() && f.traffic_class == given.traffic_class &&
                 f.routing == given.routing);
    }
    if (given.joins >= 0) {
        r.joins = static_cast<std::uint32_t>(given.joins);
        if (joints_.size() <= r.joins) joints_.resize(r.joins + 1);
        RY_CHECK(joints_[r.joins].first_follower == none);
        ++joints_[r.joins].missing;
    }
    record_.push_back(r);
    ++unfinished_;
    if (given.after < 0 && given.after_joint < 0) {
        schedule(given.start.count(), What::flow_start, index);
    } else {
        RY_CHECK(given.after < 0 || given.after_joint < 0);
        std::uint32_t& first =
            given.after >= 0 ? record_[static_cast<std::size_t>(given.after)].first_follower
                             : joints_[static_cast<std::size_t>(given.after_joint)].first_follower;
        record_[index].next_follower = std::exchange(first, index);
    }
    return index;
}

std::uint32_t PacketEngine::add_queue_pair(const PacketFlow& given) {
    const auto flow = static_cast<std::uint32_t>(flows_.size());
    Flow& f = flows_.emplace_back();
    f.traffic_class = static_cast<std::uint8_t>(given.traffic_class);
    f.routing = given.routing;
    rarely_.emplace_back();
    set_path(flow, given.path);
    if (f.routing != PacketRouting::path) {
        RY_CHECK(!next_hops_.empty() && !telemetry_wanted_ && f.hops <= ChoosingPacket::hops_max);
        rarely_[flow].first_flowlet = static_cast<std::uint32_t>(flowlets_.size());
        if (f.routing == PacketRouting::flowlet)
            flowlets_.resize(flowlets_.size() + ChoosingPacket::hops_max);
    }
    if (given.ports.size() > 1) add_ports(flow, given);
    RY_CHECK(unordered() || f.routing != PacketRouting::entropy);
    if (selective()) {
        senders_.emplace_back(spec_.recovery_window, spec_.reordering);
        receivers_.emplace_back(spec_.recovery_window);
    } else if (unordered()) {
        unordered_senders_.emplace_back(spec_.recovery_window, spec_.order_loss.enabled);
        if (spec_.order_loss.enabled) {
            recovering_.push_back({0, 0, unset, spec_.order_loss.round_trip.count()});
        }
        unordered_receivers_.emplace_back(spec_.recovery_window);
        if (f.routing == PacketRouting::entropy) entropy_->start(flow);
    }
    return flow;
}

// A bit for each in Flow::queued.
void PacketEngine::add_ports(std::uint32_t flow, const PacketFlow& given) {
    RY_CHECK(given.routing != PacketRouting::path && given.ports.size() <= planes_max);
    rarely_[flow].first_port = static_cast<std::uint32_t>(flow_ports_.size());
    rarely_[flow].ports = static_cast<std::uint32_t>(given.ports.size());
    flow_ports_.insert(flow_ports_.end(), given.ports.begin(), given.ports.end());
}

void PacketEngine::set_path(std::uint32_t flow, const std::vector<LinkId>& path) {
    RY_CHECK(ports_[path.front()].at_nic && to_nic_[path.back()] != 0);
    Flow& f = flows_[flow];
    f.first = static_cast<std::uint32_t>(paths_.size());
    f.hops = static_cast<std::uint8_t>(path.size());
    std::int64_t& ack_latency = rarely_[flow].ack_latency;
    ack_latency = 0;
    for (const LinkId l : path) {
        paths_.push_back(l);
        const Port& back = ports_[reverse_link(l)];
        ack_latency += back.latency + transfer_ps(spec_.ack_bytes, back.ps_per_byte);
    }
    for (std::size_t i = path.size(); i-- > 0;) paths_.push_back(reverse_link(path[i]));
    paths_.push_back(path.front());  // so that one place beyond the last is still inside
    if (path.size() > telemetry_hops_ + 1) widen_telemetry(path.size() - 1);
}

void PacketEngine::widen_telemetry(std::size_t hops) {
    std::vector<HopTelemetry> wider(telemetry_wanted_ ? packets_.size() * hops : 0);
    for (std::size_t i = 0; i < telemetry_.size(); ++i) {
        wider[i / telemetry_hops_ * hops + i % telemetry_hops_] = telemetry_[i];
    }
    telemetry_ = std::move(wider);
    telemetry_hops_ = hops;
}

void PacketEngine::reroute(std::size_t flow, const std::vector<LinkId>& path) {
    const std::uint32_t queue_pair = record_[flow].queue_pair;
    RY_CHECK(path.front() == paths_[flows_[queue_pair].first]);
    set_path(queue_pair, path);
    congestion_->rerouted(queue_pair);
}

void PacketEngine::start_flow(std::uint32_t index) {
    Record& r = record_[index];
    Flow& f = flows_[r.queue_pair];
    if (f.phase == Phase::failed) return fail_flow(index);
    Rarely& rarely = rarely_[r.queue_pair];
    r.first = f.packets;
    r.first_byte = rarely.bytes;
    rarely.bytes += r.bytes;
    RY_CHECK(f.packets + r.packets > f.packets);  // in 32 bits as well
    f.packets += r.packets;
    f.last_begins = r.first;
    f.last_payload =
        static_cast<std::uint16_t>(r.bytes - (r.packets - std::int64_t{1}) * spec_.payload_bytes);
    if (f.oldest == none) {
        f.oldest = index;
        f.oldest_ends = f.packets;
    } else {
        record_[rarely.newest].next = index;
    }
    rarely.newest = index;
    const double rate_before = f.pace.bits_per_s;
    if (f.phase == Phase::waiting) {
        congestion_->start(
            r.queue_pair,
            {static_cast<double>(links_[paths_[f.first]].rate.bits_per_second()) * rarely.ports,
             spec_.payload_bytes, spec_.payload_bytes + spec_.header_bytes,
             links_[paths_[f.first + f.hops - 1U]].to},
            f.pace);
    } else if (f.phase == Phase::ended) {
        congestion_->resumed(r.queue_pair, Picoseconds(rarely.idle_since), Picoseconds(now_),
                             f.pace);
    }
    f.phase = Phase::moving;
    follow_pace(r.queue_pair, rate_before);
    offer(r.queue_pair);
}

// The one that a packet belongs to which is not acknowledged.
const PacketEngine::Record& PacketEngine::flow_of(const Flow& f, std::uint32_t number) const {
    const Record* r = &record_[f.oldest];
    while (number >= r->first + r->packets) r = &record_[r->next];
    return *r;
}

// Those of a queue pair whose last packet is acknowledged.
void PacketEngine::end_flows(std::uint32_t flow) {
    Flow& f = flows_[flow];
    if (f.acknowledged == f.packets) {
        f.phase = Phase::ended;
        rarely_[flow].idle_since = now_;
        congestion_->ended(flow, f.pace);
        wake_other(f.pace);
    }
    while (f.acknowledged >= f.oldest_ends) {
        Record& r = record_[f.oldest];
        r.end = Picoseconds(now_);
        --unfinished_;
        f.oldest = r.next;
        f.oldest_ends =
            f.oldest == none ? none : record_[f.oldest].first + record_[f.oldest].packets;
        start_all(r.first_follower);
        if (r.joins != none && --joints_[r.joins].missing == 0) {
            start_all(joints_[r.joins].first_follower);
        }
    }
}

// Those that waited for one end.
void PacketEngine::start_all(std::uint32_t first_follower) {
    for (std::uint32_t next = first_follower; next != none; next = record_[next].next_follower) {
        schedule(std::max(now_, record_[next].start.count()), What::flow_start, next);
    }
}

// With all that waits for its flows; what would start on it later fails then.
void PacketEngine::fail_queue_pair(std::uint32_t flow) {
    Flow& f = flows_[flow];
    congestion_->ended(flow, f.pace);
    wake_other(f.pace);
    f.phase = Phase::failed;
    for (std::uint32_t index = f.oldest; index != none; index = record_[index].next) {
        fail_flow(index);
    }
}

void PacketEngine::fail_flow(std::uint32_t index) {
    std::vector<std::uint32_t> failing = {index};
    while (!failing.empty()) {
        Record& r = record_[failing.back()];
        failing.pop_back();
        r.failed_at = Picoseconds(now_);
        --unfinished_;
        std::uint32_t joint_follower = none;
        if (r.joins != none) {  // the first that fails takes all that waits with it
            joint_follower = std::exchange(joints_[r.joins].first_follower, none);
        }
        for (const std::uint32_t first : {r.first_follower, joint_follower}) {
            for (std::uint32_t next = first; next != none; next = record_[next].next_follower) {
                failing.push_back(next);
            }
        }
    }
}

std::int64_t PacketEngine::received_bytes(std::size_t flow) const {
    const Record& r = record_[flow];
    return std::clamp<std::int64_t>(flows_[r.queue_pair].received_bytes - r.first_byte, 0,
                                    r.first == none ? 0 : r.bytes);
}

// ---- the sender ----

// Then it waits for an acknowledgement, which must not wait for more packets: the last one sent has asked for
// it. If a window has shrunk, one more does.
bool PacketEngine::must_wait(std::uint32_t flow) const {
    const Flow& f = flows_[flow];
    if (!window_is_full(flow)) return false;
    if (unordered()) return true;
    return spec_.ack_every == 1 || f.asked || f.to_send == f.acknowledged;
}

bool PacketEngine::window_is_full(std::uint32_t flow) const {
    const Flow& f = flows_[flow];
    if (unordered()) {
        const bool fresh = f.to_send == f.sent;
        if (fresh && f.sent - f.acknowledged >= spec_.recovery_window) return true;
        if (follows_marks_alone_) return false;
        const std::int64_t packet = spec_.payload_bytes + spec_.header_bytes;
        return unordered_senders_[flow].under_way_bytes() > f.pace.window_bytes - packet;
    }
    if (selective() && f.to_send - f.acknowledged >= spec_.recovery_window) return true;
    if (follows_marks_alone_ || f.pace.window_bytes == INT64_MAX) return false;
    const std::uint32_t under_way =
        selective() ? senders_[flow].under_way(f.sent) : f.to_send - f.acknowledged;
    return under_way * spec_.payload_bytes >= f.pace.window_bytes;
}

// What is touched to send a packet of it.
inline void PacketEngine::fetch_sender(std::uint32_t flow) const {
    fetch_line(&flows_[flow]);
    fetch_line(&flows_[flow].pace);
}

// Puts the flow into its NIC's turn if it may send by the time the NIC can, else sets its alarm.
void PacketEngine::offer(std::uint32_t flow) {
    const Flow& f = flows_[flow];
    if (!flow_ports_.empty() && rarely_[flow].ports > 1) return offer_to_ports(flow);
    if (f.queued != 0 || f.phase != Phase::moving || f.to_send == f.packets || must_wait(flow)) {
        return;
    }
    const LinkId link = paths_[f.first];
    if (f.ready_at > std::max(now_, ports_[link].busy_until)) return await_pace(flow);
    take_turn(flow, link, 1);
}

// Likewise into the turns of all ports that lead to its target: a packet goes by the one that is free first,
// and of several that are free by the next in turn. Else a flow that its window holds back would send by one
// alone.
void PacketEngine::offer_to_ports(std::uint32_t flow) {
    const Flow& f = flows_[flow];
    const Rarely& rarely = rarely_[flow];
    const VertexId target = links_[paths_[f.first + f.hops - 1U]].to;
    const std::uint32_t begin = flow + f.to_send;
    for (std::uint32_t i = 0; i < rarely.ports; ++i) {
        const std::uint32_t p = (begin + i) % rarely.ports;
        // A packet that has left by one port may be the last that the window or the pace allows.
        if (f.phase != Phase::moving || f.to_send == f.packets || must_wait(flow)) return;
        if (f.ready_at > now_) return await_pace(flow);
        const LinkId link = flow_ports_[rarely.first_port + p];
        const auto bit = static_cast<std::uint8_t>(1U << p);
        if ((f.queued & bit) == 0 && next_hops_.leads(link, target)) take_turn(flow, link, bit);
    }
}

void PacketEngine::await_pace(std::uint32_t flow) {
    Flow& f = flows_[flow];
    if (f.wake_at <= f.ready_at) return;  // it will be looked at again then
    f.wake_at = f.ready_at;
    schedule(f.wake_at, What::flow_ready, flow);
}

void PacketEngine::take_turn(std::uint32_t flow, LinkId link, std::uint8_t bit) {
    Flow& f = flows_[flow];
    Port& port = ports_[link];
    f.queued |= bit;
    turns_[slot(link, f.traffic_class)].push(flow);
    port.waiting |= static_cast<std::uint8_t>(1U << f.traffic_class);
    if (!port.pending) kick(link);
}

// What says in Flow::queued that it has its turn there.
std::uint8_t PacketEngine::port_bit(std::uint32_t flow, LinkId link) const {
    if (flow_ports_.empty() || rarely_[flow].ports == 1) return 1;
    const auto first = flow_ports_.begin() + rarely_[flow].first_port;
    return static_cast<std::uint8_t>(
        1U << (std::find(first, first + rarely_[flow].ports, link) - first));
}

// One packet of the flow whose turn it is; false when none may send.
bool PacketEngine::send_in_turn(LinkId link, std::size_t traffic_class) {
    const std::size_t s = link * class_count_ + traffic_class;
    Turns& turns = turns_[s];
    bool sent = false;
    while (!sent && !turns.empty()) {
        const std::uint32_t flow = turns.first();
        turns.pop();
        Flow& f = flows_[flow];
        f.queued &= static_cast<std::uint8_t>(~port_bit(flow, link));
        if (turns.empty() && queues_[s].head == none) {
            ports_[link].waiting &= static_cast<std::uint8_t>(~(1U << traffic_class));
        }
        // Its pace or window may have shrunk while it waited.
        if (f.phase == Phase::moving && f.to_send < f.packets && f.ready_at <= now_ &&
            !must_wait(flow)) {
            send_data(link, flow);
            sent = true;
        }
        offer(flow);
    }
    if (!turns.empty()) fetch_sender(turns.first());
    return sent;
}

// The payload of a packet that is not acknowledged, and whether it is the last of its flow.
std::pair<std::int64_t, bool> PacketEngine::payload_of(const Flow& f, std::uint32_t number) const {
    if (number >= f.last_begins) {
        const bool last = number + 1 == f.packets;
        return {last ? f.last_payload : spec_.payload_bytes, last};
    }
    const Record& r = flow_of(f, number);
    const bool last = number + 1 == r.first + r.packets;
    const std::int64_t before = (r.packets - std::int64_t{1}) * spec_.payload_bytes;
    return {last ? r.bytes - before : spec_.payload_bytes, last};
}

// A packet of its flow that leaves now by `link`.
std::uint32_t PacketEngine::new_packet(LinkId link, const Packet& packet) {
    const std::uint32_t id = take_packet();
    packets_[id] = packet;
    if (round_trips_wanted_) packets_.sent_at(id) = now_;
    const PacketRouting routing = flows_[packet.flow].routing;
    if (routing != PacketRouting::path) start_way(id, link);
    if (routing == PacketRouting::entropy) packets_.note(id) = entropy_->next(packet.flow, now());
    return id;
}

void PacketEngine::send_data(LinkId link, std::uint32_t flow) {
    Flow& f = flows_[flow];
    const auto [payload, last] = payload_of(f, f.to_send);
    const std::uint32_t id = new_packet(
        link, {f.first, flow, f.to_send, static_cast<std::uint16_t>(payload + spec_.header_bytes),
               f.traffic_class, last ? flag_asks : std::uint8_t{0}});
    if (unordered()) {
        send_unordered(id);
        f.ready_at = now_ + transfer_ps(packets_[id].bytes, f.ps_per_byte);
        return transmit(link, id);
    }
    if (f.sent == f.acknowledged) restart_timeout(flow);
    await_timeout(flow);
    count_sent(flow);
    if (spec_.ack_every > 1) {
        f.asked = last || window_is_full(flow);
        if (f.asked) packets_[id].flags |= flag_asks;
    }
    catch_up(flow);
    f.ready_at = now_ + transfer_ps(packets_[id].bytes, f.ps_per_byte);
    transmit(link, id);
}

void PacketEngine::count_sent(std::uint32_t flow) {
    Flow& f = flows_[flow];
    if (selective() && f.to_send < f.sent) {
        senders_[flow].send_again(f.to_send);
        ++totals_.retransmitted;
        return aim(flow);
    }
    ++f.to_send;
    f.sent = std::max(f.sent, f.to_send);
}

// What it makes of an acknowledgement of so many packets more.
void PacketEngine::tell_congestion(std::uint32_t id, std::uint32_t fresh, bool lost) {
    const Packet& packet = packets_[id];
    const std::uint32_t flow = packet.flow;
    Flow& f = flows_[flow];
    Acknowledgement ack;
    ack.now = Picoseconds(now_);
    ack.congestion = (packet.flags & flag_marked) != 0;
    ack.next = packet.number;
    ack.to_send = selective() ? f.sent : f.to_send;
    ack.bytes = fresh * spec_.payload_bytes;
    if (telemetry_wanted_ && packet.place - f.first <= 2U * f.hops) {  // else it has been rerouted
        ack.hops = {&telemetry_[id * telemetry_hops_], static_cast<std::size_t>(f.hops) - 1};
    }
    if (round_trips_wanted_) ack.round_trip = Picoseconds(now_ - packets_.sent_at(id));
    catch_up(flow);
    const double rate_before = f.pace.bits_per_s;
    congestion_->acknowledged(flow, ack, f.pace);
    if (lost) congestion_->lost(flow, {Picoseconds(now_), f.acknowledged, f.sent}, f.pace);
    follow_pace(flow, rate_before);
}

void PacketEngine::receive_ack(std::uint32_t id) {
    if (unordered()) return receive_report(id);
    const Packet packet = packets_[id];
    const std::uint32_t flow = packet.flow;
    Flow& f = flows_[flow];
    if (f.phase != Phase::moving) return free_packet(id);
    const std::uint32_t fresh = packet.number > f.acknowledged ? packet.number - f.acknowledged : 0;
    if (fresh > 0) {
        f.acknowledged = packet.number;
        f.to_send = std::max(f.to_send, packet.number);
        f.retries = 0;
    }
    bool lost = false;
    if (selective()) {
        lost = senders_[flow].acknowledged(packet.number, packets_.note(id), f.sent) > 0;
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
    free_packet(id);
    if (f.acknowledged >= f.oldest_ends) end_flows(flow);
    offer(flow);
}

void PacketEngine::go_back(Flow& f, std::uint32_t number) {
    totals_.retransmitted += f.to_send - number;
    f.to_send = number;
}

// What was lost comes first, then what was never sent.
void PacketEngine::aim(std::uint32_t flow) {
    Flow& f = flows_[flow];
    const auto first_of = [&](const auto& sender) {
        return sender.has_lost() ? sender.first_lost() : f.sent;
    };
    f.to_send = unordered() ? first_of(unordered_senders_[flow]) : first_of(senders_[flow]);
}

// The gap that runs was measured at the pace of its packet; a new pace holds from the next one on.
void PacketEngine::follow_pace(std::uint32_t flow, double rate_before) {
    Flow& f = flows_[flow];
    if (f.pace.bits_per_s != rate_before) {
        f.ps_per_byte = static_cast<std::uint64_t>(8e12 / f.pace.bits_per_s * (1 << 20));
    }
    if (!timers_can_wait_ && f.pace.wake.count() < f.timer_at) {
        f.timer_at = f.pace.wake.count();
        schedule(f.timer_at, What::flow_timer, flow);
    }
    wake_other(f.pace);
}

void PacketEngine::wake_other(Pace& pace) {
    if (pace.wake_other == none) return;
    const std::uint32_t other = std::exchange(pace.wake_other, none);
    flows_[other].pace.wake = Picoseconds(now_);
    flows_[other].timer_at = now_;
    schedule(now_, What::flow_timer, other);
}

void PacketEngine::on_timer(std::uint32_t flow) {
    Flow& f = flows_[flow];
    if (f.timer_at != now_) return;  // overtaken by another
    f.timer_at = unset;
    if (f.phase != Phase::moving) return;
    const double rate_before = f.pace.bits_per_s;
    const std::int64_t window_before = f.pace.window_bytes;
    if (f.pace.wake.count() <= now_) congestion_->timer(flow, Picoseconds(now_), f.pace);
    follow_pace(flow, rate_before);
    if (f.pace.window_bytes != window_before) offer(flow);
}

// Those timers that have become due, each at its own time. A flow that stands still costs nothing.
void PacketEngine::catch_up(std::uint32_t flow) {
    Pace& pace = flows_[flow].pace;
    if (!timers_can_wait_ || pace.wake.count() > now_) return;
    const double rate_before = pace.bits_per_s;
    while (pace.wake.count() <= now_) congestion_->timer(flow, pace.wake, pace);
    follow_pace(flow, rate_before);
}

void PacketEngine::restart_timeout(std::uint32_t flow) {
    const std::int64_t own = follows_marks_alone_ ? 0 : flows_[flow].pace.timeout.count();
    const std::int64_t timeout = own > 0 ? own : spec_.retransmission_timeout.count();
    flows_[flow].timeout_at = timeout > 0 ? now_ + timeout : unset;
}

// One event for each flow: it finds out whether its deadline has moved.
void PacketEngine::await_timeout(std::uint32_t flow) {
    Flow& f = flows_[flow];
    if (f.timeout_at == unset || f.timeout_at >= f.timeout_event) return;
    f.timeout_event = f.timeout_at;
    schedule(f.timeout_at, What::flow_timeout, flow);
}

void PacketEngine::on_timeout(std::uint32_t flow) {
    Flow& f = flows_[flow];
    if (f.timeout_event != now_) return;  // overtaken by another
    f.timeout_event = unset;
    if (f.phase != Phase::moving || f.sent == f.acknowledged) return;
    if (f.timeout_at <= now_) {
        if (unordered()) return time_out_oldest(flow);
        ++totals_.timeouts;
        if (f.retries == spec_.retries) return fail_queue_pair(flow);
        ++f.retries;
        if (selective()) {
            senders_[flow].time_out(f.sent);
            aim(flow);
        } else {
            go_back(f, f.acknowledged);
        }
        congestion_->timed_out(flow, {Picoseconds(now_), f.acknowledged, f.sent}, f.pace);
        restart_timeout(flow);
    }
    await_timeout(flow);
    offer(flow);
}

// ---- the receiver ----

void PacketEngine::receive_data(std::uint32_t id) {
    const Packet packet = packets_[id];
    Flow& f = flows_[packet.flow];
    std::uint8_t flags = 0;
    if ((packet.flags & flag_marked) != 0 && now_ >= f.cnp_at) {
        f.cnp_at = now_ + spec_.cnp_interval.count();
        if (spec_.cnp_delay.count() == 0) {
            flags |= flag_marked;
        } else {
            prepare_cnp(id);
        }
    }
    if (selective()) return receive_in_any_order(id, flags);
    if (packet.number > f.expected) {
        if (f.nacked && flags == 0) return free_packet(id);
        if (!f.nacked) flags |= flag_nack;
        f.nacked = true;
        return acknowledge(id, flags);
    }
    if (packet.number == f.expected) {
        ++f.expected;
        ++f.unacknowledged;
        f.nacked = false;
        f.received_bytes += packet.bytes - spec_.header_bytes;
        const bool asks = (packet.flags & flag_asks) != 0;
        if (flags == 0 && !asks && f.unacknowledged < spec_.ack_every) return free_packet(id);
    }
    acknowledge(id, flags);
}

// A CNP of its own, once the NIC has got round to it. It goes back the packet's way.
void PacketEngine::prepare_cnp(std::uint32_t id) {
    const std::uint32_t cnp = take_packet();
    packets_[cnp] = packets_[id];
    if (flows_[packets_[id].flow].routing != PacketRouting::path) {
        packets_.choosing(cnp).way = packets_.choosing(id).way;
    }
    if (round_trips_wanted_) packets_.sent_at(cnp) = packets_.sent_at(id);
    for (std::size_t hop = 0; hop < telemetry_hops_ && telemetry_wanted_; ++hop) {
        telemetry_[cnp * telemetry_hops_ + hop] = telemetry_[id * telemetry_hops_ + hop];
    }
    ++on_links_;
    schedule(now_ + spec_.cnp_delay.count(), What::cnp, cnp);
}

void PacketEngine::send_cnp(std::uint32_t id) {
    --on_links_;
    const std::uint32_t unacknowledged = flows_[packets_[id].flow].unacknowledged;
    acknowledge(id, flag_marked);
    flows_[packets_[id].flow].unacknowledged = unacknowledged;
}

// A packet out of its turn is acknowledged at once, and so is one that closes a gap.
void PacketEngine::receive_in_any_order(std::uint32_t id, std::uint8_t flags) {
    const Packet& packet = packets_[id];
    Flow& f = flows_[packet.flow];
    if (receivers_[packet.flow].take(packet.number, f.expected)) {
        ++f.unacknowledged;
        f.received_bytes += packet.bytes - spec_.header_bytes;
        const bool asks = (packet.flags & flag_asks) != 0;
        if (flags == 0 && f.expected == packet.number + 1 && !asks &&
            f.unacknowledged < spec_.ack_every) {
            return free_packet(id);
        }
    }
    acknowledge(id, flags);
}

// The packet is turned round: what the switches wrote into it goes back to the sender.
void PacketEngine::acknowledge(std::uint32_t id, std::uint8_t flags) {
    Packet& packet = packets_[id];
    Flow& f = flows_[packet.flow];
    f.unacknowledged = 0;
    if (selective()) packets_.note(id) = packet.number;
    std::uint32_t number = f.expected;
    if (unordered()) {
        number = take_report();
        DeliveryReport& report = reports_[number];
        report.answers_request = (packet.flags & flag_request) != 0;
        report.answers_probe = report.answers_request && (packet.flags & flag_trimmed) == 0;
        // Ultra Ethernet's senders ask for news; what SRD's acknowledgements say is not public.
        const bool begins = spec_.request_gap.count() > 0 &&
                            ((flags & flag_marked) != 0 || (packet.flags & flag_asks) != 0);
        unordered_receivers_[packet.flow].report(packet.number, f.expected, begins, report);
    }
    if (f.routing != PacketRouting::path) turn_way(id);
    packet.number = number;
    packet.bytes = static_cast<std::uint16_t>(spec_.ack_bytes);
    packet.flags = flag_ack | flags;
    if (spec_.ack_class < 0) {
        packet.place = f.first + 2U * f.hops;
        ++on_links_;
        return schedule(now_ + rarely_[packet.flow].ack_latency, What::arrival, id);
    }
    packet.traffic_class = static_cast<std::uint8_t>(spec_.ack_class);
    const LinkId link = next_link(packet);
    if (!send_at_once(link, id)) enqueue(link, id);
}

}  // namespace railyard
