#pragma once
// A NIC whose host takes packets more slowly than the link brings them (a PCIe link that came up narrow,
// a busy memory): its receive buffer fills, and it stops its switch.

#include <cstdint>
#include <vector>

#include "models/fabric/topology.h"
#include "sim/units.h"

namespace railyard {

// Catalogue: [pfc] nic_*.
struct ReceiveBuffer {
    std::int64_t bytes = 512 * 1024;
    std::int64_t xoff_bytes = 256 * 1024;  // pauses beyond
    std::int64_t xon_bytes = 128 * 1024;   // goes on at or below
};

class PacketPauses;
class PacketPorts;
struct PacketRun;

class SlowReceivers {
  public:
    SlowReceivers(PacketRun& run, PacketPorts& ports, PacketPauses& pauses)
        : run_(run), ports_(ports), pauses_(pauses) {}

    // The NIC at the end of `link` takes packets at no more than this rate between these instants.
    void add(LinkId link, Bandwidth rate, Picoseconds from, Picoseconds until);
    // What the end of `link` takes now: what the link carries, or its host.
    Bandwidth rate(LinkId link) const;
    // How full the receive buffer at the end of `link` is: by so much its senders' windows are to be smaller.
    static constexpr std::int64_t whole_penalty = 128;
    std::int64_t penalty(LinkId link) const;
    // A packet has come by such a link: it is taken at once, finds no room, or waits.
    enum class Arrival : std::uint8_t { passes, overflows, waits };
    Arrival arrive(LinkId link, std::uint32_t id);
    // The packet that the host takes now.
    std::uint32_t take(LinkId link);

  private:
    bool times_waits() const;
    struct Receiver {
        std::int64_t from = 0;
        std::int64_t until = 0;
        Bandwidth rate;
        std::uint64_t ps_per_byte = 0;  // between them, in 2^-20 ps; else it takes all at once
        std::uint32_t head = UINT32_MAX;
        std::uint32_t tail = UINT32_MAX;  // of the packets in the buffer
        std::int64_t bytes = 0;
        std::uint8_t pausing = 0;  // classes
    };

    PacketRun& run_;
    PacketPorts& ports_;
    PacketPauses& pauses_;
    std::vector<Receiver> receivers_;
    std::vector<std::uint32_t> of_link_;  // empty: there is none
};

}  // namespace railyard
