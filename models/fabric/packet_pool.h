#pragma once
// The packets of an engine, by number. A number is used again once its packet is gone.
//
// Packets that keep to their flow's path are four to a cache line. Where packets choose their way, a packet
// has a line of its own, with all that a switch needs of it: its way, and the packet behind it in its queue.

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/fabric/cache_lines.h"
#include "models/fabric/topology.h"
#include "sim/check.h"

namespace railyard {

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

class PacketPool {
  public:
    static constexpr std::uint32_t none = UINT32_MAX;
    static constexpr std::uint32_t own_way = std::uint32_t{1} << 31;

    // Packets remember when they were sent; acknowledgements what has come. While there is none.
    void keep(bool times, bool notes) {
        RY_CHECK(size() == 0);
        times_ = times;
        notes_ = notes;
    }
    // From now on packets may choose their way. While there is none.
    void let_choose() {
        RY_CHECK(size() == 0 || choose_);
        choose_ = true;
        shift_ = 6;
    }
    bool may_choose() const { return choose_; }
    std::size_t size() const { return choose_ ? choosing_.size() : packets_.size(); }

    // Its number is size() - 1.
    void add() {
        if (choose_) {
            choosing_.emplace_back();
            first_ = reinterpret_cast<std::byte*>(choosing_.data());
        } else {
            packets_.emplace_back();
            next_.push_back(none);
            if (times_) sent_at_.emplace_back();
            if (notes_) note_.emplace_back();
            first_ = reinterpret_cast<std::byte*>(packets_.data());
        }
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
    // All but their places in a queue.
    void swap(std::uint32_t a, std::uint32_t b) {
        if (!choose_) {
            std::swap(packets_[a], packets_[b]);
            if (times_) std::swap(sent_at_[a], sent_at_[b]);
            return;
        }
        std::swap(choosing_[a], choosing_[b]);
        std::swap(choosing_[a].next, choosing_[b].next);
    }

  private:
    bool choose_ = false;
    bool times_ = false;
    bool notes_ = false;
    int shift_ = 4;
    std::byte* first_ = nullptr;
    CacheLines<Packet> packets_;
    std::vector<std::uint32_t> next_;
    std::vector<std::int64_t> sent_at_;
    std::vector<std::uint32_t> note_;
    CacheLines<ChoosingPacket> choosing_;
};

}  // namespace railyard
