#include "models/facility/power_profile.h"

#include <algorithm>
#include <cmath>
#include <map>

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
    return levels_.empty() ? Watts{} : std::ranges::max_element(levels_, less)->power;
}

Watts PowerProfile::low() const {
    return levels_.empty() ? Watts{} : std::ranges::min_element(levels_, less)->power;
}

PowerProfile PowerProfile::times(double count, Watts beside) const {
    PowerProfile out = *this;
    for (PowerLevel& level : out.levels_) level.power = {count * level.power.value + beside.value};
    return out;
}

namespace {

struct Share {
    double of_time = 0;
    double power_time = 0;  // W times that
};

}  // namespace

PowerProfile independent_sum(const std::vector<PowerProfile>& parts, Watts beside, Watts grain) {
    std::map<double, Share> sum = {{0, {1, beside.value}}};  // by grain
    for (const PowerProfile& part : parts) {
        std::map<double, Share> with;
        for (const auto& [at, share] : sum) {
            if (share.of_time < 1e-15) continue;  // lasts no nanosecond, and would come to 0 / 0
            for (const PowerLevel& level : part.levels()) {
                const double fraction = seconds(level.lasts) / seconds(part.cycle());
                const double power = share.power_time / share.of_time + level.power.value;
                const double of_time = share.of_time * fraction;
                Share& to = with[std::floor(power / grain.value)];
                to.of_time += of_time;
                to.power_time += of_time * power;
            }
        }
        sum = std::move(with);
    }
    std::vector<PowerLevel> levels;
    double passed = 0;
    Duration end{};
    for (const auto& [at, share] : sum) {
        passed += share.of_time;
        const Duration until = from_seconds(passed);
        levels.push_back({until - end, {share.power_time / share.of_time}});
        end = until;
    }
    return PowerProfile(levels);
}

}  // namespace railyard
