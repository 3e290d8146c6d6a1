// PacketEngine: InfiniBand's credits.

#include <utility>

#include "models/fabric/packet_engine.h"

namespace railyard {

bool PacketEngine::affords(LinkId link, const Packet& packet) {
    return credits_[slot(link, packet.traffic_class)].available(now_) >=
           spec_.credits.blocks(packet.bytes);
}

void PacketEngine::enter_lane(LinkId link, const Packet& packet) {
    credits_[slot(link, packet.traffic_class)].take(spec_.credits.blocks(packet.bytes));
}

void PacketEngine::leave_lane(LinkId link, const Packet& packet) {
    if (!on_a_link(packet)) return;
    return_credits(link, packet.traffic_class, spec_.credits.blocks(packet.bytes));
}

// What the next packet needs; a NIC that has several flows to choose from waits for room for a full one.
std::int64_t PacketEngine::blocks_needed(std::size_t s) const {
    const std::uint32_t head = queues_[s].head;
    return spec_.credits.blocks(head != none ? packets_[head].bytes
                                             : spec_.payload_bytes + spec_.header_bytes);
}

// Whether the next packet lacks credits. Then its class is paused until they have come.
bool PacketEngine::starves(LinkId link, std::size_t traffic_class) {
    const std::size_t s = link * class_count_ + traffic_class;
    LinkCredits& credits = credits_[s];
    if (credits.available(now_) >= blocks_needed(s)) return false;
    on_xoff(link, traffic_class);
    credits.waits_since = now_;
    wake_for_credits(link, traffic_class);
    const std::int64_t lifetime = hoq_lifetime(link);
    if (lifetime > 0 && !credits.lifetime_pending) {
        credits.lifetime_pending = true;
        schedule(now_ + lifetime, What::hoq_lifetime, link, traffic_class);
    }
    return true;
}

void PacketEngine::wake_for_credits(LinkId link, std::size_t traffic_class) {
    const std::size_t s = link * class_count_ + traffic_class;
    LinkCredits& credits = credits_[s];
    credits.wake_at = credits.when(blocks_needed(s));
    if (credits.wake_at != LinkCredits::never) {
        schedule(credits.wake_at, What::credits, link, traffic_class);
    }
}

void PacketEngine::on_credits(LinkId link, std::size_t traffic_class) {
    if (credits_[link * class_count_ + traffic_class].wake_at != now_) return;
    stop_starving(link, traffic_class);
}

void PacketEngine::stop_starving(LinkId link, std::size_t traffic_class) {
    LinkCredits& credits = credits_[link * class_count_ + traffic_class];
    credits.wake_at = LinkCredits::never;
    credits.waited_until = now_;
    on_xon(link, traffic_class);
}

// A packet has left the buffer at the end of `link`. The update waits for what the way back is sending.
void PacketEngine::return_credits(LinkId link, std::size_t traffic_class, std::int64_t blocks) {
    const std::size_t s = link * class_count_ + traffic_class;
    LinkCredits& credits = credits_[s];
    if (ingress_[s].xoff || pauses_[s].muted) {
        credits.withheld += blocks;
        return;
    }
    const Port& back = ports_[reverse_link(link)];
    credits.give(blocks, std::max(back.busy_until, now_) + back.latency);
    const bool waits = (ports_[link].paused >> traffic_class & 1) != 0;
    if (waits && credits.wake_at == LinkCredits::never) wake_for_credits(link, traffic_class);
}

void PacketEngine::withhold_credits(LinkId link, std::size_t traffic_class, bool starts) {
    const std::size_t s = link * class_count_ + traffic_class;
    ingress_[s].xoff = starts;
    if (!starts) return_withheld(link, traffic_class);
}

void PacketEngine::return_withheld(LinkId link, std::size_t traffic_class) {
    LinkCredits& credits = credits_[link * class_count_ + traffic_class];
    return_credits(link, traffic_class, std::exchange(credits.withheld, 0));
}

// The lifetime limit of this link's queues; 0: packets there wait as long as they must.
std::int64_t PacketEngine::hoq_lifetime(LinkId link) const {
    if (ports_[link].at_nic) return 0;
    return (to_nic_[link] != 0 ? spec_.credits.leaf_lifetime : spec_.credits.lifetime).count();
}

void PacketEngine::on_hoq_lifetime(LinkId link, std::size_t traffic_class) {
    LinkCredits& credits = credits_[link * class_count_ + traffic_class];
    credits.lifetime_pending = false;
    if ((ports_[link].paused >> traffic_class & 1) == 0) return;
    const std::int64_t over = credits.waits_since + hoq_lifetime(link);
    if (over > now_) {
        credits.lifetime_pending = true;
        return schedule(over, What::hoq_lifetime, link, traffic_class);
    }
    lose(dequeue(link, traffic_class), totals_.lost_to_lifetime);
    const std::int64_t stall_count =
        to_nic_[link] != 0 ? spec_.credits.leaf_stall_count : spec_.credits.stall_count;
    if (++credits.outlived == stall_count) stall(link, traffic_class);
    stop_starving(link, traffic_class);
}

void PacketEngine::stall(LinkId link, std::size_t traffic_class) {
    credits_[link * class_count_ + traffic_class].stalled = true;
    ports_[link].discarding |= static_cast<std::uint8_t>(1U << traffic_class);
    flush(link, traffic_class, totals_.lost_to_lifetime);
    schedule(now_ + CreditSpec::stall_lifetimes * hoq_lifetime(link), What::stall_over, link,
             traffic_class);
}

void PacketEngine::on_stall_over(LinkId link, std::size_t traffic_class) {
    LinkCredits& credits = credits_[link * class_count_ + traffic_class];
    credits.stalled = false;
    credits.outlived = 0;
    Port& port = ports_[link];
    if (!port.cut) port.discarding &= static_cast<std::uint8_t>(~(1U << traffic_class));
}

std::string PacketEngine::audit_credits() const {
    if (credit_classes_ == 0) return {};
    std::vector<std::uint8_t> off_links(packets_.size());  // queued or free
    std::vector<std::int64_t> held(credits_.size());
    for (std::uint32_t id = free_packets_; id != none; id = packets_.next(id)) off_links[id] = 1;
    const auto hold = [&](const Packet& p) {
        const LinkId in = last_link(p);
        held[slot(in, p.traffic_class)] += spec_.credits.blocks(p.bytes);
    };
    for (std::size_t s = 0; s < queues_.size(); ++s) {
        for (std::uint32_t id = queues_[s].head; id != none; id = packets_.next(id)) {
            off_links[id] = 1;
            if (!ports_[s / class_count_].at_nic) hold(packets_[id]);
        }
    }
    for (std::uint32_t id = 0; id < packets_.size(); ++id) {
        if (off_links[id] == 0 && on_a_link(packets_[id])) hold(packets_[id]);
    }
    for (std::size_t s = 0; s < credits_.size(); ++s) {
        if ((credit_classes_ >> (s % class_count_) & 1) == 0) continue;
        const LinkCredits& credits = credits_[s];
        if (credits.returned() + credits.withheld + held[s] != credits.total()) {
            return "a virtual lane's credits are not what its buffer has room for";
        }
    }
    return {};
}

}  // namespace railyard
