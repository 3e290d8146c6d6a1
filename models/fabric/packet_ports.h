#pragma once
// The two ends of every link: the sender's port, with a queue for each class and at a NIC the turns of its
// queue pairs; and what the receiving switch has booked for the link in its buffer.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "models/fabric/cache_lines.h"
#include "models/fabric/packet_run.h"
#include "models/fabric/ring.h"
#include "models/fabric/switch_buffer.h"

namespace railyard {

// Queue pairs of a NIC that may send, in turn.
using Turns = Ring<std::uint32_t, 4>;

struct alignas(64) LinkPort {
    std::int64_t busy_until = 0;
    std::int64_t latency = 0;
    std::uint64_t ps_per_byte = 0;  // in 2^-20 ps
    std::int64_t sent_bytes = 0;
    VertexId from = 0;
    std::uint32_t faults = PacketRun::none;  // its place among them
    std::int64_t kmin_bytes = 0;             // its queues' packets may be marked beyond
    bool pending = false;                    // an event for it is scheduled
    bool at_nic = false;                     // sent by a NIC
    std::uint8_t waiting = 0;                // classes that have something to send
    std::uint8_t paused = 0;                 // classes that must not
    std::uint8_t unpausable = 0;  // classes whose pauses the switch or its watchdog ignores
    std::uint8_t discarding = 0;  // classes that it throws away
    bool cut = false;             // because its cable is down
    std::uint8_t last_class = 0;

    unsigned stopped() const { return unsigned{paused} & ~unsigned{unpausable}; }
    unsigned sendable() const { return waiting & ~stopped(); }
};

struct alignas(32) LinkQueue {
    std::uint32_t head = PacketRun::none;
    std::uint32_t tail = PacketRun::none;
    std::int64_t bytes = 0;
    std::int64_t bytes_max = 0;
    std::int64_t taken = 0;  // packets that have left it, ever
};

// What a link leads to.
enum class LinkEnd : std::uint8_t { at_switch, nic, slow_nic };

class PacketPorts {
  public:
    PacketPorts(PacketRun& run, const PacketNetwork& network);

    // A link and a class.
    std::size_t slot(LinkId link, std::size_t traffic_class) const {
        return link * class_count_ + traffic_class;
    }
    LinkId link_of(std::size_t s) const { return static_cast<LinkId>(s / class_count_); }
    std::size_t class_of(std::size_t s) const { return s % class_count_; }
    std::size_t slots() const { return queues_.size(); }
    std::size_t classes() const { return class_count_; }
    std::size_t links() const { return links_.size(); }

    const PacketLink& link(LinkId l) const { return links_[l]; }
    bool to_switch(LinkId l) const { return ends_[l] == LinkEnd::at_switch; }
    LinkEnd& end(LinkId l) { return ends_[l]; }
    LinkPort& port(LinkId l) { return ports_[l]; }
    const LinkPort& port(LinkId l) const { return ports_[l]; }
    LinkPort& back(LinkId l) { return ports_[reverse_link(l)]; }
    LinkQueue& queue(std::size_t s) { return queues_[s]; }
    const LinkQueue& queue(std::size_t s) const { return queues_[s]; }
    const Turns& turns(std::size_t s) const { return turns_[s]; }
    IngressShare& share(std::size_t s) { return ingress_[s]; }
    const IngressShare& share(std::size_t s) const { return ingress_[s]; }
    const CacheLines<IngressShare>& shares() const { return ingress_; }
    SwitchBuffer& buffer(VertexId v) { return buffers_[v]; }
    const std::vector<SwitchBuffer>& buffers() const { return buffers_; }

    bool has_credits(std::size_t traffic_class) const {
        return credit_classes_ != 0 && (credit_classes_ >> traffic_class & 1) != 0;
    }
    bool paused(std::size_t s) const {
        return (ports_[s / class_count_].paused >> (s % class_count_) & 1) != 0;
    }
    // False where a switch that sends on `link` has no PFC for a class that has it elsewhere.
    bool heeds_pauses(LinkId link, std::size_t traffic_class) const {
        return run_.spec.classes[traffic_class].flow_control != FlowControl::pfc ||
               (links_[reverse_link(link)].pausing >> traffic_class & 1) != 0;
    }

    // A packet to the end of its class's queue, and the first one out of a queue that is not empty.
    void push(LinkId link, std::uint32_t id);
    std::uint32_t pop(LinkId link, std::size_t traffic_class);
    // Likewise the turn of a queue pair at its NIC.
    void push_turn(LinkId link, std::size_t traffic_class, std::uint32_t queue_pair) {
        turns_[slot(link, traffic_class)].push(queue_pair);
        ports_[link].waiting |= static_cast<std::uint8_t>(1U << traffic_class);
    }
    std::uint32_t pop_turn(LinkId link, std::size_t traffic_class);
    // Which class sends, among those that can; and it has sent so many bytes.
    std::size_t next_class(LinkId link, unsigned sendable);
    void charge(LinkId link, std::size_t traffic_class, std::int64_t bytes) {
        if (!deficits_.empty()) deficits_[slot(link, traffic_class)] -= bytes;
    }
    // How long the link's sender takes for what it holds of a class and for what it is sending. One that must
    // not send comes after all that may, and one whose cable is down last.
    std::int64_t wait_at(LinkId link, std::size_t traffic_class) const;

    // Empty when queues and buffers hold what they count; else what is wrong. How many packets wait.
    std::string audit(std::uint64_t& queued) const;

  private:
    void set_up(const PacketNetwork& network, LinkId link);
    std::int64_t set_apart(LinkId link, std::size_t traffic_class);
    std::string audit_buffers() const;

    const PacketRun& run_;
    PacketPool& packets_;
    std::size_t class_count_;
    unsigned credit_classes_ = 0;
    unsigned strict_classes_ = 0;
    std::vector<PacketLink> links_;
    std::vector<LinkEnd> ends_;
    std::vector<LinkPort> ports_;
    CacheLines<LinkQueue> queues_;        // by slot
    std::vector<std::int64_t> deficits_;  // bytes left of a class's turn; empty: none share
    std::vector<Turns> turns_;            // by slot, of NICs
    CacheLines<IngressShare> ingress_;    // by slot, of the link's receiving end
    std::vector<SwitchBuffer> buffers_;   // by vertex
};

inline void PacketPorts::push(LinkId link, std::uint32_t id) {
    const Packet& packet = packets_[id];
    LinkQueue& queue = queues_[slot(link, packet.traffic_class)];
    packets_.next(id) = PacketRun::none;
    if (queue.head == PacketRun::none) {
        queue.head = id;
    } else {
        packets_.next(queue.tail) = id;
    }
    queue.tail = id;
    queue.bytes += packet.bytes;
    queue.bytes_max = std::max(queue.bytes_max, queue.bytes);
    ports_[link].waiting |= static_cast<std::uint8_t>(1U << packet.traffic_class);
}

inline std::uint32_t PacketPorts::pop(LinkId link, std::size_t traffic_class) {
    const std::size_t s = slot(link, traffic_class);
    LinkQueue& queue = queues_[s];
    const std::uint32_t id = queue.head;
    queue.head = packets_.next(id);
    if (queue.head != PacketRun::none) fetch_line(&packets_[queue.head]);
    queue.bytes -= packets_[id].bytes;
    ++queue.taken;
    LinkPort& port = ports_[link];
    if (queue.head == PacketRun::none && (!port.at_nic || turns_[s].empty())) {
        port.waiting &= static_cast<std::uint8_t>(~(1U << traffic_class));
    }
    return id;
}

inline std::uint32_t PacketPorts::pop_turn(LinkId link, std::size_t traffic_class) {
    const std::size_t s = slot(link, traffic_class);
    const std::uint32_t queue_pair = turns_[s].first();
    turns_[s].pop();
    if (turns_[s].empty() && queues_[s].head == PacketRun::none) {
        ports_[link].waiting &= static_cast<std::uint8_t>(~(1U << traffic_class));
    }
    return queue_pair;
}

// Strict classes first. The others in turn: a class may go on until it has sent its weight in full packets.
// What the last of them is too long counts against its next turn; what is left of a turn lapses.
inline std::size_t PacketPorts::next_class(LinkId link, unsigned sendable) {
    const unsigned strict = sendable & strict_classes_;
    if (strict != 0) return static_cast<std::size_t>(std::countr_zero(strict));
    if (deficits_.empty()) return static_cast<std::size_t>(std::countr_zero(sendable));
    LinkPort& port = ports_[link];
    std::int64_t* left = &deficits_[link * class_count_];
    const std::size_t last = port.last_class;
    if ((sendable >> last & 1) != 0 && left[last] > 0) return last;
    left[last] = std::min<std::int64_t>(left[last], 0);
    const unsigned later = sendable & ~((2U << last) - 1U);
    const int next = std::countr_zero(later != 0 ? later : sendable);
    const auto c = static_cast<std::size_t>(next);
    left[c] += run_.spec.classes[c].weight * run_.full_packet();
    port.last_class = static_cast<std::uint8_t>(next);
    return c;
}

}  // namespace railyard
