#include "models/facility/power_profile.h"

#include <algorithm>

namespace railyard {

namespace {

bool less(const PowerLevel& a, const PowerLevel& b) {
    return a.power < b.power;
}

}  // namespace

PowerProfile::PowerProfile(const std::vector<PowerLevel>& levels) {
    for (const PowerLevel& level : levels) {
        if (level.lasts <= Duration{}) continue;
        levels_.push_back(level);
        cycle_ += level.lasts;
    }
}

Picojoules PowerProfile::energy() const {
    Picojoules sum = 0;
    for (const PowerLevel& level : levels_) sum += energy_of(level.power, level.lasts);
    return sum;
}

Watts PowerProfile::mean() const {
    return levels_.empty() ? Watts{} : Watts{joules(energy()) / seconds(cycle_)};
}

Watts PowerProfile::peak() const {
    return levels_.empty() ? Watts{}
                           : std::max_element(levels_.begin(), levels_.end(), less)->power;
}

Watts PowerProfile::low() const {
    return levels_.empty() ? Watts{}
                           : std::min_element(levels_.begin(), levels_.end(), less)->power;
}

PowerProfile PowerProfile::times(double count, Watts beside) const {
    PowerProfile out = *this;
    for (PowerLevel& level : out.levels_) level.power = {count * level.power.value + beside.value};
    return out;
}

}  // namespace railyard
