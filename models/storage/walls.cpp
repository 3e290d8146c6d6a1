#include "models/storage/walls.h"

#include <algorithm>

#include "sim/text.h"

namespace railyard {

namespace {

constexpr std::array<std::string_view, wall_count> wall_names{
    "serialisation", "files",  "network",  "client", "store",         "neighbours",
    "metadata",      "outage", "snapshot", "local",  "back_pressure", "planned_stop"};

}  // namespace

std::string_view wall_name(Wall wall) {
    return word_of(wall_names, wall);
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
    return static_cast<Wall>(std::ranges::max_element(times_) - times_.begin());
}

}  // namespace railyard
