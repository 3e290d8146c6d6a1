#include "models/fabric/packet_ways.h"

#include <algorithm>
#include <utility>

#include "sim/check.h"
#include "sim/fingerprint.h"

namespace railyard {

void PacketWays::choose_from(NextHops next_hops) {
    RY_CHECK(next_hops.hops_max() <= ChoosingPacket::hops_max);
    run_.packets.let_choose();
    next_hops_ = std::move(next_hops);
}

void PacketWays::expect(std::uint32_t queue_pair, PacketRouting routing, std::size_t hops) {
    RY_CHECK(!next_hops_.empty() && hops <= ChoosingPacket::hops_max);
    if (routing != PacketRouting::flowlet) return;
    first_flowlet_.resize(queue_pair + 1);
    first_flowlet_[queue_pair] = static_cast<std::uint32_t>(flowlets_.size());
    flowlets_.resize(flowlets_.size() + ChoosingPacket::hops_max);
}

void PacketWays::begin(std::uint32_t id, std::size_t hops, LinkId first, PacketRouting routing) {
    ChoosingPacket& choosing = run_.packets.choosing(id);
    Packet& packet = choosing.packet;
    const LinkId* path = &run_.packets.link_at(packet.place);
    choosing.to = ports_.link(path[hops - 1]).to;
    std::copy(path, path + hops, choosing.way.begin());
    choosing.way.front() = first;
    packet.place = PacketPool::own_way;
    packet.flags |= static_cast<std::uint8_t>(static_cast<unsigned>(routing) << routing_shift);
}

// The first of a switch's outputs tells it from others: no two hash alike.
LinkId PacketWays::hashed(const NextHops::Choice& choice, const ChoosingPacket& packet) const {
    const std::uint64_t key = std::uint64_t{packet.packet.flow} << 16 | packet.note;
    const std::uint64_t hash =
        mix_bits(mix_bits(key + run_.spec.seed) ^ choice.links.front()) >> 32;
    return choice.links[hash * choice.links.size() >> 32];
}

bool PacketWays::choose(std::uint32_t id) {
    ChoosingPacket& choosing = run_.packets.choosing(id);
    const Packet& packet = choosing.packet;
    const std::size_t hop = packet.place - PacketPool::own_way;
    LinkId& next = choosing.way[hop];
    const NextHops::Choice choice = next_hops_.next(choosing.way[hop - 1], choosing.to);
    if (choice.links.empty()) return false;
    const auto routing = static_cast<PacketRouting>(packet.flags >> routing_shift);
    if (choice.links.size() == 1 || routing == PacketRouting::spray) {
        next = choice.links[choice.turn];
    } else if (routing == PacketRouting::random_spray) {
        next = choice.links[spraying_.below(choice.links.size())];
    } else if (routing == PacketRouting::entropy) {
        next = hashed(choice, choosing);
    } else if (routing == PacketRouting::adaptive) {
        next = soonest(choice, packet.traffic_class);
    } else {
        Flowlet& flowlet = flowlets_[first_flowlet_[packet.flow] + hop];
        // A flow that another switch has sent elsewhere is a new flowlet to this one.
        const bool here = std::ranges::find(choice.links, flowlet.link) != choice.links.end();
        if (!here || run_.now - flowlet.last > run_.spec.flowlet_gap.count()) {
            flowlet.link = soonest(choice, packet.traffic_class);
        }
        flowlet.last = run_.now;
        next = flowlet.link;
    }
    return true;
}

LinkId PacketWays::likely_output(const ChoosingPacket& packet) const {
    const LinkId in = run_.packets.last_link(packet.packet);
    const NextHops::Choice choice = next_hops_.peek(in, packet.to);
    if (choice.links.empty()) return PacketRun::none;
    const auto routing = static_cast<PacketRouting>(packet.packet.flags >> routing_shift);
    if (routing == PacketRouting::entropy) return hashed(choice, packet);
    return choice.links[choice.turn];
}

// Among equals, the one whose turn comes first; by steps, the turn begins at one drawn for each packet.
LinkId PacketWays::soonest(const NextHops::Choice& choice, std::size_t traffic_class) {
    const std::size_t count = choice.links.size();
    const std::size_t begin = run_.spec.queue_step_bytes == 0
                                  ? choice.turn
                                  : static_cast<std::size_t>(spraying_.below(count));
    LinkId best = choice.links[begin];
    std::int64_t least = ports_.wait_at(best, traffic_class);
    for (std::size_t i = 1; i < count && least > 0; ++i) {
        const std::size_t turn = begin + i < count ? begin + i : begin + i - count;
        const std::int64_t wait = ports_.wait_at(choice.links[turn], traffic_class);
        if (wait >= least) continue;
        best = choice.links[turn];
        least = wait;
    }
    return best;
}

void PacketWays::turn_back(std::uint32_t id) {
    ChoosingPacket& choosing = run_.packets.choosing(id);
    const auto end = choosing.way.begin() + (choosing.packet.place - PacketPool::own_way);
    std::reverse(choosing.way.begin(), end);
    std::transform(choosing.way.begin(), end, choosing.way.begin(), reverse_link);
    choosing.packet.place = PacketPool::own_way;
}

}  // namespace railyard
