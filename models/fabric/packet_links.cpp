#include "models/fabric/packet_links.h"

#include "models/fabric/packet_receivers.h"
#include "models/fabric/packet_senders.h"

namespace railyard {

PacketLinks::PacketLinks(PacketRun& run, const PacketNetwork& network)
    : ports(run, network),
      pauses(run, ports, network.buffer_bytes.size()),
      credits(run, ports, pauses),
      faults(run, ports),
      slow_receivers(run, ports, pauses),
      ways(run, ports),
      run_(run),
      marking_(run.spec.seed, 0, "packet/marking"),
      trimming_(run.spec.seed, 0, "packet/trimming") {}

// ---- arrivals ----

// With Ultra Ethernet such a NIC answers headers itself, and says at once what has come. Its host takes it
// later, and then the sender may go on.
void PacketLinks::arrive_at_slow_nic(LinkId in, std::uint32_t id) {
    const bool receipts = run_.sends_receipts();
    if (receipts && (run_.packets[id].flags & (flag_ack | flag_trimmed | flag_request)) != 0) {
        return receive(in, id);
    }
    const SlowReceivers::Arrival arrival = slow_receivers.arrive(in, id);
    if (arrival == SlowReceivers::Arrival::passes) receive(in, id);
    if (arrival == SlowReceivers::Arrival::overflows) overflow(in, id);
    if (arrival == SlowReceivers::Arrival::waits && receipts) {
        receivers_->acknowledge(run_.packets.copy(id), flag_receipt);
    }
}

// The NIC at the end of `in` has taken it.
void PacketLinks::receive(LinkId in, std::uint32_t id) {
    const Packet& packet = run_.packets[id];
    if (ports.has_credits(packet.traffic_class)) credits.leave(in, packet);
    if ((packet.flags & flag_ack) != 0) return senders_->hear(id);
    receivers_->receive(id);
}

void PacketLinks::forward(LinkId in, std::uint32_t id) {
    const Packet& packet = run_.packets[id];
    if (packet.flags >> routing_shift != 0 && !ways.choose(id)) {
        return drop(in, id, run_.totals.lost_on_links);
    }
    const LinkId out = run_.packets.next_link(packet);
    const LinkPort& port = ports.port(out);
    const std::size_t c = packet.traffic_class;
    const bool has_credits = ports.has_credits(c);
    if ((port.discarding >> c & 1) != 0) {
        if (port.cut) return drop(in, id, run_.totals.lost_on_links);
        return drop(in, id,
                    has_credits ? run_.totals.lost_to_lifetime : run_.totals.lost_to_watchdog);
    }
    if (pauses.refuses(in, c)) [[unlikely]]
        return lose(id, run_.totals.lost_to_watchdog);
    if (send_at_once(out, id)) {
        if (has_credits) credits.leave(in, packet);
        return;
    }
    IngressShare& share = ports.share(ports.slot(in, c));
    if (has_credits) {
        share.bytes += packet.bytes;  // the sender knew that there was room
        return enqueue(out, id);
    }
    const bool lossless = run_.spec.classes[c].lossless();
    const LinkQueue& queue = ports.queue(ports.slot(out, c));
    if (!lossless && queue.bytes + packet.bytes > run_.spec.lossy_queue_bytes) {
        return refuse(in, out, id);
    }
    SwitchBuffer& buffer = ports.buffer(port.from);
    if (!buffer.admit(share, packet.bytes)) return refuse(in, out, id);
    if (buffer.must_pause(share)) pauses.send(in, c, true);
    enqueue(out, id);
}

void PacketLinks::lose(std::uint32_t id, std::int64_t& counter) {
    ++counter;
    run_.packets.free(id);
}

// Likewise one that has room at the end of `in`.
void PacketLinks::drop(LinkId in, std::uint32_t id, std::int64_t& counter) {
    const Packet& packet = run_.packets[id];
    if (ports.has_credits(packet.traffic_class)) credits.leave(in, packet);
    lose(id, counter);
}

// A packet for which there is no room at the end of its link.
void PacketLinks::overflow(LinkId in, std::uint32_t id) {
    const std::size_t c = run_.packets[id].traffic_class;
    if (!run_.spec.classes[c].lossless()) return lose(id, run_.totals.lost_lossy);
    const bool past_pause =
        (ports.port(in).unpausable >> c & 1) != 0 && ports.share(ports.slot(in, c)).xoff;
    if (past_pause && ports.heeds_pauses(in, c)) return lose(id, run_.totals.lost_to_watchdog);
    overflows_.resize(ports.links());
    ++overflows_[in];
    lose(id, run_.totals.lost_lossless);
}

// ---- trimming ----

// A packet finds no room in the queue of `out` or in its switch's buffer.
void PacketLinks::refuse(LinkId in, LinkId out, std::uint32_t id) {
    const Packet& packet = run_.packets[id];
    const bool trims =
        run_.spec.trimming.enabled && (packet.flags & (flag_ack | flag_trimmed)) == 0;
    if (!trims || run_.spec.classes[packet.traffic_class].lossless()) return overflow(in, id);
    constexpr double of_last = 0.5;
    if (trimming_.chance(of_last)) put_in_place_of_last(in, out, id);
    trim(out, id);
}

// The last packet of a queue and this one change places, if there is one, and room for this one.
void PacketLinks::put_in_place_of_last(LinkId in, LinkId out, std::uint32_t id) {
    const Packet& packet = run_.packets[id];
    const std::size_t c = packet.traffic_class;
    LinkQueue& queue = ports.queue(ports.slot(out, c));
    if (queue.head == PacketRun::none) return;
    SwitchBuffer& buffer = ports.buffer(ports.port(out).from);
    if (!buffer.admit(ports.share(ports.slot(in, c)), packet.bytes)) return;
    const Packet& last = run_.packets[queue.tail];
    queue.bytes += packet.bytes - last.bytes;
    buffer.release(ports.share(ports.slot(run_.packets.last_link(last), c)), last.bytes);
    run_.packets.swap(id, queue.tail);
}

// The header goes on among the acknowledgements, whose class goes first.
void PacketLinks::trim(LinkId out, std::uint32_t id) {
    Packet& packet = run_.packets[id];
    ++run_.totals.trimmed;
    packet.flags = static_cast<std::uint8_t>((packet.flags | flag_trimmed) & ~flag_last_hop);
    if (!ports.to_switch(out)) {
        ++run_.totals.trimmed_last_hop;
        packet.flags |= flag_last_hop;
    }
    packet.bytes = static_cast<std::uint16_t>(run_.spec.trimming.bytes);
    packet.traffic_class = static_cast<std::uint8_t>(run_.spec.ack_class);
    if (send_at_once(out, id)) return;
    const LinkQueue& queue = ports.queue(ports.slot(out, packet.traffic_class));
    IngressShare& share =
        ports.share(ports.slot(run_.packets.last_link(packet), packet.traffic_class));
    if (queue.bytes + packet.bytes > run_.spec.lossy_queue_bytes ||
        !ports.buffer(ports.port(out).from).admit(share, packet.bytes)) {
        return lose(id, run_.totals.lost_lossy);
    }
    enqueue(out, id);
}

// ---- queues and ports ----

// A packet that need not wait passes without being queued or booked.
bool PacketLinks::send_at_once(LinkId link, std::uint32_t id) {
    const LinkPort& port = ports.port(link);
    if (port.pending || port.busy_until > run_.now) return false;
    const Packet& packet = run_.packets[id];
    if (((port.waiting | port.stopped()) >> packet.traffic_class & 1) != 0) return false;
    if (ports.has_credits(packet.traffic_class) && !credits.affords(link, packet)) return false;
    if (run_.packets.telemetry_hops() > 0 && !port.at_nic) write_telemetry(link, id, 0);
    transmit(link, id);
    return true;
}

void PacketLinks::enqueue(LinkId link, std::uint32_t id) {
    ports.push(link, id);
    const std::size_t c = run_.packets[id].traffic_class;
    const LinkPort& port = ports.port(link);
    if ((port.paused >> c & 1) != 0) pauses.watch(ports.slot(link, c));
    if (!port.pending) kick(link);
}

// The first packet of a queue that is not empty; at a switch it leaves the buffer's books.
std::uint32_t PacketLinks::dequeue(LinkId link, std::size_t traffic_class) {
    const std::uint32_t id = ports.pop(link, traffic_class);
    const LinkPort& port = ports.port(link);
    if (port.at_nic) return id;
    const Packet& packet = run_.packets[id];
    const LinkId in = run_.packets.last_link(packet);
    IngressShare& share = ports.share(ports.slot(in, traffic_class));
    if (ports.has_credits(traffic_class)) {
        share.bytes -= packet.bytes;
        credits.leave(in, packet);
        return id;
    }
    SwitchBuffer& buffer = ports.buffer(port.from);
    buffer.release(share, packet.bytes);
    if (buffer.may_resume(share)) pauses.send(in, traffic_class, false);
    return id;
}

// Throws away what a switch's queue holds.
void PacketLinks::flush(LinkId link, std::size_t traffic_class, std::int64_t& counter) {
    while (ports.queue(ports.slot(link, traffic_class)).head != PacketRun::none) {
        lose(dequeue(link, traffic_class), counter);
    }
}

// What a switch does to a packet that has waited and now leaves: marks it, writes into it.
void PacketLinks::leave_switch(LinkId link, std::uint32_t id) {
    Packet& packet = run_.packets[id];
    if ((packet.flags & flag_ack) != 0) return;
    const std::size_t c = packet.traffic_class;
    const std::size_t s = ports.slot(link, c);
    const std::int64_t behind = ports.queue(s).bytes;
    if (behind > ports.port(link).kmin_bytes && run_.spec.classes[c].ecn &&
        !(ports.has_credits(c) && credits.is_victim(s)) &&
        ports.link(link).ecn.marks(behind, marking_)) {
        packet.flags |= flag_marked;
    }
    if (run_.packets.telemetry_hops() > 0) write_telemetry(link, id, behind);
}

void PacketLinks::write_telemetry(LinkId link, std::uint32_t id, std::int64_t queue_bytes) {
    const Packet& packet = run_.packets[id];
    if ((packet.flags & flag_ack) != 0) return;
    const std::uint32_t first = senders_->pair(packet.flow).first;
    if (packet.place <= first) return;  // its flow has been rerouted
    // The first link of the path is the NIC's own.
    run_.packets.telemetry(id)[packet.place - first - 1] = {
        run_.time(), ports.port(link).sent_bytes, queue_bytes,
        real(ports.link(link).rate.bits_per_second())};
}

// From a packet's first bit sent until the other end can go on with it.
inline std::int64_t PacketLinks::until_there(LinkId link, const Packet& packet) const {
    const LinkPort& port = ports.port(link);
    std::int64_t bytes = packet.bytes;
    if (run_.spec.cut_through && ports.to_switch(link) &&
        ports.port(run_.packets.next_link(packet)).ps_per_byte >= port.ps_per_byte) {
        bytes = std::min(bytes, run_.spec.header_bytes);
    }
    return transfer_ps(bytes, port.ps_per_byte) + port.latency;
}

void PacketLinks::transmit(LinkId link, std::uint32_t id) {
    Packet& packet = run_.packets[id];
    LinkPort& port = ports.port(link);
    port.busy_until = run_.now + transfer_ps(packet.bytes, port.ps_per_byte);
    port.sent_bytes += packet.bytes;
    if (ports.has_credits(packet.traffic_class)) credits.enter(link, packet);
    if ((packet.flags & (flag_ack | flag_trimmed)) != 0) {
        ++run_.totals.ack_hops;
    } else {
        ++run_.totals.data_hops;
    }
    ++packet.place;
    if (port.faults != PacketRun::none && !crosses(link, id, run_.now, 0)) return;
    ++run_.on_links;
    run_.schedule(run_.now + until_there(link, packet), PacketEvent::arrival, id);
}

void PacketLinks::serve(LinkId link) {
    LinkPort& port = ports.port(link);
    port.pending = false;
    if (port.busy_until > run_.now) return kick(link);  // a pause frame came between
    const std::int64_t sent_before = port.sent_bytes;
    for (unsigned can = port.sendable(); can != 0; can = port.sendable()) {
        const std::size_t c = ports.next_class(link, can);
        if (ports.has_credits(c) && credits.starves(link, c)) continue;
        if (ports.queue(ports.slot(link, c)).head != PacketRun::none) {
            const std::uint32_t id = dequeue(link, c);
            if (!port.at_nic) leave_switch(link, id);
            transmit(link, id);
        } else if (!senders_->send_in_turn(link, c)) {
            continue;
        }
        ports.charge(link, c, port.sent_bytes - sent_before);
        break;
    }
    if (!port.pending) kick(link);
}

// Sees to it that the link is served as soon as it can be. Not while an event for it is pending.
void PacketLinks::kick(LinkId link) {
    LinkPort& port = ports.port(link);
    if (port.sendable() == 0) return;
    if (port.busy_until <= run_.now) return serve(link);
    if (port.busy_until == never_up) return;
    port.pending = true;
    run_.schedule(port.busy_until, PacketEvent::port_free, link);
}

// ---- what stops a link ----

void PacketLinks::go_on(LinkId link, std::size_t traffic_class) {
    if (pauses.go_on(link, traffic_class) && !ports.port(link).pending) kick(link);
}

void PacketLinks::stop_starving(LinkId link, std::size_t traffic_class) {
    if (credits.stop_starving(link, traffic_class) && !ports.port(link).pending) kick(link);
}

void PacketLinks::end_lifetime(LinkId link, std::size_t traffic_class) {
    if (!credits.outlived(link, traffic_class)) return;
    lose(dequeue(link, traffic_class), run_.totals.lost_to_lifetime);
    if (credits.stalls(link, traffic_class)) {
        flush(link, traffic_class, run_.totals.lost_to_lifetime);
        credits.stall(link, traffic_class);
    }
    stop_starving(link, traffic_class);
}

void PacketLinks::unmute(LinkId link) {
    for (std::size_t c = 0; c < ports.classes(); ++c) {
        if (pauses.unmute(link, c) && ports.has_credits(c)) credits.give_withheld(link, c);
    }
}

void PacketLinks::storm(LinkId link, std::size_t traffic_class, bool starts) {
    if (pauses.storm(ports.slot(link, traffic_class), starts)) hold(link, traffic_class, starts);
}

// The NIC at the end of `link` stops its sender, or lets it go on.
void PacketLinks::hold(LinkId link, std::size_t traffic_class, bool starts) {
    if (ports.has_credits(traffic_class)) return credits.withhold(link, traffic_class, starts);
    pauses.send(link, traffic_class, starts);
}

void PacketLinks::poll_watchdogs(VertexId v) {
    const WatchdogAction action = run_.spec.watchdog.action;
    for (const std::size_t s : pauses.watched_at(v)) {
        const auto change = pauses.poll(s);
        const LinkId link = ports.link_of(s);
        if (action == WatchdogAction::drop && change == PfcWatchdog::Change::detected) {
            flush(link, ports.class_of(s), run_.totals.lost_to_watchdog);
        } else if (action == WatchdogAction::forward && change != PfcWatchdog::Change::none &&
                   !ports.port(link).pending) {
            kick(link);
        }
    }
    pauses.end_round(v);
}

// ---- faults ----

// A port that is down is busy until it is up. A switch's throws away what it would have to send.
void PacketLinks::take_down(LinkId link) {
    LinkPort& port = ports.port(link);
    port.busy_until = std::max(port.busy_until, std::min(never_up, faults.up_after(link)));
    mute(reverse_link(link));
    give_up_replay(link);
    if (port.at_nic) return;
    port.cut = true;
    port.discarding = UINT8_MAX;
    for (std::size_t c = 0; c < ports.classes(); ++c) {
        flush(link, c, run_.totals.lost_on_links);
        if (ports.has_credits(c) && (port.paused >> c & 1) != 0) stop_starving(link, c);
    }
}

void PacketLinks::bring_up(LinkId link) {
    LinkPort& port = ports.port(link);
    if (faults.up_after(link) > run_.now) return;
    unmute(reverse_link(link));
    if (port.at_nic) return;
    port.cut = false;
    port.discarding = 0;
    for (std::size_t c = 0; c < ports.classes(); ++c) {
        const std::size_t s = ports.slot(link, c);
        const bool storm = run_.spec.watchdog.action == WatchdogAction::drop && pauses.stormed(s);
        if (storm || (ports.has_credits(c) && credits.stalled(s))) {
            port.discarding |= static_cast<std::uint8_t>(1U << c);
        }
    }
}

// Whether a packet that leaves at `sent` arrives; else it is lost, or kept to be sent again.
bool PacketLinks::crosses(LinkId link, std::uint32_t id, std::int64_t sent, std::int64_t tries) {
    const std::int64_t there = sent + until_there(link, run_.packets[id]);
    const PacketFaults::Fate fate = faults.cross(link, id, sent, there, tries);
    // If it is lost, the receiver's count of blocks is put right by the next update.
    if (fate == PacketFaults::Fate::lost) drop(link, id, run_.totals.lost_on_links);
    if (fate == PacketFaults::Fate::kept) ++run_.on_links;
    return fate == PacketFaults::Fate::crosses;
}

void PacketLinks::replay(LinkId link) {
    LinkRetry& retry = faults.retry(link);
    if (retry.told() != run_.now) return;  // its cable went down meanwhile
    if (retry.tries() == run_.spec.link_retry.replays) return give_up_replay(link);
    LinkPort& port = ports.port(link);
    std::int64_t at = std::max(run_.now, port.busy_until);
    std::int64_t tries = retry.tries() + 1;
    for (const std::uint32_t id : retry.take()) {
        const Packet& packet = run_.packets[id];
        const std::int64_t transfer = transfer_ps(packet.bytes, port.ps_per_byte);
        ++run_.totals.replayed;
        --run_.on_links;
        port.sent_bytes += packet.bytes;
        if (crosses(link, id, at, tries)) {
            ++run_.on_links;
            run_.schedule(at + until_there(link, packet), PacketEvent::arrival, id);
        }
        at += transfer;
        tries = 0;
    }
    port.busy_until = at;
}

void PacketLinks::give_up_replay(LinkId link) {
    for (const std::uint32_t id : faults.retry(link).take()) {
        --run_.on_links;
        drop(link, id, run_.totals.lost_on_links);
    }
}

}  // namespace railyard
