#pragma once
// A packet window's traffic without packets.

#include <optional>
#include <vector>

#include "models/fabric/packet_window.h"

namespace railyard {

// When each flow would have ended at flow scale: fair shares of links, sprayed, hashed or adaptive as the
// packets are, and its acknowledgement back. A TCP connection is no faster than a core. None: faults and
// reductions in switches are not the same there.
std::optional<std::vector<Picoseconds>> fair_ends(Catalogue& catalogue, const Topology& topology,
                                                  const PacketProfile& profile,
                                                  const PacketWindow& window);

}  // namespace railyard
