#include "models/fabric/packet_unordered.h"

#include <algorithm>
#include <cmath>

#include "models/fabric/packet_senders.h"

namespace railyard {

namespace {

std::int64_t round_trips(std::int64_t one, double count) {
    return std::llround(real(one) * count);
}

}  // namespace

UnorderedRecovery::UnorderedRecovery(PacketRun& run, PacketLinks& links, PacketSenders& pairs,
                                     Congestion& congestion)
    : run_(run), links_(links), pairs_(pairs), congestion_(congestion) {
    if (!run_.unordered()) return;
    run_.spec.entropy.seed = run_.spec.seed;
    entropy_ = make_entropy_choice(run_.spec.entropy);
}

void UnorderedRecovery::add(PacketRouting routing) {
    const OrderLossSpec& spec = run_.spec.order_loss;
    if (routing == PacketRouting::entropy) {
        entropy_->start(static_cast<std::uint32_t>(senders_.size()));
    }
    senders_.emplace_back(run_.spec.recovery_window, spec.enabled);
    requested_at_.push_back(INT64_MIN / 2);
    if (spec.enabled) recovering_.push_back({0, 0, PacketRun::unset, spec.round_trip.count()});
}

// An acknowledgement is asked for when no other packet will follow soon.
void UnorderedRecovery::send(std::uint32_t id) {
    Packet& packet = run_.packets[id];
    const std::uint32_t flow = packet.flow;
    QueuePair& f = pairs_.pair(flow);
    UnorderedSender& sender = senders_[flow];
    const bool again = f.to_send < f.sent;
    const bool alone = f.sent == f.acknowledged;
    const bool first_under_way = sender.oldest() == nullptr;
    const auto entropy =
        static_cast<std::uint16_t>(f.routing == PacketRouting::entropy ? run_.packets.note(id) : 0);
    sender.send(f.to_send, entropy, packet.bytes, run_.now, again);
    if (again) {
        ++run_.totals.retransmitted;
    } else {
        f.sent = f.to_send + 1;
    }
    tell_receiver(id);
    pairs_.aim(flow);
    if (again || f.to_send == f.packets || pairs_.window_is_full(flow)) packet.flags |= flag_asks;
    if (first_under_way) await_oldest(flow);
    if (run_.spec.order_loss.enabled && alone) await_probe(flow);
}

// Asks for news: what has timed out must wait for the window or for credit, and nothing may be under way that
// would bring news of either.
void UnorderedRecovery::request(std::uint32_t flow) {
    if (run_.spec.request_gap.count() == 0 ||
        run_.now - requested_at_[flow] < run_.spec.request_gap.count()) {
        return;
    }
    requested_at_[flow] = run_.now;
    send_header(flow, false);
}

// A header by itself, which the receiver answers: among the acknowledgements, or where the data wait.
void UnorderedRecovery::send_header(std::uint32_t flow, bool with_data) {
    const QueuePair& f = pairs_.pair(flow);
    const LinkId link = run_.packets.link_at(f.first);
    const std::uint32_t id = pairs_.new_packet(
        link, {f.first, flow, f.to_send, static_cast<std::uint16_t>(run_.spec.ack_bytes),
               with_data ? f.traffic_class : static_cast<std::uint8_t>(run_.spec.ack_class),
               static_cast<std::uint8_t>(with_data ? flag_request : flag_trimmed | flag_request)});
    tell_receiver(id);
    links_.send(link, id);
}

void UnorderedRecovery::tell_receiver(std::uint32_t id) {
    if (!run_.packets.tells_receivers()) return;
    const std::uint32_t flow = run_.packets[id].flow;
    run_.packets.wanted(id) =
        congestion_.wanted(flow, senders_[flow].sent_bytes(), backlog_of(flow), turns_of(flow));
}

// Bytes on the wire that are to be sent, for the first time or again.
std::int64_t UnorderedRecovery::backlog_of(std::uint32_t flow) const {
    const QueuePair& f = pairs_.pair(flow);
    return (std::int64_t{f.packets - f.sent} + senders_[flow].lost_count()) * run_.full_packet();
}

// How many flows of its NIC wait to send; this one, which does not wait now, counts too.
std::int64_t UnorderedRecovery::turns_of(std::uint32_t flow) const {
    const QueuePair& f = pairs_.pair(flow);
    const std::size_t s = links_.ports.slot(run_.packets.link_at(f.first), f.traffic_class);
    return 1 + static_cast<std::int64_t>(links_.ports.turns(s).size());
}

void UnorderedRecovery::hear(std::uint32_t id) {
    const Packet packet = run_.packets[id];
    const std::uint32_t flow = packet.flow;
    QueuePair& f = pairs_.pair(flow);
    if (f.phase != QueuePair::Phase::moving) return run_.packets.free(id);
    const DeliveryReport& report = run_.packets.report(packet.number);
    f.acknowledged = std::max(f.acknowledged, report.next);
    UnorderedSender& sender = senders_[flow];
    Acknowledgement ack;
    ack.now = run_.time();
    ack.congestion = (packet.flags & flag_marked) != 0;
    const auto bytes_of = [&](std::uint32_t number) {
        return pairs_.payload_of(f, number).first + run_.spec.header_bytes;
    };
    ack.came_bytes = sender.heard(f.acknowledged, report, bytes_of);
    if (ack.came_bytes > 0 || waits_for_news(flow)) f.retries = 0;
    const bool receipt = (packet.flags & flag_receipt) != 0;
    const bool trimmed = (packet.flags & flag_nack) != 0;
    if (trimmed && report.number >= f.acknowledged) {
        ack.trimmed = sender.lose(report.number, bytes_of(report.number));
        ack.last_hop = (packet.flags & flag_last_hop) != 0;
    }
    ack.sent_bytes = sender.sent_bytes();
    if (run_.packets.tells_receivers()) ack.wanted_bytes = run_.packets.wanted(id);
    const Picoseconds round_trip(run_.packets.keeps_times() ? run_.now - run_.packets.sent_at(id)
                                                            : 0);
    if (!report.answers_request && !receipt) {
        ack.round_trip = round_trip;
        if (f.routing == PacketRouting::entropy) tell_of_path(id, round_trip);
    }
    if (run_.spec.order_loss.enabled && !receipt) lose_by_order(flow, report, round_trip);
    ack.under_way_bytes = sender.under_way_bytes();
    const double rate_before = f.pace.bits_per_s;
    if (!pairs_.follows_marks_alone() && !receipt) {
        congestion_.acknowledged(flow, ack, f.pace);
        // Receivers that give credit do so as their hosts drain.
        if (report.penalty > 0 && !congestion_.tells_receivers()) {
            std::int64_t& window = f.pace.window_bytes;
            window -= window / SlowReceivers::whole_penalty * report.penalty;
            window = std::max(window, run_.full_packet());
        }
        pairs_.follow_pace(flow, rate_before);
    }
    pairs_.aim(flow);
    await_oldest(flow);
    run_.packets.free(id);
    pairs_.move_on(flow);
}

// The last link says nothing of the path before it.
void UnorderedRecovery::tell_of_path(std::uint32_t id, Picoseconds round_trip) {
    const Packet& packet = run_.packets[id];
    const bool late =
        run_.spec.late_round_trip.count() > 0 && round_trip > run_.spec.late_round_trip;
    PathNews news = late || (packet.flags & flag_marked) != 0 ? PathNews::marked : PathNews::good;
    const bool trimmed = (packet.flags & flag_nack) != 0;
    if (trimmed && (packet.flags & flag_last_hop) == 0) news = PathNews::trimmed;
    entropy_->heard(packet.flow, static_cast<std::uint16_t>(run_.packets.note(id)), news,
                    run_.time());
}

// Nothing is under way, and nothing can go. What was sent is in the receiver's NIC, as its receipts say, and
// not all of it with the host; or was lost, and has to wait for the window, which what is there may fill, or
// for credit. The receiver may owe no news: its host takes little before it tells of it.
bool UnorderedRecovery::waits_for_news(std::uint32_t flow) {
    UnorderedSender& sender = senders_[flow];
    if (sender.oldest() != nullptr) return false;
    if (sender.has_lost()) return pairs_.window_is_full(flow);
    const QueuePair& f = pairs_.pair(flow);
    return f.acknowledged != f.sent;
}

// Its timeout is that of the packet under way which was sent first. While nothing comes back, what is sent
// again has twice as long after each that has passed for the packet that the receiver waits for. With nothing
// under way it is that of what is to go again, for its NIC may be cut off, or of news.
void UnorderedRecovery::await_oldest(std::uint32_t flow) {
    QueuePair& f = pairs_.pair(flow);
    if (run_.spec.retransmission_timeout.count() > 0) {
        const UnorderedSender::Sent* oldest = senders_[flow].oldest();
        if (oldest != nullptr) return await_since(flow, oldest->at, oldest->again);
        if (f.acknowledged != f.sent) return await_since(flow, run_.now, true);
    }
    f.timeout_at = PacketRun::unset;
}

void UnorderedRecovery::await_since(std::uint32_t flow, std::int64_t since, bool again) {
    QueuePair& f = pairs_.pair(flow);
    std::int64_t timeout = run_.spec.retransmission_timeout.count();
    for (int i = 0; again && i < f.retries; ++i) timeout *= run_.spec.timeout_growth;
    f.timeout_at = since + timeout;
    pairs_.await_timeout(flow);
}

// Nothing is under way. What has timed out may have no credit to go again: the request for news can be lost
// like anything else, and is made again. So can the news that a slow host has taken all. Or its NIC sends
// nothing. Or it will have its turn.
void UnorderedRecovery::time_out_idle(std::uint32_t flow) {
    QueuePair& f = pairs_.pair(flow);
    const bool waits = waits_for_news(flow);
    const bool held_up = pairs_.is_held_up(flow);
    if (held_up || waits) {
        if (!held_up && run_.spec.request_gap.count() == 0) return;
        ++run_.totals.timeouts;
        if (f.retries == run_.spec.retries) return pairs_.fail(flow);
        ++f.retries;
        if (waits) request(flow);
    }
    await_since(flow, run_.now, true);
}

void UnorderedRecovery::time_out_oldest(std::uint32_t flow) {
    QueuePair& f = pairs_.pair(flow);
    UnorderedSender& sender = senders_[flow];
    const UnorderedSender::Sent* oldest = sender.oldest();
    if (oldest == nullptr) return time_out_idle(flow);
    ++run_.totals.timeouts;
    const UnorderedSender::Sent sent = *oldest;
    if (sent.number == f.acknowledged) {
        if (f.retries == run_.spec.retries) return pairs_.fail(flow);
        ++f.retries;
    }
    const std::int64_t bytes = pairs_.payload_of(f, sent.number).first + run_.spec.header_bytes;
    sender.lose(sent.number, bytes);
    if (f.routing == PacketRouting::entropy) {
        entropy_->heard(flow, sent.entropy, PathNews::timed_out, run_.time());
    }
    if (!pairs_.follows_marks_alone()) {
        congestion_.timed_out(flow, {run_.time(), f.acknowledged, f.sent, bytes}, f.pace);
    }
    pairs_.aim(flow);
    await_oldest(flow);
    if (pairs_.window_is_full(flow)) request(flow);
    pairs_.offer(flow);
}

// See OrderLossSpec. `round_trip`: of the packet that `report` answers.
void UnorderedRecovery::lose_by_order(std::uint32_t flow, const DeliveryReport& report,
                                      Picoseconds round_trip) {
    const OrderLossSpec& spec = run_.spec.order_loss;
    const QueuePair& f = pairs_.pair(flow);
    Recovering& recovering = recovering_[flow];
    if (!report.answers_request) {
        recovering.round_trip = std::min(recovering.round_trip, round_trip.count());
    }
    await_probe(flow);
    const std::int64_t packet = run_.full_packet();
    const std::int64_t window = std::min(f.pace.window_bytes, spec.window_max_bytes);
    if (f.acknowledged >= recovering.ends) {
        const double many = std::min(spec.windows * real(window), real(spec.window_max_bytes));
        const auto least = std::max(spec.packets_least, static_cast<std::int64_t>(many) / packet);
        const bool prompt = report.answers_probe &&
                            round_trip.count() <= recovering.round_trip + spec.target.count();
        if (report.out_of_order < least && !prompt) return;
        recovering.ends = f.sent;
    }
    const auto end = static_cast<std::uint32_t>(
        std::min<std::int64_t>(recovering.ends, f.acknowledged + window / packet));
    for (std::uint32_t number = f.acknowledged; number < end; ++number) {
        senders_[flow].lose_by_order(number,
                                     pairs_.payload_of(f, number).first + run_.spec.header_bytes);
    }
}

// There was news, or something to hear of. The event that is scheduled finds out whether it is due.
void UnorderedRecovery::await_probe(std::uint32_t flow) {
    const OrderLossSpec& spec = run_.spec.order_loss;
    Recovering& recovering = recovering_[flow];
    recovering.probe_at =
        run_.now + (backlog_of(flow) > 0 ? round_trips(recovering.round_trip, spec.probe_busy)
                                         : recovering.round_trip + spec.target.count());
    if (recovering.probe_event <= recovering.probe_at) return;
    recovering.probe_event = recovering.probe_at;
    run_.schedule(recovering.probe_at, PacketEvent::flow_probe, flow);
}

void UnorderedRecovery::probe(std::uint32_t flow) {
    const QueuePair& f = pairs_.pair(flow);
    Recovering& recovering = recovering_[flow];
    if (run_.now != recovering.probe_event) return;
    recovering.probe_event = PacketRun::unset;
    if (f.phase != QueuePair::Phase::moving || f.sent == f.acknowledged) return;
    if (run_.now >= recovering.probe_at) {
        send_header(flow, true);
        recovering.probe_at =
            run_.now + round_trips(recovering.round_trip, run_.spec.order_loss.probe_again);
    }
    recovering.probe_event = recovering.probe_at;
    run_.schedule(recovering.probe_at, PacketEvent::flow_probe, flow);
}

}  // namespace railyard
