#include "models/fabric/slow_receiver.h"

#include <algorithm>
#include <utility>

#include "models/fabric/packet_pauses.h"
#include "sim/check.h"

namespace railyard {

void SlowReceivers::add(LinkId link, Bandwidth rate, Picoseconds from, Picoseconds until) {
    RY_CHECK(ports_.end(link) == LinkEnd::nic && run_.now <= from.count());
    ports_.end(link) = LinkEnd::slow_nic;
    of_link_.resize(ports_.links());
    of_link_[link] = static_cast<std::uint32_t>(receivers_.size());
    receivers_.push_back({from.count(), until.count(), rate, ps_per_byte_of(rate)});
    if (!run_.packets.tells_receivers()) return;
    for (const Picoseconds edge : {from, until}) {
        if (edge != Picoseconds::max()) {
            run_.schedule(edge.count(), PacketEvent::host_pace, link);
        }
    }
}

Bandwidth SlowReceivers::rate(LinkId link) const {
    const Bandwidth whole = ports_.link(link).rate;
    if (ports_.end(link) != LinkEnd::slow_nic) return whole;
    const Receiver& slow = receivers_[of_link_[link]];
    return run_.now >= slow.from && run_.now < slow.until ? std::min(whole, slow.rate) : whole;
}

// Then round trips are those without the time that packets wait here.
bool SlowReceivers::times_waits() const {
    return run_.sends_receipts() && run_.packets.keeps_times();
}

std::int64_t SlowReceivers::penalty(LinkId link) const {
    if (ports_.end(link) != LinkEnd::slow_nic) return 0;
    return receivers_[of_link_[link]].bytes * whole_penalty / run_.spec.receive_buffer.bytes;
}

SlowReceivers::Arrival SlowReceivers::arrive(LinkId link, std::uint32_t id) {
    Receiver& slow = receivers_[of_link_[link]];
    const Packet& packet = run_.packets[id];
    const ReceiveBuffer& buffer = run_.spec.receive_buffer;
    const bool is_slow = run_.now >= slow.from && run_.now < slow.until;
    if (!is_slow && slow.head == PacketRun::none) return Arrival::passes;
    // With credits there is room: it is the lane's buffer.
    if (!ports_.has_credits(packet.traffic_class) && slow.bytes + packet.bytes > buffer.bytes) {
        return Arrival::overflows;
    }
    ++run_.on_links;
    if (times_waits()) run_.packets.sent_at(id) -= run_.now;
    run_.packets.next(id) = PacketRun::none;
    slow.bytes += packet.bytes;
    if (slow.head != PacketRun::none) {
        run_.packets.next(slow.tail) = id;
    } else {
        slow.head = id;
        run_.schedule(run_.now + transfer_ps(packet.bytes, slow.ps_per_byte),
                      PacketEvent::host_took, link);
    }
    slow.tail = id;
    const std::size_t c = packet.traffic_class;
    if (slow.bytes > buffer.xoff_bytes && (slow.pausing >> c & 1) == 0 &&
        run_.spec.classes[c].flow_control == FlowControl::pfc) {
        slow.pausing |= static_cast<std::uint8_t>(1U << c);
        pauses_.fill(link, c, true);
    }
    return Arrival::waits;
}

std::uint32_t SlowReceivers::take(LinkId link) {
    Receiver& slow = receivers_[of_link_[link]];
    const std::uint32_t id = slow.head;
    slow.head = run_.packets.next(id);
    slow.bytes -= run_.packets[id].bytes;
    --run_.on_links;
    if (times_waits()) run_.packets.sent_at(id) += run_.now;
    if (slow.head != PacketRun::none) {
        const std::int64_t bytes = run_.packets[slow.head].bytes;
        const bool is_slow = run_.now < slow.until;
        run_.schedule(run_.now + (is_slow ? transfer_ps(bytes, slow.ps_per_byte) : 0),
                      PacketEvent::host_took, link);
    }
    if (slow.bytes > run_.spec.receive_buffer.xon_bytes) return id;
    const unsigned paused = std::exchange(slow.pausing, std::uint8_t{0});
    for (std::size_t c = 0; c < ports_.classes(); ++c) {
        if ((paused >> c & 1) != 0) pauses_.fill(link, c, false);
    }
    return id;
}

}  // namespace railyard
