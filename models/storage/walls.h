#pragma once
// What a job waits for when it waits for storage.

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/units.h"

namespace railyard {

// What a transfer, or a checkpoint, waited for.
enum class Wall : std::uint8_t {
    serialisation,  // the ranks that turn tensors into files
    files,          // a file reaches no more than its stripes or parts
    network,        // the path between nodes and servers
    client,         // the nodes' NICs or the system's client
    store,          // the servers, with nobody else on them
    neighbours,     // the servers, shared with others
    metadata,       // creating or opening files
    outage,         // nobody serves
    snapshot,       // copying the state to host memory
    local,          // drives or memory of the nodes themselves
    back_pressure,  // the checkpoint before is not out yet
    planned_stop,   // a stop waits until a copy that outlasts it is there
};
constexpr std::size_t wall_count = 12;
std::string_view wall_name(Wall wall);

// Time by what it was spent waiting for.
class WallTimes {
  public:
    Duration& operator[](Wall wall) { return times_[static_cast<std::size_t>(wall)]; }
    Duration operator[](Wall wall) const { return times_[static_cast<std::size_t>(wall)]; }
    void add(const WallTimes& other);
    Duration total() const;
    Wall largest() const;  // the first of equals

  private:
    std::array<Duration, wall_count> times_{};
};

}  // namespace railyard
