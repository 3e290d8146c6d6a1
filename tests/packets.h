#pragma once
// Networks of packets that are put together by hand: every cable of one rate and latency.

#include <cstdint>
#include <utility>
#include <vector>

#include "models/fabric/fabric.h"

namespace railyard {

constexpr std::int64_t us = 1'000'000;                    // in ps
constexpr std::int64_t unending = std::int64_t{1} << 40;  // in bytes
constexpr Bandwidth gbit(std::int64_t n) {
    return Bandwidth::bits_per_second(n * 1'000'000'000);
}

inline PacketFlow flow_of(std::vector<LinkId> path, std::int64_t bytes = unending,
                          int traffic_class = 1) {
    PacketFlow f;
    f.path = std::move(path);
    f.bytes = bytes;
    f.traffic_class = traffic_class;
    return f;
}

struct PlainNetwork : PacketNetwork {
    Bandwidth rate;
    std::int64_t headroom_bytes;
    Picoseconds latency;

    explicit PlainNetwork(Bandwidth of_cables, std::int64_t headroom = 0,
                          Picoseconds delay = Picoseconds(us))
        : rate(of_cables), headroom_bytes(headroom), latency(delay) {}
    LinkId cable(VertexId a, VertexId b) {
        const LinkId link = add_cable(a, b, rate, latency);
        for (const LinkId way : {link, reverse_link(link)}) {
            links[way].headroom_bytes = headroom_bytes;
        }
        return link;
    }
    // From a new NIC to a switch, and from a switch to a new NIC.
    LinkId up(VertexId to) { return cable(add_nic(), to); }
    LinkId down(VertexId from) { return cable(from, add_nic()); }
};

struct TwoSwitches : PlainNetwork {
    VertexId left;
    VertexId right;
    LinkId middle;

    TwoSwitches(std::int64_t buffer, Bandwidth of_cables, std::int64_t headroom = 0)
        : PlainNetwork(of_cables, headroom),
          left(add_switch(buffer)),
          right(add_switch(buffer)),
          middle(cable(left, right)) {}
};

// Senders at one switch, one receiver.
struct Star {
    PlainNetwork network;
    LinkId down;
    std::vector<LinkId> ups;

    Star(int senders, std::int64_t buffer_bytes, Bandwidth rate, std::int64_t headroom_bytes = 0)
        : network(rate, headroom_bytes) {
        const VertexId sw = network.add_switch(buffer_bytes);
        down = network.down(sw);
        for (int i = 0; i < senders; ++i) ups.push_back(network.up(sw));
    }
    PacketFlow flow(std::size_t sender, std::int64_t bytes = unending,
                    int traffic_class = 1) const {
        return flow_of({ups[sender], down}, bytes, traffic_class);
    }
};

// NIC - switches - NIC, a rate for each link.
struct Chain {
    PacketNetwork network;
    std::vector<LinkId> path;

    explicit Chain(const std::vector<Bandwidth>& rates, Picoseconds latency = Picoseconds(us)) {
        VertexId at = network.add_nic();
        for (const Bandwidth& rate : rates) {
            const VertexId next =
                &rate == &rates.back() ? network.add_nic() : network.add_switch(16'000'000);
            path.push_back(network.add_cable(at, next, rate, latency));
            at = next;
        }
        for (PacketLink& l : network.links) l.headroom_bytes = 200'000;
    }
    Chain(std::size_t links, Bandwidth rate, Picoseconds latency = Picoseconds(us))
        : Chain(std::vector<Bandwidth>(links, rate), latency) {}
    PacketFlow flow(std::int64_t bytes = unending) const { return flow_of(path, bytes); }
};

}  // namespace railyard
