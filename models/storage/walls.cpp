#include "models/storage/walls.h"

#include <algorithm>

namespace railyard {

namespace {

struct WallText {
    const char* name;
    const char* doc;
};
constexpr std::array<WallText, wall_count> wall_texts{{
    {"serialisation", "the ranks turn tensors into files no faster"},
    {"files", "a file reaches no more than its stripes or parts"},
    {"network", "the path between nodes and servers carries no more"},
    {"client", "the nodes' own NICs, or the system's client, carry no more"},
    {"store", "the servers give or take no more"},
    {"neighbours", "the servers are shared with other jobs"},
    {"metadata", "files are created or opened no faster"},
    {"outage", "nobody serves"},
    {"snapshot", "the state is copied to host memory"},
    {"local", "drives or memory of the nodes take no more"},
    {"back_pressure", "the checkpoint before is not out yet"},
    {"planned_stop", "a stop waits until a copy that outlasts it is there"},
}};

}  // namespace

std::string_view wall_name(Wall wall) {
    return wall_texts[static_cast<std::size_t>(wall)].name;
}

std::string_view wall_doc(Wall wall) {
    return wall_texts[static_cast<std::size_t>(wall)].doc;
}

void WallTimes::add(const WallTimes& other) {
    for (std::size_t i = 0; i < wall_count; ++i) times_[i] += other.times_[i];
}

Duration WallTimes::total() const {
    Duration sum{};
    for (const Duration time : times_) sum += time;
    return sum;
}

Wall WallTimes::largest() const {
    return static_cast<Wall>(std::max_element(times_.begin(), times_.end()) - times_.begin());
}

}  // namespace railyard
