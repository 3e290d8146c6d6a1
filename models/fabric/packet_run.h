#pragma once
// What all parts of an engine share while it runs: its spec, its clock, the packets and what is counted.

#include <cstdint>

#include "models/fabric/packet_network.h"
#include "models/fabric/packet_pool.h"
#include "models/fabric/packet_spec.h"
#include "models/fabric/timing_wheel.h"

namespace railyard {

// What a byte takes on a link, in 2^-20 ps, and what so many take.
std::uint64_t ps_per_byte_of(Bandwidth rate);
constexpr std::int64_t transfer_ps(std::int64_t bytes, std::uint64_t ps_per_byte) {
    return static_cast<std::int64_t>((static_cast<std::uint64_t>(bytes) * ps_per_byte + 0xfffff) >>
                                     20);
}

enum class PacketEvent : std::uint8_t {
    arrival,       // of packet `id` at the end of its link
    port_free,     // link `id` can send again
    flow_start,    // flow `id`; all others are of queue pair `id`
    flow_ready,    // its pace allows another packet
    flow_timer,    // its congestion control's
    flow_timeout,  // nothing was acknowledged for long
    flow_probe,    // nothing was heard for a while
    xoff,          // a pause frame reaches the sender of link `id`
    xon,           // likewise, to go on
    pause_over,    // the pause of link `id` has run out, unless its pauser is back
    credits,       // link `id` has got those that it waits for
    hoq_lifetime,  // a packet may have waited too long for them
    cnp,           // packet `id`, a CNP, leaves
    link_down,
    link_up,
    host_pace,  // of the slow NIC at the end of link `id` changes
    host_took,  // a packet out of the slow NIC at the end of link `id`
    storm_start,
    storm_end,
    watchdog_poll,  // of switch `id`
    stall_over,     // of a lane of link `id`
    replay,         // the sender of link `id` hears of a packet that came with wrong bits
};

struct PacketRun {
    static constexpr std::uint32_t none = PacketPool::none;
    static constexpr std::int64_t unset = INT64_MAX;

    PacketRun(const PacketNetwork& network, PacketSpec given);

    Picoseconds time() const { return Picoseconds(now); }
    // An event's kind: what, and above it the class that it concerns.
    static PacketEvent what_of(std::uint8_t kind) {
        return static_cast<PacketEvent>(kind & ((1U << what_bits) - 1));
    }
    static std::size_t class_of(std::uint8_t kind) { return kind >> what_bits; }
    [[gnu::always_inline]] void schedule(std::int64_t at, PacketEvent what, std::uint32_t id,
                                         std::size_t traffic_class = 0) {
        wheel.push(
            at, id,
            static_cast<std::uint8_t>(static_cast<std::size_t>(what) | traffic_class << what_bits));
    }
    bool selective() const { return spec.recovery == Recovery::selective_repeat; }
    bool unordered() const { return spec.recovery == Recovery::unordered; }
    // Ultra Ethernet's NICs say of a packet that it has come before the host takes it.
    bool sends_receipts() const { return unordered() && spec.request_gap.count() > 0; }
    std::int64_t full_packet() const { return spec.payload_bytes + spec.header_bytes; }

    PacketSpec spec;
    TimingWheel wheel;
    std::int64_t now = 0;
    PacketPool packets;
    std::uint64_t on_links = 0;  // packets
    PacketTotals totals;

  private:
    static constexpr int what_bits = 5;
};

}  // namespace railyard
