// PacketEngine: trimming, and flows whose packets may come in any order (Ultra Ethernet).

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/fabric/packet_engine.h"

namespace railyard {

namespace {

std::int64_t round_trips(std::int64_t one, double count) {
    return std::llround(static_cast<double>(one) * count);
}

}  // namespace

// ---- switches ----

// A packet finds no room in the queue of `out` or in its switch's buffer.
void PacketEngine::trim_one(LinkId in, LinkId out, std::uint32_t id) {
    constexpr double of_last = 0.5;
    if (!trimming_.chance(of_last) || !put_in_place_of_last(in, out, id)) return trim(out, id);
    trim(out, id);  // what was the last
}

// The last packet of a queue and this one change places. False: there is none, or no room for this one.
bool PacketEngine::put_in_place_of_last(LinkId in, LinkId out, std::uint32_t id) {
    const std::size_t c = packets_[id].traffic_class;
    Queue& queue = queues_[out * class_count_ + c];
    if (queue.head == none) return false;
    SwitchBuffer& buffer = buffers_[ports_[out].from];
    if (!buffer.admit(ingress_[in * class_count_ + c], packets_[id].bytes)) return false;
    const std::uint32_t last = queue.tail;
    queue.bytes += packets_[id].bytes - packets_[last].bytes;
    const LinkId its_in = last_link(packets_[last]);
    buffer.release(ingress_[its_in * class_count_ + c], packets_[last].bytes);
    packets_.swap(id, last);
    if (!wanted_.empty()) std::swap(wanted_[id], wanted_[last]);
    return true;
}

// The header goes on among the acknowledgements, whose class goes first.
void PacketEngine::trim(LinkId out, std::uint32_t id) {
    Packet& packet = packets_[id];
    ++totals_.trimmed;
    packet.flags = static_cast<std::uint8_t>((packet.flags | flag_trimmed) & ~flag_last_hop);
    if (to_nic_[out] != 0) {
        ++totals_.trimmed_last_hop;
        packet.flags |= flag_last_hop;
    }
    packet.bytes = static_cast<std::uint16_t>(spec_.trimming.bytes);
    packet.traffic_class = static_cast<std::uint8_t>(spec_.ack_class);
    if (send_at_once(out, id)) return;
    const std::size_t s = slot(out, packet.traffic_class);
    const LinkId in = last_link(packet);
    if (queues_[s].bytes + packet.bytes > spec_.lossy_queue_bytes ||
        !buffers_[ports_[out].from].admit(ingress_[slot(in, packet.traffic_class)], packet.bytes)) {
        return lose(id, totals_.lost_lossy);
    }
    enqueue(out, id);
}

// ---- the sender ----

// A packet of `flow`, the first time or again, is about to leave. An acknowledgement is asked for when
// no other packet will follow soon.
void PacketEngine::send_unordered(std::uint32_t id) {
    Packet& packet = packets_[id];
    const std::uint32_t flow = packet.flow;
    Flow& f = flows_[flow];
    UnorderedSender& sender = unordered_senders_[flow];
    const bool again = f.to_send < f.sent;
    const bool alone = f.sent == f.acknowledged;
    const auto entropy =
        static_cast<std::uint16_t>(f.routing == PacketRouting::entropy ? packets_.note(id) : 0);
    sender.send(f.to_send, entropy, packet.bytes, now_, again);
    if (again) {
        ++totals_.retransmitted;
    } else {
        f.sent = f.to_send + 1;
    }
    tell_receiver(id);
    aim(flow);
    if (again || f.to_send == f.packets || window_is_full(flow)) packet.flags |= flag_asks;
    if (f.timeout_at == unset) await_oldest(flow);
    if (spec_.order_loss.enabled && alone) await_probe(flow);
}

// Asks for news: what has timed out must wait for the window or for credit, and nothing may be under way that
// would bring news of either.
void PacketEngine::request(std::uint32_t flow) {
    Rarely& rarely = rarely_[flow];
    if (spec_.request_gap.count() == 0 || now_ - rarely.requested_at < spec_.request_gap.count()) {
        return;
    }
    rarely.requested_at = now_;
    send_header(flow, false);
}

// A header by itself, which the receiver answers: among the acknowledgements, or where the data wait.
void PacketEngine::send_header(std::uint32_t flow, bool with_data) {
    const Flow& f = flows_[flow];
    const LinkId link = paths_[f.first];
    const std::uint32_t id = new_packet(
        link, {f.first, flow, f.to_send, static_cast<std::uint16_t>(spec_.ack_bytes),
               with_data ? f.traffic_class : static_cast<std::uint8_t>(spec_.ack_class),
               static_cast<std::uint8_t>(with_data ? flag_request : flag_trimmed | flag_request)});
    tell_receiver(id);
    if (!send_at_once(link, id)) enqueue(link, id);
}

void PacketEngine::tell_receiver(std::uint32_t id) {
    if (wanted_.empty()) return;
    const std::uint32_t flow = packets_[id].flow;
    wanted_[id] = congestion_->wanted(flow, unordered_senders_[flow].sent_bytes(), backlog_of(flow),
                                      turns_of(flow));
}

// Bytes on the wire that are to be sent, for the first time or again.
std::int64_t PacketEngine::backlog_of(std::uint32_t flow) const {
    const Flow& f = flows_[flow];
    return (std::int64_t{f.packets - f.sent} + unordered_senders_[flow].lost_count()) *
           (spec_.payload_bytes + spec_.header_bytes);
}

// How many flows of its NIC wait to send; this one, which does not wait now, counts too.
std::int64_t PacketEngine::turns_of(std::uint32_t flow) const {
    const Flow& f = flows_[flow];
    return 1 + static_cast<std::int64_t>(turns_[slot(paths_[f.first], f.traffic_class)].size());
}

// Acknowledgements and reports of trimmed packets. The latter make a packet lost.
void PacketEngine::receive_report(std::uint32_t id) {
    const Packet packet = packets_[id];
    const std::uint32_t flow = packet.flow;
    Flow& f = flows_[flow];
    if (f.phase != Phase::moving) return free_packet(id);
    const DeliveryReport& report = reports_[packet.number];
    f.acknowledged = std::max(f.acknowledged, report.next);
    UnorderedSender& sender = unordered_senders_[flow];
    Acknowledgement ack;
    ack.now = now();
    ack.congestion = (packet.flags & flag_marked) != 0;
    const auto bytes_of = [&](std::uint32_t number) {
        return payload_of(f, number).first + spec_.header_bytes;
    };
    ack.came_bytes = sender.heard(f.acknowledged, report, bytes_of);
    if (ack.came_bytes > 0) f.retries = 0;
    const bool trimmed = (packet.flags & flag_nack) != 0;
    if (trimmed && report.number >= f.acknowledged) {
        ack.trimmed = sender.lose(report.number, bytes_of(report.number));
        ack.last_hop = (packet.flags & flag_last_hop) != 0;
    }
    ack.sent_bytes = sender.sent_bytes();
    if (!wanted_.empty()) ack.wanted_bytes = wanted_[id];
    const Picoseconds round_trip(round_trips_wanted_ ? now_ - packets_.sent_at(id) : 0);
    if (!report.answers_request) {
        ack.round_trip = round_trip;
        if (f.routing == PacketRouting::entropy) tell_of_path(id, round_trip);
    }
    if (spec_.order_loss.enabled) lose_by_order(flow, report, round_trip);
    ack.under_way_bytes = sender.under_way_bytes();
    const double rate_before = f.pace.bits_per_s;
    if (!follows_marks_alone_) {
        congestion_->acknowledged(flow, ack, f.pace);
        follow_pace(flow, rate_before);
    }
    aim(flow);
    await_oldest(flow);
    free_packet(id);
    if (f.acknowledged >= f.oldest_ends) end_flows(flow);
    offer(flow);
}

// The last link says nothing of the path before it.
void PacketEngine::tell_of_path(std::uint32_t id, Picoseconds round_trip) {
    const Packet& packet = packets_[id];
    const bool late = spec_.late_round_trip.count() > 0 && round_trip > spec_.late_round_trip;
    PathNews news = late || (packet.flags & flag_marked) != 0 ? PathNews::marked : PathNews::good;
    const bool trimmed = (packet.flags & flag_nack) != 0;
    if (trimmed && (packet.flags & flag_last_hop) == 0) news = PathNews::trimmed;
    entropy_->heard(packet.flow, static_cast<std::uint16_t>(packets_.note(id)), news, now());
}

// Its timeout is that of the packet under way which was sent first. While nothing comes back, what is sent
// again has twice as long after each that has passed for the packet that the receiver waits for.
void PacketEngine::await_oldest(std::uint32_t flow) {
    Flow& f = flows_[flow];
    const UnorderedSender::Sent* oldest = unordered_senders_[flow].oldest();
    if (oldest == nullptr || spec_.retransmission_timeout.count() == 0) {
        f.timeout_at = unset;
        return;
    }
    std::int64_t timeout = spec_.retransmission_timeout.count();
    for (int i = 0; oldest->again && i < f.retries; ++i) timeout *= spec_.timeout_growth;
    f.timeout_at = oldest->at + timeout;
    await_timeout(flow);
}

void PacketEngine::time_out_oldest(std::uint32_t flow) {
    Flow& f = flows_[flow];
    UnorderedSender& sender = unordered_senders_[flow];
    const UnorderedSender::Sent* oldest = sender.oldest();
    if (oldest == nullptr) return;
    ++totals_.timeouts;
    const UnorderedSender::Sent sent = *oldest;
    if (sent.number == f.acknowledged) {
        if (f.retries == spec_.retries) return fail_queue_pair(flow);
        ++f.retries;
    }
    const std::int64_t bytes = payload_of(f, sent.number).first + spec_.header_bytes;
    sender.lose(sent.number, bytes);
    if (f.routing == PacketRouting::entropy) {
        entropy_->heard(flow, sent.entropy, PathNews::timed_out, now());
    }
    if (!follows_marks_alone_) {
        congestion_->timed_out(flow, {now(), f.acknowledged, f.sent, bytes}, f.pace);
    }
    aim(flow);
    await_oldest(flow);
    if (window_is_full(flow)) request(flow);
    offer(flow);
}

// See OrderLossSpec. `round_trip`: of the packet that `report` answers.
void PacketEngine::lose_by_order(std::uint32_t flow, const DeliveryReport& report,
                                 Picoseconds round_trip) {
    const OrderLossSpec& spec = spec_.order_loss;
    const Flow& f = flows_[flow];
    Recovering& recovering = recovering_[flow];
    if (!report.answers_request) {
        recovering.round_trip = std::min(recovering.round_trip, round_trip.count());
    }
    await_probe(flow);
    const std::int64_t packet = spec_.payload_bytes + spec_.header_bytes;
    const std::int64_t window = std::min(f.pace.window_bytes, spec.window_max_bytes);
    if (f.acknowledged >= recovering.ends) {
        const double many = std::min(spec.windows * static_cast<double>(window),
                                     static_cast<double>(spec.window_max_bytes));
        const auto least = std::max(spec.packets_least, static_cast<std::int64_t>(many) / packet);
        const bool prompt = report.answers_probe &&
                            round_trip.count() <= recovering.round_trip + spec.target.count();
        if (report.out_of_order < least && !prompt) return;
        recovering.ends = f.sent;
    }
    const auto end = static_cast<std::uint32_t>(
        std::min<std::int64_t>(recovering.ends, f.acknowledged + window / packet));
    for (std::uint32_t number = f.acknowledged; number < end; ++number) {
        unordered_senders_[flow].lose_by_order(number,
                                               payload_of(f, number).first + spec_.header_bytes);
    }
}

// There was news, or something to hear of. The event that is scheduled finds out whether it is due.
void PacketEngine::await_probe(std::uint32_t flow) {
    const OrderLossSpec& spec = spec_.order_loss;
    Recovering& recovering = recovering_[flow];
    recovering.probe_at =
        now_ + (backlog_of(flow) > 0 ? round_trips(recovering.round_trip, spec.probe_busy)
                                     : recovering.round_trip + spec.target.count());
    if (recovering.probe_event <= recovering.probe_at) return;
    recovering.probe_event = recovering.probe_at;
    schedule(recovering.probe_at, What::flow_probe, flow);
}

void PacketEngine::on_probe(std::uint32_t flow) {
    const Flow& f = flows_[flow];
    Recovering& recovering = recovering_[flow];
    if (now_ != recovering.probe_event) return;
    recovering.probe_event = unset;
    if (f.phase != Phase::moving || f.sent == f.acknowledged) return;
    if (now_ >= recovering.probe_at) {
        send_header(flow, true);
        recovering.probe_at =
            now_ + round_trips(recovering.round_trip, spec_.order_loss.probe_again);
    }
    recovering.probe_event = recovering.probe_at;
    schedule(recovering.probe_at, What::flow_probe, flow);
}

// ---- the receiver ----

std::uint32_t PacketEngine::take_report() {
    if (free_reports_.empty()) {
        reports_.emplace_back();
        return static_cast<std::uint32_t>(reports_.size() - 1);
    }
    const std::uint32_t number = free_reports_.back();
    free_reports_.pop_back();
    return number;
}

void PacketEngine::receive_unordered(std::uint32_t id) {
    const Packet& packet = packets_[id];
    Flow& f = flows_[packet.flow];
    UnorderedReceiver& receiver = unordered_receivers_[packet.flow];
    std::uint8_t flags = packet.flags & flag_marked;
    if ((packet.flags & flag_request) != 0) return acknowledge(id, flags);
    if ((packet.flags & flag_trimmed) != 0) {
        if (!receiver.has(packet.number, f.expected)) {
            flags |= flag_nack | static_cast<std::uint8_t>(packet.flags & flag_last_hop);
        }
        return acknowledge(id, flags);
    }
    const bool first = receiver.first();
    const bool fresh = receiver.take(packet.number, packet.bytes, f.expected);
    if (fresh) f.received_bytes += packet.bytes - spec_.header_bytes;
    const bool asks = (packet.flags & flag_asks) != 0;
    if (asks) receiver.ask();
    const bool owes = receiver.owes();
    if (fresh && !first && !asks && !owes && flags == 0 &&
        receiver.unreported_bytes() < spec_.ack_bytes_due) {
        return free_packet(id);
    }
    receiver.reported();
    acknowledge(id, flags);
}

}  // namespace railyard
