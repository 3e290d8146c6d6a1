#include "models/fabric/slow_receiver.h"

#include <utility>

#include "models/fabric/packet_ports.h"
#include "sim/check.h"

namespace railyard {

void SlowReceivers::add(LinkId link, Bandwidth rate, Picoseconds from, Picoseconds until) {
    RY_CHECK(ports_.end(link) == LinkEnd::nic && run_.now <= from.count());
    ports_.end(link) = LinkEnd::slow_nic;
    of_link_.resize(ports_.links());
    of_link_[link] = static_cast<std::uint32_t>(receivers_.size());
    receivers_.push_back({from.count(), until.count(), ps_per_byte_of(rate)});
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
    const auto bit = static_cast<std::uint8_t>(1U << packet.traffic_class);
    if (slow.bytes <= buffer.xoff_bytes || (slow.pausing & bit) != 0 ||
        run_.spec.classes[packet.traffic_class].flow_control != FlowControl::pfc) {
        return Arrival::waits;
    }
    slow.pausing |= bit;
    return Arrival::waits_and_pauses;
}

SlowReceivers::Taken SlowReceivers::take(LinkId link) {
    Receiver& slow = receivers_[of_link_[link]];
    const std::uint32_t id = slow.head;
    slow.head = run_.packets.next(id);
    slow.bytes -= run_.packets[id].bytes;
    --run_.on_links;
    if (slow.head != PacketRun::none) {
        const std::int64_t bytes = run_.packets[slow.head].bytes;
        const bool is_slow = run_.now < slow.until;
        run_.schedule(run_.now + (is_slow ? transfer_ps(bytes, slow.ps_per_byte) : 0),
                      PacketEvent::host_took, link);
    }
    const bool resumes = slow.bytes <= run_.spec.receive_buffer.xon_bytes;
    return {id, resumes ? std::exchange(slow.pausing, std::uint8_t{0}) : std::uint8_t{0}};
}

}  // namespace railyard
