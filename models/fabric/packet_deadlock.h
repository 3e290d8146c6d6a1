#pragma once
// Who waits for whom, in a packet engine that stands between two events. A paused link waits for those links
// that its packets, at the switch at its end, are queued for. Both questions take time.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/fabric/packet_engine.h"

namespace railyard {

class PacketWaits {
  public:
    explicit PacketWaits(const PacketEngine& engine)
        : links_(engine.links()), ports_(links_.ports), packets_(engine.packets()) {}

    // Paused links each of which waits for the next, and the last for the first: a cyclic buffer dependency.
    // They stay paused even when all has drained that can. Empty: there is none.
    std::vector<LinkId> deadlock() const;
    // Why a link is paused: the link, the one that most of what it brought waits for, and so on. The last one
    // ends at a NIC that pauses it (or returns no credits); or is not paused: a bottleneck, at work; or
    // has occurred before: a cycle.
    std::vector<LinkId> pauser_chain(LinkId link, int traffic_class) const;

  private:
    bool stopped(std::size_t s) const;
    template <class Call>
    void each_waiting(const std::vector<std::uint8_t>& outs, Call call) const;
    bool stays_stopped(std::size_t s, bool room) const;
    std::vector<std::uint8_t> frozen() const;
    bool has_credits(std::size_t s) const { return ports_.has_credits(ports_.class_of(s)); }

    const PacketLinks& links_;
    const PacketPorts& ports_;
    const PacketPool& packets_;
};

}  // namespace railyard
