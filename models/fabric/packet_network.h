#pragma once
// A network as the packet scale sees it: NICs, switches with their buffers, cables as pairs of links.

#include <cstdint>
#include <vector>

#include "models/fabric/ecn.h"
#include "models/fabric/topology.h"

namespace railyard {

struct PacketLink {
    VertexId from = 0;
    VertexId to = 0;
    Bandwidth rate;
    Picoseconds latency{};  // propagation, and what the receiving end takes to handle a packet
    EcnProfile ecn;         // of the queues at `from`
    std::int64_t headroom_bytes = 0;  // at `to`, for each class with PFC
    std::int64_t vl_buffer_bytes =
        0;                      // at `to`, for each class with credits (InfiniBand's virtual lane)
    double bit_error_rate = 0;  // after error correction
    std::uint8_t pausing = 0xff;  // bit c: `to` sends and heeds pauses for class c, if that has PFC
};

struct PacketNetwork {
    std::vector<std::int64_t> buffer_bytes;  // of each vertex; 0: a NIC
    std::vector<PacketLink> links;           // l and reverse_link(l) are one cable

    VertexId add_nic() { return add_switch(0); }
    VertexId add_switch(std::int64_t bytes) {
        buffer_bytes.push_back(bytes);
        return static_cast<VertexId>(buffer_bytes.size() - 1);
    }
    // The link from a to b.
    LinkId add_cable(VertexId a, VertexId b, Bandwidth rate, Picoseconds latency) {
        links.push_back({a, b, rate, latency, {}, 0, 0});
        links.push_back({b, a, rate, latency, {}, 0, 0});
        return static_cast<LinkId>(links.size() - 2);
    }
    bool is_nic(VertexId v) const { return buffer_bytes[v] == 0; }

    // The links of a topology keep their numbers and have the rate at which they work; each switch gets this
    // much buffer.
    static PacketNetwork of(const Topology& topology, std::int64_t switch_buffer_bytes) {
        PacketNetwork network;
        for (VertexId v = 0; v < topology.vertex_count(); ++v) {
            network.add_switch(topology.level(v) == 0 ? 0 : switch_buffer_bytes);
        }
        for (const Link& link : topology.links()) {
            const auto rate =
                Bandwidth::bits_per_second(static_cast<std::int64_t>(link.bytes_per_s * 8));
            network.links.push_back({link.from, link.to, rate, link.latency, {}, 0, 0});
        }
        return network;
    }
};

}  // namespace railyard
