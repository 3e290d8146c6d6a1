#include "models/fabric/packet_receivers.h"

#include "models/fabric/packet_senders.h"

namespace railyard {

void PacketReceivers::add() {
    ends_.emplace_back();
    if (run_.selective()) selective_.emplace_back(run_.spec.recovery_window);
    if (run_.unordered()) unordered_.emplace_back(run_.spec.recovery_window);
}

void PacketReceivers::receive(std::uint32_t id) {
    if (run_.unordered()) return receive_unordered(id);
    const Packet& packet = run_.packets[id];
    const std::uint8_t flags = (packet.flags & flag_marked) != 0 ? answer_mark(id) : 0;
    if (run_.selective()) return receive_in_any_order(id, flags);
    receive_in_order(id, flags);
}

// What the acknowledgement says of it; or a CNP goes back the packet's way later.
std::uint8_t PacketReceivers::answer_mark(std::uint32_t id) {
    End& end = ends_[run_.packets[id].flow];
    if (run_.now < end.cnp_at) return 0;
    end.cnp_at = run_.now + run_.spec.cnp_interval.count();
    if (run_.spec.cnp_delay.count() == 0) return flag_marked;
    ++run_.on_links;
    run_.schedule(run_.now + run_.spec.cnp_delay.count(), PacketEvent::cnp, run_.packets.copy(id));
    return 0;
}

void PacketReceivers::send_cnp(std::uint32_t id) {
    --run_.on_links;
    End& end = ends_[run_.packets[id].flow];
    const std::uint32_t unacknowledged = end.unacknowledged;
    acknowledge(id, flag_marked);
    end.unacknowledged = unacknowledged;
}

// A packet that came in its turn, if nothing else has to be said.
inline bool PacketReceivers::may_wait(const End& end, const Packet& packet,
                                      std::uint8_t flags) const {
    return flags == 0 && (packet.flags & flag_asks) == 0 &&
           end.unacknowledged < run_.spec.ack_every;
}

inline void PacketReceivers::receive_in_order(std::uint32_t id, std::uint8_t flags) {
    const Packet& packet = run_.packets[id];
    End& end = ends_[packet.flow];
    if (packet.number > end.expected) {
        if (end.nacked && flags == 0) return run_.packets.free(id);
        if (!end.nacked) flags |= flag_nack;
        end.nacked = true;
        return acknowledge(id, flags);
    }
    if (packet.number == end.expected) {
        ++end.expected;
        ++end.unacknowledged;
        end.nacked = false;
        end.received_bytes += packet.bytes - run_.spec.header_bytes;
        if (may_wait(end, packet, flags)) return run_.packets.free(id);
    }
    acknowledge(id, flags);
}

// A packet out of its turn is acknowledged at once, and so is one that closes a gap.
void PacketReceivers::receive_in_any_order(std::uint32_t id, std::uint8_t flags) {
    const Packet& packet = run_.packets[id];
    End& end = ends_[packet.flow];
    if (selective_[packet.flow].take(packet.number, end.expected)) {
        ++end.unacknowledged;
        end.received_bytes += packet.bytes - run_.spec.header_bytes;
        if (end.expected == packet.number + 1 && may_wait(end, packet, flags)) {
            return run_.packets.free(id);
        }
    }
    acknowledge(id, flags);
}

void PacketReceivers::receive_unordered(std::uint32_t id) {
    const Packet& packet = run_.packets[id];
    End& end = ends_[packet.flow];
    UnorderedReceiver& receiver = unordered_[packet.flow];
    std::uint8_t flags = packet.flags & flag_marked;
    if ((packet.flags & flag_request) != 0) return acknowledge(id, flags);
    if ((packet.flags & flag_trimmed) != 0) {
        if (!receiver.has(packet.number, end.expected)) {
            flags |= flag_nack | static_cast<std::uint8_t>(packet.flags & flag_last_hop);
        }
        return acknowledge(id, flags);
    }
    const bool first = receiver.first();
    const bool fresh = receiver.take(packet.number, packet.bytes, end.expected);
    if (fresh) end.received_bytes += packet.bytes - run_.spec.header_bytes;
    const bool asks = (packet.flags & flag_asks) != 0;
    if (asks) receiver.ask();
    const bool owes = receiver.owes();
    if (fresh && !first && !asks && !owes && flags == 0 &&
        receiver.unreported_bytes() < run_.spec.ack_bytes_due) {
        return run_.packets.free(id);
    }
    receiver.reported();
    acknowledge(id, flags);
}

// What goes back with an acknowledgement of delivery in any order: the report's number.
std::uint32_t PacketReceivers::report(const Packet& packet, std::uint8_t flags) {
    const std::uint32_t number = run_.packets.take_report();
    DeliveryReport& report = run_.packets.report(number);
    report.answers_request = (packet.flags & flag_request) != 0;
    report.answers_probe = report.answers_request && (packet.flags & flag_trimmed) == 0;
    // Ultra Ethernet's senders ask for news; what SRD's acknowledgements say is not public.
    const bool begins = run_.spec.request_gap.count() > 0 &&
                        ((flags & flag_marked) != 0 || (packet.flags & flag_asks) != 0);
    unordered_[packet.flow].report(packet.number, ends_[packet.flow].expected, begins, report);
    report.penalty = run_.sends_receipts()
                         ? static_cast<std::uint8_t>(
                               links_.slow_receivers.penalty(run_.packets.last_link(packet)))
                         : std::uint8_t{0};
    if ((flags & flag_receipt) != 0) {
        report.came = 1;
        report.first = packet.number;
        report.received_bytes = 0;
    }
    return number;
}

// The packet is turned round: what the switches wrote into it goes back to the sender.
void PacketReceivers::acknowledge(std::uint32_t id, std::uint8_t flags) {
    Packet& packet = run_.packets[id];
    End& end = ends_[packet.flow];
    end.unacknowledged = 0;
    if (run_.selective()) run_.packets.note(id) = packet.number;
    const std::uint32_t number = run_.unordered() ? report(packet, flags) : end.expected;
    if ((packet.place & PacketPool::own_way) != 0) links_.ways.turn_back(id);
    packet.number = number;
    packet.bytes = static_cast<std::uint16_t>(run_.spec.ack_bytes);
    packet.flags = flag_ack | flags;
    if (run_.spec.ack_class < 0) {
        const PacketSenders::WayBack back = senders_.way_back(packet.flow);
        packet.place = back.end;
        ++run_.on_links;
        return run_.schedule(run_.now + back.latency, PacketEvent::arrival, id);
    }
    packet.traffic_class = static_cast<std::uint8_t>(run_.spec.ack_class);
    links_.send(run_.packets.next_link(packet), id);
}

}  // namespace railyard
