#pragma once
// How much headroom a lossless (port, priority) needs: all that can still arrive after it has asked its
// neighbour to stop.

#include <string>

#include "models/catalogue/catalogue.h"
#include "sim/units.h"

namespace railyard {

struct Headroom {
    Bytes xon;   // below this the sender may go on
    Bytes xoff;  // room beyond it: the headroom proper
};

// SONiC's formula for Mellanox switches (buffer_headroom_mellanox.lua), constants in [headroom_formula].
//
//     room  = port MTU + 2 * length * speed / signal speed + MAC and PHY + the peer's reaction + the tile's
//     xoff  = lossless MTU + room * cells' overhead, up to the next KiB
//
// The overhead is that of the smallest packets, each of which takes whole cells. Speeds are those that the
// catalogue has pause quanta for; `eight_lanes` doubles XON.
Headroom sonic_headroom(Catalogue& catalogue, const std::string& switch_model, Bandwidth speed,
                        Metres cable, bool eight_lanes);

// What the HPCC authors' ns-3 gives it: three times what the link holds in one direction.
Bytes headroom_by_delay(Catalogue& catalogue, Bandwidth rate, Picoseconds latency);

}  // namespace railyard
