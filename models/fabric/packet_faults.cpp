// PacketEngine: links that lose bits or are down, and NICs that take their packets slowly.

#include "models/fabric/packet_engine.h"
#include "sim/check.h"

namespace railyard {

LinkFaults& PacketEngine::faults_of(LinkId link) {
    Port& port = ports_[link];
    if (port.faults == none) {
        port.faults = static_cast<std::uint32_t>(faults_.size());
        faults_.emplace_back(links_[link].bit_error_rate,
                             RandomStream(spec_.seed, link, "packet/bit errors"));
        retries_.emplace_back();
    }
    return faults_[port.faults];
}

void PacketEngine::flap(LinkId link, Picoseconds down, Picoseconds up) {
    RY_CHECK(now_ <= down.count() && down < up);
    for (const LinkId l : {link, reverse_link(link)}) {
        faults_of(l).add_outage(down.count(), up.count());
        schedule(down.count(), What::link_down, l);
        if (up != never) schedule(up.count(), What::link_up, l);
    }
}

// A port that is down is busy until it is up. A switch's throws away what it would have to send.
void PacketEngine::on_link_down(LinkId link) {
    Port& port = ports_[link];
    port.busy_until =
        std::max(port.busy_until, std::min(never_up, faults_[port.faults].up_after(now_)));
    mute(reverse_link(link));
    give_up_replay(link);
    if (port.at_nic) return;
    port.cut = true;
    port.discarding = UINT8_MAX;
    for (std::size_t c = 0; c < class_count_; ++c) {
        flush(link, c, totals_.lost_on_links);
        if (has_credits(c) && paused(link, static_cast<int>(c))) stop_starving(link, c);
    }
}

void PacketEngine::on_link_up(LinkId link) {
    Port& port = ports_[link];
    if (faults_[port.faults].up_after(now_) > now_) return;
    unmute(reverse_link(link));
    if (port.at_nic) return;
    port.cut = false;
    port.discarding = 0;
    for (std::size_t c = 0; c < class_count_; ++c) {
        const bool storm =
            spec_.watchdog.action == WatchdogAction::drop && stormed(link, static_cast<int>(c));
        if (storm || (has_credits(c) && credits_[link * class_count_ + c].stalled)) {
            port.discarding |= static_cast<std::uint8_t>(1U << c);
        }
    }
}

void PacketEngine::slow_receiver(LinkId link, Bandwidth rate, Picoseconds from, Picoseconds until) {
    RY_CHECK(to_nic_[link] == to_nic && now_ <= from.count());
    to_nic_[link] = to_slow_nic;
    if (slow_receiver_of_.empty()) slow_receiver_of_.resize(links_.size(), none);
    slow_receiver_of_[link] = static_cast<std::uint32_t>(slow_receivers_.size());
    SlowReceiver slow;
    slow.from = from.count();
    slow.until = until.count();
    slow.ps_per_byte = ps_per_byte_of(rate);
    slow_receivers_.push_back(slow);
}

void PacketEngine::receive_slowly(LinkId link, std::uint32_t id) {
    SlowReceiver& slow = slow_receivers_[slow_receiver_of_[link]];
    Packet& packet = packets_[id];
    const bool is_slow = now_ >= slow.from && now_ < slow.until;
    if (!is_slow && slow.head == none) return receive(link, id);
    const PacketClass& its_class = spec_.classes[packet.traffic_class];
    const bool granted =
        has_credits(packet.traffic_class);  // there is room: it is the lane's buffer
    if (!granted && slow.bytes + packet.bytes > spec_.receive_buffer.bytes) {
        return overflow(link, id);
    }
    ++on_links_;
    packets_.next(id) = none;
    slow.bytes += packet.bytes;
    if (slow.head != none) {
        packets_.next(slow.tail) = id;
    } else {
        slow.head = id;
        schedule(now_ + transfer_ps(packet.bytes, slow.ps_per_byte), What::host_took, link);
    }
    slow.tail = id;
    const auto bit = static_cast<std::uint8_t>(1U << packet.traffic_class);
    if (slow.bytes > spec_.receive_buffer.xoff_bytes && (slow.pausing & bit) == 0 &&
        its_class.flow_control == FlowControl::pfc) {
        slow.pausing |= bit;
        hold(link, packet.traffic_class, true);
    }
}

void PacketEngine::on_host_took(LinkId link) {
    SlowReceiver& slow = slow_receivers_[slow_receiver_of_[link]];
    const std::uint32_t id = slow.head;
    slow.head = packets_.next(id);
    slow.bytes -= packets_[id].bytes;
    --on_links_;
    if (slow.head != none) {
        const std::int64_t takes =
            now_ < slow.until ? transfer_ps(packets_[slow.head].bytes, slow.ps_per_byte) : 0;
        schedule(now_ + takes, What::host_took, link);
    }
    if (slow.bytes <= spec_.receive_buffer.xon_bytes) {
        for (std::size_t c = 0; c < class_count_; ++c) {
            if ((slow.pausing >> c & 1) != 0) hold(link, c, false);
        }
        slow.pausing = 0;
    }
    receive(link, id);
}

}  // namespace railyard
