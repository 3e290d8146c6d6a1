#pragma once
// What something draws over one step, again and again: a synchronous job moves all its GPUs up and down
// together, and what feeds them sees the sum.

#include <vector>

#include "models/facility/energy.h"

namespace railyard {

struct PowerLevel {
    Duration lasts{};
    Watts power;
};

// Levels one after another; those that last no time are left out.
class PowerProfile {
  public:
    PowerProfile() = default;
    explicit PowerProfile(const std::vector<PowerLevel>& levels);

    const std::vector<PowerLevel>& levels() const { return levels_; }
    Duration cycle() const { return cycle_; }
    Picojoules energy() const;  // of one cycle
    Watts mean() const;
    Watts peak() const;
    Watts low() const;
    // The profile of so many at once, with something steady beside them.
    PowerProfile times(double count, Watts beside = {}) const;

  private:
    std::vector<PowerLevel> levels_;
    Duration cycle_{};
};

// What feeds several that repeat, each in its own time: the levels of their sum, each as long as its share of
// the time when no cycle knows of another. In order of power, over a cycle of a second. Levels within one
// `grain` are as one, at their mean.
PowerProfile independent_sum(const std::vector<PowerProfile>& parts, Watts beside, Watts grain);

}  // namespace railyard
