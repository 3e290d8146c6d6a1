#pragma once
// Packets that choose their way at each switch: from what, by which rule, and the way back.

#include <cstdint>
#include <vector>

#include "models/fabric/next_hops.h"
#include "models/fabric/packet_ports.h"
#include "sim/rng.h"

namespace railyard {

class PacketWays {
  public:
    PacketWays(PacketRun& run, const PacketPorts& ports)
        : run_(run), ports_(ports), spraying_(run.spec.seed, 0, "packet/spray") {}

    // Again when they have changed.
    void choose_from(NextHops next_hops);
    // A queue pair whose packets are routed so.
    void expect(std::uint32_t queue_pair, PacketRouting routing, std::size_t hops);
    // Whether a port of a NIC leads to another one.
    bool leads(LinkId port, VertexId target) const { return next_hops_.leads(port, target); }

    // A packet's way begins as the path of so many hops from this place on, but by link `first`.
    void begin(std::uint32_t id, std::size_t hops, LinkId first, PacketRouting routing);
    // At the switch where the packet has arrived. False: no way is left.
    bool choose(std::uint32_t id);
    // The way back, once the way there is known.
    void turn_back(std::uint32_t id);

    // Where it is going to be sent, as far as that is known; else none.
    LinkId likely_output(const ChoosingPacket& packet) const;
    void fetch(LinkId in, VertexId to) const { next_hops_.fetch(in, to); }

  private:
    struct Flowlet {
        LinkId link = PacketRun::none;
        std::int64_t last = 0;  // packet
    };

    LinkId hashed(const NextHops::Choice& choice, const ChoosingPacket& packet) const;
    LinkId soonest(const NextHops::Choice& choice, std::size_t traffic_class);

    PacketRun& run_;
    const PacketPorts& ports_;
    NextHops next_hops_;
    std::vector<Flowlet> flowlets_;             // one for each hop of those queue pairs
    std::vector<std::uint32_t> first_flowlet_;  // by queue pair
    RandomStream spraying_;
};

}  // namespace railyard
