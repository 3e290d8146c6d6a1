#pragma once
// The packets of an engine, by number, and the paths that they take. A number is used again once its packet
// is gone.
//
// Packets that keep to their flow's path are four to a cache line. Where packets choose their way, a packet
// has a line of its own, with all that a switch needs of it: its way, and the packet behind it in its queue.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/fabric/cache_lines.h"
#include "models/fabric/congestion.h"
#include "models/fabric/topology.h"
#include "models/fabric/unordered_delivery.h"
#include "sim/check.h"

namespace railyard {

constexpr std::uint8_t flag_ack = 1;
constexpr std::uint8_t flag_marked = 2;  // data: congestion experienced; ACK: CNP
constexpr std::uint8_t flag_nack = 4;
constexpr std::uint8_t flag_asks = 8;      // to be acknowledged at once
constexpr std::uint8_t flag_trimmed = 16;  // data: its header alone
// On a trimmed packet, and the report of one: that was on the last link.
constexpr std::uint8_t flag_last_hop = flag_asks;
// On a header that no switch has cut off: its sender asks what has come.
constexpr std::uint8_t flag_request = flag_nack;
// On an acknowledgement: its packet is in the receiver's NIC, and waits there for the host.
constexpr std::uint8_t flag_receipt = flag_trimmed;
constexpr int routing_shift = 5;  // above it a data packet's routing

// `place` is that of the next link to take: along the paths of flows, forwards over its links, then backwards
// over their reverses; or, with `own_way`, in the packet's own way.
struct alignas(16) Packet {
    std::uint32_t place = 0;
    std::uint32_t flow = 0;
    // A data packet's own; an ACK's: the one waited for, or with delivery in any order its report.
    std::uint32_t number = 0;
    std::uint16_t bytes = 0;  // on the wire
    std::uint8_t traffic_class = 0;
    std::uint8_t flags = 0;
};

// A packet that chooses its way, and where it has come and will go: the links that it has taken, then
// the one to take next. The way back is written over the way there.
struct alignas(cache_line) ChoosingPacket {
    Packet packet;
    std::int64_t sent_at = 0;
    static constexpr std::size_t hops_max = 6;  // three tiers up and down
    std::array<LinkId, hops_max + 1> way{};     // so that one place beyond the last is still inside
    VertexId to = 0;                            // its NIC
    std::uint32_t next = UINT32_MAX;
    std::uint32_t note =
        0;  // its entropy value; of an ACK of selective repeat: the packet that came
};
static_assert(sizeof(ChoosingPacket) == cache_line);

// What packets remember.
struct PacketMemory {
    bool times = false;      // when they were sent
    bool notes = false;      // of an acknowledgement: what has come
    bool telemetry = false;  // what switches wrote into them
    bool wanted = false;     // what they say to their receiver
    bool reports = false;    // an acknowledgement's `number` is that of a report
};

class PacketPool {
  public:
    static constexpr std::uint32_t none = UINT32_MAX;
    static constexpr std::uint32_t own_way = std::uint32_t{1} << 31;

    // While there is none.
    void keep(const PacketMemory& memory) {
        RY_CHECK(size() == 0);
        memory_ = memory;
    }
    // From now on packets may choose their way. While there is none.
    void let_choose() {
        RY_CHECK(size() == 0 || choose_);
        choose_ = true;
        shift_ = 6;
    }
    bool may_choose() const { return choose_; }
    std::size_t size() const { return choose_ ? choosing_.size() : packets_.size(); }

    std::uint32_t take() {
        if (free_ == none) return add();
        const std::uint32_t id = free_;
        free_ = next(id);
        return id;
    }
    // With the report that it has.
    void free(std::uint32_t id) {
        const Packet& packet = (*this)[id];
        if (memory_.reports && (packet.flags & flag_ack) != 0) {
            free_reports_.push_back(packet.number);
        }
        next(id) = free_;
        free_ = id;
    }
    // Another one, which remembers the same.
    std::uint32_t copy(std::uint32_t id);
    // For each that is free: call(number).
    template <class Call>
    void each_free(const Call& call) const {
        for (std::uint32_t id = free_; id != none; id = next(id)) call(id);
    }
    Packet& operator[](std::uint32_t id) { return *reinterpret_cast<Packet*>(address(id)); }
    const Packet& operator[](std::uint32_t id) const {
        return *reinterpret_cast<const Packet*>(address(id));
    }
    // To fetch it early, even where there is none: by numbers, as pointers may not leave their array.
    std::byte* address(std::uint32_t id) const {
        return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(first_) +
                                            (std::uintptr_t{id} << shift_));
    }

    std::uintptr_t next_address(std::uint64_t id) const {
        return reinterpret_cast<std::uintptr_t>(next_.data()) + id * sizeof(next_[0]);
    }

    // The packet behind it in its queue, or in the list of those that are free.
    std::uint32_t& next(std::uint32_t id) { return choose_ ? choosing_[id].next : next_[id]; }
    std::uint32_t next(std::uint32_t id) const { return choose_ ? choosing_[id].next : next_[id]; }
    std::int64_t& sent_at(std::uint32_t id) {
        return choose_ ? choosing_[id].sent_at : sent_at_[id];
    }
    std::uint32_t& note(std::uint32_t id) { return choose_ ? choosing_[id].note : note_[id]; }
    // Where packets may choose.
    ChoosingPacket& choosing(std::uint32_t id) { return choosing_[id]; }
    const ChoosingPacket& choosing(std::uint32_t id) const { return choosing_[id]; }
    // One place for each hop, where packets remember telemetry.
    std::size_t telemetry_hops() const { return telemetry_hops_; }
    void widen_telemetry(std::size_t hops);
    HopTelemetry* telemetry(std::uint32_t id) { return telemetry_.data() + id * telemetry_hops_; }
    bool keeps_times() const { return memory_.times; }
    bool tells_receivers() const { return memory_.wanted; }
    std::int64_t& wanted(std::uint32_t id) { return wanted_[id]; }
    DeliveryReport& report(std::uint32_t number) { return reports_[number]; }
    std::uint32_t take_report();
    // All but their places in a queue.
    void swap(std::uint32_t a, std::uint32_t b);

    // A path to follow there and back; its first place.
    std::uint32_t add_path(const std::vector<LinkId>& path);
    const LinkId& link_at(std::size_t place) const { return paths_[place]; }
    // Where the next link is that a packet of the pool takes; before it the last one that it took.
    const LinkId* place_of(const Packet& packet) const {
        if ((packet.place & own_way) == 0) return &paths_[packet.place];
        const auto& choosing = reinterpret_cast<const ChoosingPacket&>(packet);
        return &choosing.way[packet.place - own_way];
    }
    LinkId next_link(const Packet& packet) const { return *place_of(packet); }
    LinkId last_link(const Packet& packet) const { return *(place_of(packet) - 1); }

  private:
    std::uint32_t add();

    PacketMemory memory_;
    bool choose_ = false;
    int shift_ = 4;
    std::byte* first_ = nullptr;
    CacheLines<Packet> packets_;
    std::vector<std::uint32_t> next_;
    std::vector<std::int64_t> sent_at_;
    std::vector<std::uint32_t> note_;
    CacheLines<ChoosingPacket> choosing_;
    std::uint32_t free_ = none;            // the first of a list of them
    std::vector<HopTelemetry> telemetry_;  // of each packet, telemetry_hops_ places
    std::size_t telemetry_hops_ = 0;
    std::vector<std::int64_t> wanted_;
    std::vector<DeliveryReport> reports_;
    std::vector<std::uint32_t> free_reports_;
    std::vector<LinkId> paths_;
};

}  // namespace railyard
