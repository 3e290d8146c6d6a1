// PacketEngine: packets that choose their way at each switch.

#include <algorithm>
#include <bit>
#include <utility>

#include "models/fabric/packet_engine.h"
#include "sim/check.h"
#include "sim/fingerprint.h"

namespace railyard {

void PacketEngine::choose_from(NextHops next_hops) {
    const std::uint32_t places = std::bit_ceil(2U * next_hops.hops_max() + 2U);
    RY_CHECK(way_places_ == 0 || way_places_ == places);
    way_places_ = places;
    next_hops_ = std::move(next_hops);
}

// Gives the packet a path of its own to write its way into, a copy of its flow's. A packet's number keeps it
// for good. It leaves by link `first`.
void PacketEngine::start_way(std::uint32_t id, LinkId first) {
    Packet& packet = packets_[id];
    const Flow& f = flows_[packet.flow];
    if (ways_.size() <= id) ways_.resize(packets_.size(), none);
    if (ways_[id] == none) {
        const std::size_t place = (paths_.size() + way_places_ - 1) & ~std::size_t{way_places_ - 1};
        ways_[id] = static_cast<std::uint32_t>(place);
        paths_.resize(place + way_places_);
    }
    LinkId* way = &paths_[ways_[id]];
    const LinkId* path = &paths_[f.first];
    way[0] = links_[path[f.hops - 1]].to;
    std::copy(path, path + f.hops, way + 1);
    way[1] = first;
    packet.place = ways_[id] + 1;
    packet.flags |= static_cast<std::uint8_t>(static_cast<unsigned>(f.routing) << routing_shift);
}

// At the switch where the packet has arrived. False: no way is left.
bool PacketEngine::choose_link(std::uint32_t id) {
    const Packet& packet = packets_[id];
    LinkId& next = paths_[packet.place];
    const NextHops::Choice choice =
        next_hops_.next(paths_[packet.place - 1], paths_[way_of(packet)]);
    if (choice.links.empty()) return false;
    const auto routing = static_cast<PacketRouting>(packet.flags >> routing_shift);
    if (choice.links.size() == 1 || routing == PacketRouting::spray) {
        next = choice.links[choice.turn];
    } else if (routing == PacketRouting::random_spray) {
        next = choice.links[static_cast<std::size_t>(spraying_.below(choice.links.size()))];
    } else if (routing == PacketRouting::entropy) {
        // The first of a switch's outputs tells it from others: no two hash alike.
        const std::uint64_t key = std::uint64_t{packet.flow} << 16 | reports_[id].entropy;
        const std::uint64_t hash =
            mix_bits(mix_bits(key + spec_.seed) ^ choice.links.front()) >> 32;
        next = choice.links[hash * choice.links.size() >> 32];
    } else if (routing == PacketRouting::adaptive) {
        next = soonest(choice, packet.traffic_class);
    } else {
        const std::size_t hop = packet.place - way_of(packet) - 1;
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

// Each packet has its way in a cache line of its own: that of a packet that will arrive, and of one that will
// leave its queue, once the queue's head is there.
void PacketEngine::fetch_ways() const {
    if (const auto* later = wheel_.peek(8); later && what_of(later->kind) == What::port_free) {
        const Queue* queue = &queues_[later->id * class_count_];
        __builtin_prefetch(queue);
        __builtin_prefetch(queue + class_count_ - 1);
    }
    const auto each_head = [&](std::size_t places, const auto& visit) {
        const auto* event = wheel_.peek(places);
        if (!event || what_of(event->kind) != What::port_free) return;
        for (std::size_t c = 0; c < class_count_; ++c) {
            const std::uint32_t head = queues_[event->id * class_count_ + c].head;
            if (head != none) visit(packets_[head]);
        }
    };
    each_head(5, [](const Packet& packet) { __builtin_prefetch(&packet); });
    each_head(3, [&](const Packet& packet) { __builtin_prefetch(&paths_[packet.place - 1]); });
    if (const auto* soon = wheel_.peek(3); soon && what_of(soon->kind) == What::arrival) {
        __builtin_prefetch(&paths_[packets_[soon->id].place]);
    }
    if (const auto* next = wheel_.peek(2); next && what_of(next->kind) == What::arrival) {
        const Packet& packet = packets_[next->id];
        if (packet.flags >> routing_shift != 0) {
            next_hops_.fetch(paths_[packet.place - 1], paths_[way_of(packet)]);
        }
    }
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
void PacketEngine::turn_way(Packet& packet) {
    const std::size_t hops = packet.place - way_of(packet) - 1;
    LinkId* end = &paths_[packet.place];
    for (std::size_t i = 0; i < hops; ++i) end[i] = reverse_link(*(end - 1 - i));
}

}  // namespace railyard
