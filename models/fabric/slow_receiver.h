#pragma once
// A NIC whose host takes packets more slowly than the link brings them (a PCIe link that came up narrow,
// a busy memory): its receive buffer fills, and it stops its switch.

#include <cstdint>

namespace railyard {

// Catalogue: [pfc] nic_*.
struct ReceiveBuffer {
    std::int64_t bytes = 512 * 1024;
    std::int64_t xoff_bytes = 256 * 1024;  // pauses beyond
    std::int64_t xon_bytes = 128 * 1024;   // goes on at or below
};

struct SlowReceiver {
    std::int64_t from = 0;
    std::int64_t until = 0;
    std::uint64_t ps_per_byte = 0;  // between them, in 2^-20 ps; else it takes all at once
    std::uint32_t head = UINT32_MAX;
    std::uint32_t tail = UINT32_MAX;  // of the packets in the buffer
    std::int64_t bytes = 0;
    std::uint8_t pausing = 0;  // classes
};

}  // namespace railyard
