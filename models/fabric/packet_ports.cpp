#include "models/fabric/packet_ports.h"

#include <bit>

#include "sim/check.h"

namespace railyard {

PacketPorts::PacketPorts(PacketRun& run, const PacketNetwork& network)
    : run_(run),
      packets_(run.packets),
      class_count_(run.spec.classes.size()),
      links_(network.links),
      ends_(links_.size()),
      ports_(links_.size()),
      queues_(links_.size() * class_count_),
      turns_(queues_.size()),
      ingress_(queues_.size()) {
    RY_CHECK(class_count_ <= 8);
    const PacketSpec& spec = run.spec;
    for (std::size_t c = 0; c < class_count_; ++c) {
        if (spec.classes[c].flow_control == FlowControl::credits) credit_classes_ |= 1U << c;
        if (spec.classes[c].weight == 0) strict_classes_ |= 1U << c;
    }
    if (class_count_ - static_cast<std::size_t>(std::popcount(strict_classes_)) > 1) {
        deficits_.resize(queues_.size());
    }
    std::vector<std::int64_t> pool = network.buffer_bytes;
    std::vector<std::int64_t> headroom(pool.size());
    for (LinkId l = 0; l < links_.size(); ++l) {
        set_up(network, l);
        for (std::size_t c = 0; c < class_count_; ++c) {
            pool[links_[l].to] -= set_apart(l, c);
            headroom[links_[l].to] += ingress_[slot(l, c)].headroom_size;
        }
    }
    for (VertexId v = 0; v < pool.size(); ++v) {
        headroom[v] /= spec.buffer.headroom_oversubscription;
        pool[v] -= headroom[v];
        RY_CHECK(network.is_nic(v) || pool[v] >= 0);  // what is set apart fits
        buffers_.emplace_back(spec.buffer, pool[v], headroom[v]);
    }
}

void PacketPorts::set_up(const PacketNetwork& network, LinkId l) {
    const PacketLink& link = links_[l];
    LinkPort& port = ports_[l];
    port.latency = link.latency.count();
    if (link.rate.bits_per_second() > 0) port.ps_per_byte = ps_per_byte_of(link.rate);
    port.from = link.from;
    port.kmin_bytes = link.ecn.kmin_bytes;
    port.at_nic = network.is_nic(link.from);
    if (network.is_nic(link.to)) ends_[l] = LinkEnd::nic;
    for (std::size_t c = 0; c < class_count_; ++c) {
        if (!heeds_pauses(l, c)) port.unpausable |= static_cast<std::uint8_t>(1U << c);
    }
}

// Gives a class its own room at the end of a link; bytes that a switch's pool lacks for it, headroom apart.
std::int64_t PacketPorts::set_apart(LinkId l, std::size_t traffic_class) {
    const PacketLink& link = links_[l];
    if (!to_switch(l)) return 0;
    if (has_credits(traffic_class)) return link.vl_buffer_bytes;
    const bool pauses = run_.spec.classes[traffic_class].flow_control == FlowControl::pfc &&
                        (link.pausing >> traffic_class & 1) != 0;
    ingress_[slot(l, traffic_class)].headroom_size = pauses ? link.headroom_bytes : 0;
    return run_.spec.buffer.reserve_bytes;
}

std::int64_t PacketPorts::wait_at(LinkId link, std::size_t traffic_class) const {
    constexpr std::int64_t stopped = std::int64_t{1} << 60;
    constexpr std::int64_t down = 2 * stopped;
    const LinkPort& port = ports_[link];
    const std::int64_t bytes = queues_[slot(link, traffic_class)].bytes;
    const std::int64_t step = run_.spec.queue_step_bytes;
    const std::int64_t known = step == 0 ? bytes : bytes / step * step;
    const std::int64_t queued = transfer_ps(known, port.ps_per_byte);
    std::int64_t busy = std::min(std::max<std::int64_t>(0, port.busy_until - run_.now), down);
    if (step != 0 && !port.cut) busy = 0;  // what is being sent is no queue
    const unsigned stops = port.discarding | port.stopped();
    return queued + busy + ((stops >> traffic_class & 1) != 0 ? stopped : 0);
}

std::string PacketPorts::audit(std::uint64_t& queued) const {
    std::vector<std::int64_t> held(ingress_.size());
    for (std::size_t s = 0; s < queues_.size(); ++s) {
        std::int64_t bytes = 0;
        for (std::uint32_t id = queues_[s].head; id != PacketRun::none; id = packets_.next(id)) {
            const Packet& packet = packets_[id];
            bytes += packet.bytes;
            ++queued;
            if (ports_[link_of(s)].at_nic) continue;
            held[slot(packets_.last_link(packet), packet.traffic_class)] += packet.bytes;
        }
        if (bytes != queues_[s].bytes) return "a queue does not hold the bytes it counts";
    }
    for (std::size_t s = 0; s < ingress_.size(); ++s) {
        const IngressShare& share = ingress_[s];
        if (share.bytes + share.headroom_bytes != held[s])
            return "bytes are booked that are not there";
        if (share.headroom_bytes > share.headroom_size) return "a headroom is overdrawn";
    }
    return audit_buffers();
}

std::string PacketPorts::audit_buffers() const {
    std::vector<std::int64_t> in_pool(buffers_.size());
    std::vector<std::int64_t> in_headroom(buffers_.size());
    for (std::size_t s = 0; s < ingress_.size(); ++s) {
        const VertexId to = links_[link_of(s)].to;
        in_headroom[to] += ingress_[s].headroom_bytes;
        if (to_switch(link_of(s)) && !has_credits(class_of(s)))
            in_pool[to] += buffers_[to].in_pool(ingress_[s]);
    }
    for (VertexId v = 0; v < buffers_.size(); ++v) {
        if (in_pool[v] != buffers_[v].pool_used())
            return "a switch's pool is not what its ports hold";
        if (in_headroom[v] != buffers_[v].headroom_used())
            return "a switch's headroom is not what its ports hold";
        if (buffers_[v].headroom_overdrawn()) return "a switch's headroom is overdrawn";
        if (buffers_[v].threshold() < 0) return "a switch's pool is overdrawn";
    }
    return {};
}

}  // namespace railyard
