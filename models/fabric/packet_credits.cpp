#include "models/fabric/packet_credits.h"

#include <utility>

#include "sim/check.h"

namespace railyard {

PacketCredits::PacketCredits(PacketRun& run, PacketPorts& ports, PacketPauses& pauses)
    : run_(run), ports_(ports), pauses_(pauses) {
    const CreditSpec& spec = run_.spec.credits;
    for (std::size_t s = 0; s < ports_.slots(); ++s) {
        if (!ports_.has_credits(ports_.class_of(s))) continue;
        credits_.resize(ports_.slots());
        credits_[s].open(ports_.link(ports_.link_of(s)).vl_buffer_bytes / spec.block_bytes);
        RY_CHECK(credits_[s].total() >= spec.blocks(run_.full_packet()));
    }
}

bool PacketCredits::affords(LinkId link, const Packet& packet) {
    return credits_[ports_.slot(link, packet.traffic_class)].available(run_.now) >= blocks(packet);
}

void PacketCredits::enter(LinkId link, const Packet& packet) {
    credits_[ports_.slot(link, packet.traffic_class)].take(blocks(packet));
}

void PacketCredits::leave(LinkId link, const Packet& packet) {
    if (!on_a_link(packet)) return;
    give(link, packet.traffic_class, blocks(packet));
}

// What the next packet needs; a NIC that has several flows to choose from waits for room for a full one.
std::int64_t PacketCredits::blocks_needed(std::size_t s) const {
    const std::uint32_t head = ports_.queue(s).head;
    return run_.spec.credits.blocks(head != PacketRun::none ? run_.packets[head].bytes
                                                            : run_.full_packet());
}

bool PacketCredits::starves(LinkId link, std::size_t traffic_class) {
    const std::size_t s = ports_.slot(link, traffic_class);
    LinkCredits& credits = credits_[s];
    if (credits.available(run_.now) >= blocks_needed(s)) return false;
    pauses_.stop(link, traffic_class);
    credits.waits_since = run_.now;
    await(link, traffic_class);
    const std::int64_t limit = lifetime(link);
    if (limit > 0 && !credits.lifetime_pending) {
        credits.lifetime_pending = true;
        run_.schedule(run_.now + limit, PacketEvent::hoq_lifetime, link, traffic_class);
    }
    return true;
}

void PacketCredits::await(LinkId link, std::size_t traffic_class) {
    const std::size_t s = ports_.slot(link, traffic_class);
    LinkCredits& credits = credits_[s];
    credits.wake_at = credits.when(blocks_needed(s));
    if (credits.wake_at != LinkCredits::never) {
        run_.schedule(credits.wake_at, PacketEvent::credits, link, traffic_class);
    }
}

bool PacketCredits::stop_starving(LinkId link, std::size_t traffic_class) {
    LinkCredits& credits = credits_[ports_.slot(link, traffic_class)];
    credits.wake_at = LinkCredits::never;
    credits.waited_until = run_.now;
    return pauses_.go_on(link, traffic_class);
}

// The update waits for what the way back is sending.
void PacketCredits::give(LinkId link, std::size_t traffic_class, std::int64_t blocks) {
    const std::size_t s = ports_.slot(link, traffic_class);
    LinkCredits& credits = credits_[s];
    if (ports_.share(s).xoff || pauses_.muted(s)) {
        credits.withheld += blocks;
        return;
    }
    const LinkPort& back = ports_.back(link);
    credits.give(blocks, std::max(back.busy_until, run_.now) + back.latency);
    if (ports_.paused(s) && credits.wake_at == LinkCredits::never) await(link, traffic_class);
}

void PacketCredits::withhold(LinkId link, std::size_t traffic_class, bool starts) {
    ports_.share(ports_.slot(link, traffic_class)).xoff = starts;
    if (!starts) give_withheld(link, traffic_class);
}

void PacketCredits::give_withheld(LinkId link, std::size_t traffic_class) {
    LinkCredits& credits = credits_[ports_.slot(link, traffic_class)];
    give(link, traffic_class, std::exchange(credits.withheld, 0));
}

// The lifetime limit of this link's queues; 0: packets there wait as long as they must.
std::int64_t PacketCredits::lifetime(LinkId link) const {
    const CreditSpec& spec = run_.spec.credits;
    if (ports_.port(link).at_nic) return 0;
    return (ports_.to_switch(link) ? spec.lifetime : spec.leaf_lifetime).count();
}

bool PacketCredits::outlived(LinkId link, std::size_t traffic_class) {
    const std::size_t s = ports_.slot(link, traffic_class);
    LinkCredits& credits = credits_[s];
    credits.lifetime_pending = false;
    if (!ports_.paused(s)) return false;
    const std::int64_t over = credits.waits_since + lifetime(link);
    if (over <= run_.now) return true;
    credits.lifetime_pending = true;
    run_.schedule(over, PacketEvent::hoq_lifetime, link, traffic_class);
    return false;
}

bool PacketCredits::stalls(LinkId link, std::size_t traffic_class) {
    const CreditSpec& spec = run_.spec.credits;
    return ++credits_[ports_.slot(link, traffic_class)].outlived ==
           (ports_.to_switch(link) ? spec.stall_count : spec.leaf_stall_count);
}

void PacketCredits::stall(LinkId link, std::size_t traffic_class) {
    credits_[ports_.slot(link, traffic_class)].stalled = true;
    ports_.port(link).discarding |= static_cast<std::uint8_t>(1U << traffic_class);
    run_.schedule(run_.now + CreditSpec::stall_lifetimes * lifetime(link), PacketEvent::stall_over,
                  link, traffic_class);
}

void PacketCredits::end_stall(LinkId link, std::size_t traffic_class) {
    LinkCredits& credits = credits_[ports_.slot(link, traffic_class)];
    credits.stalled = false;
    credits.outlived = 0;
    LinkPort& port = ports_.port(link);
    if (!port.cut) port.discarding &= static_cast<std::uint8_t>(~(1U << traffic_class));
}

std::string PacketCredits::audit() const {
    if (credits_.empty()) return {};
    const PacketPool& packets = run_.packets;
    std::vector<std::uint8_t> off_links(packets.size());  // queued or free
    std::vector<std::int64_t> held(credits_.size());
    packets.each_free([&](std::uint32_t id) { off_links[id] = 1; });
    const auto hold = [&](const Packet& p) {
        held[ports_.slot(packets.last_link(p), p.traffic_class)] += blocks(p);
    };
    for (std::size_t s = 0; s < ports_.slots(); ++s) {
        for (std::uint32_t id = ports_.queue(s).head; id != PacketRun::none;
             id = packets.next(id)) {
            off_links[id] = 1;
            if (!ports_.port(ports_.link_of(s)).at_nic) hold(packets[id]);
        }
    }
    for (std::uint32_t id = 0; id < packets.size(); ++id) {
        if (off_links[id] == 0 && on_a_link(packets[id])) hold(packets[id]);
    }
    for (std::size_t s = 0; s < credits_.size(); ++s) {
        if (!ports_.has_credits(ports_.class_of(s))) continue;
        const LinkCredits& credits = credits_[s];
        if (credits.returned() + credits.withheld + held[s] != credits.total()) {
            return "a virtual lane's credits are not what its buffer has room for";
        }
    }
    return {};
}

}  // namespace railyard
