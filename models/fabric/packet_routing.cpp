// PacketEngine: packets that choose their way at each switch.

#include <algorithm>
#include <utility>

#include "models/fabric/packet_engine.h"
#include "sim/check.h"
#include "sim/fingerprint.h"

namespace railyard {

void PacketEngine::choose_from(NextHops next_hops) {
    RY_CHECK(next_hops.hops_max() <= ChoosingPacket::hops_max);
    packets_.let_choose();
    next_hops_ = std::move(next_hops);
}

// The packet's way begins as its flow's path, but by link `first`.
void PacketEngine::start_way(std::uint32_t id, LinkId first) {
    Packet& packet = packets_[id];
    const Flow& f = flows_[packet.flow];
    ChoosingPacket& choosing = packets_.choosing(id);
    const LinkId* path = &paths_[f.first];
    choosing.to = links_[path[f.hops - 1]].to;
    std::copy(path, path + f.hops, choosing.way.begin());
    choosing.way.front() = first;
    packet.place = PacketPool::own_way;
    packet.flags |= static_cast<std::uint8_t>(static_cast<unsigned>(f.routing) << routing_shift);
}

// The first of a switch's outputs tells it from others: no two hash alike.
LinkId PacketEngine::hashed(const NextHops::Choice& choice, const ChoosingPacket& packet) const {
    const std::uint64_t key = std::uint64_t{packet.packet.flow} << 16 | packet.note;
    const std::uint64_t hash = mix_bits(mix_bits(key + spec_.seed) ^ choice.links.front()) >> 32;
    return choice.links[hash * choice.links.size() >> 32];
}

// At the switch where the packet has arrived. False: no way is left.
bool PacketEngine::choose_link(std::uint32_t id) {
    ChoosingPacket& choosing = packets_.choosing(id);
    const Packet& packet = choosing.packet;
    const std::size_t hop = packet.place - PacketPool::own_way;
    LinkId& next = choosing.way[hop];
    const NextHops::Choice choice = next_hops_.next(choosing.way[hop - 1], choosing.to);
    if (choice.links.empty()) return false;
    const auto routing = static_cast<PacketRouting>(packet.flags >> routing_shift);
    if (choice.links.size() == 1 || routing == PacketRouting::spray) {
        next = choice.links[choice.turn];
    } else if (routing == PacketRouting::random_spray) {
        next = choice.links[static_cast<std::size_t>(spraying_.below(choice.links.size()))];
    } else if (routing == PacketRouting::entropy) {
        next = hashed(choice, choosing);
    } else if (routing == PacketRouting::adaptive) {
        next = soonest(choice, packet.traffic_class);
    } else {
        Flowlet& flowlet = flowlets_[rarely_[packet.flow].first_flowlet + hop];
        // A flow that another switch has sent elsewhere is a new flowlet to this one.
        const bool here =
            std::find(choice.links.begin(), choice.links.end(), flowlet.link) != choice.links.end();
        if (!here || now_ - flowlet.last > spec_.flowlet_gap.count()) {
            flowlet.link = soonest(choice, packet.traffic_class);
        }
        flowlet.last = now_;
        next = flowlet.link;
    }
    return true;
}

// A packet that chooses brings along, in one line, what its switch needs of it. So what the next events touch
// is fetched in three stages: packets, ports and queues; what these name; and where a packet will go.
void PacketEngine::fetch_ways() const {
    constexpr std::size_t first = 14;
    constexpr std::size_t second = 9;
    constexpr std::size_t third = 4;
    const auto is = [](const TimingWheel::Event* event, What what) {
        return event != nullptr && what_of(event->kind) == what;
    };
    const TimingWheel::Event* event = wheel_.peek(first);
    if (is(event, What::arrival)) {
        fetch_line(packets_.address(event->id));
    } else if (is(event, What::port_free)) {
        fetch_line(&ports_[event->id]);
        fetch_line(&queues_[event->id * class_count_]);
        fetch_line(&queues_[(event->id + 1) * class_count_ - 1]);
    }
    event = wheel_.peek(second);
    if (is(event, What::arrival)) {
        fetch_switch(packets_[event->id]);
    } else if (is(event, What::port_free)) {
        each_head(event->id, [&](std::uint32_t head) { fetch_line(packets_.address(head)); });
    }
    event = wheel_.peek(third);
    if (is(event, What::arrival)) {
        fetch_output(packets_[event->id]);
    } else if (is(event, What::port_free) && !ports_[event->id].at_nic) {
        each_head(event->id, [&](std::uint32_t head) {
            const Packet& packet = packets_[head];
            fetch_line(&ingress_[slot(last_link(packet), packet.traffic_class)]);
        });
    }
}

// What a packet needs that is about to arrive, of the switch or the NIC.
void PacketEngine::fetch_switch(const Packet& packet) const {
    const LinkId in = last_link(packet);
    if (to_nic_[in] != 0) {
        fetch_line(&flows_[packet.flow]);
        return fetch_line(&flows_[packet.flow].expected);
    }
    if (packet.flags >> routing_shift != 0) {
        next_hops_.fetch(in, reinterpret_cast<const ChoosingPacket&>(packet).to);
    }
    fetch_line(&ingress_[slot(in, packet.traffic_class)]);
}

void PacketEngine::fetch_output(const Packet& packet) const {
    if (to_nic_[last_link(packet)] != 0) return;
    const LinkId out = packet.flags >> routing_shift != 0
                           ? likely_output(reinterpret_cast<const ChoosingPacket&>(packet))
                           : next_link(packet);
    if (out == none) return;
    fetch_line(&ports_[out]);
    fetch_line(&queues_[slot(out, packet.traffic_class)]);
}

// Where it is going to be sent, as far as that is known; else none.
LinkId PacketEngine::likely_output(const ChoosingPacket& packet) const {
    const LinkId in = last_link(packet.packet);
    const NextHops::Choice choice = next_hops_.peek(in, packet.to);
    if (choice.links.empty()) return none;
    const auto routing = static_cast<PacketRouting>(packet.packet.flags >> routing_shift);
    if (routing == PacketRouting::entropy) return hashed(choice, packet);
    return choice.links[choice.turn];
}

// Among equals, the one whose turn comes first; by steps, the turn begins at one drawn for each packet.
LinkId PacketEngine::soonest(const NextHops::Choice& choice, std::size_t traffic_class) {
    const std::size_t count = choice.links.size();
    const std::size_t begin = spec_.queue_step_bytes == 0
                                  ? choice.turn
                                  : static_cast<std::size_t>(spraying_.below(count));
    LinkId best = choice.links[begin];
    std::int64_t least = wait_at(best, traffic_class);
    for (std::size_t i = 1; i < count && least > 0; ++i) {
        const std::size_t turn = begin + i < count ? begin + i : begin + i - count;
        const std::int64_t wait = wait_at(choice.links[turn], traffic_class);
        if (wait >= least) continue;
        best = choice.links[turn];
        least = wait;
    }
    return best;
}

// How long the link's sender takes for what it holds of a class and for what it is sending. One that must
// not send comes after all that may, and one whose cable is down last.
std::int64_t PacketEngine::wait_at(LinkId link, std::size_t traffic_class) const {
    constexpr std::int64_t stopped = std::int64_t{1} << 60;
    constexpr std::int64_t down = 2 * stopped;
    const Port& port = ports_[link];
    const std::int64_t bytes = queues_[link * class_count_ + traffic_class].bytes;
    const std::int64_t step = spec_.queue_step_bytes;
    const std::int64_t known = step == 0 ? bytes : bytes / step * step;
    const std::int64_t queued = transfer_ps(known, port.ps_per_byte);
    std::int64_t busy = std::min(std::max<std::int64_t>(0, port.busy_until - now_), down);
    if (step != 0 && !port.cut) busy = 0;  // what is being sent is no queue
    const unsigned stops = port.discarding | (unsigned{port.paused} & ~unsigned{port.unpausable});
    return queued + busy + ((stops >> traffic_class & 1) != 0 ? stopped : 0);
}

// The way back, once the way there is known.
void PacketEngine::turn_way(std::uint32_t id) {
    ChoosingPacket& choosing = packets_.choosing(id);
    const auto end = choosing.way.begin() + (choosing.packet.place - PacketPool::own_way);
    std::reverse(choosing.way.begin(), end);
    std::transform(choosing.way.begin(), end, choosing.way.begin(), reverse_link);
    choosing.packet.place = PacketPool::own_way;
}

}  // namespace railyard
