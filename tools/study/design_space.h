#pragma once
// The space of a question: axes whose values are settings of a scenario, some of them only beside certain
// values of others, some free of charge.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tools/study/axis.h"

namespace railyard {

// One value of an axis.
struct DesignValue {
    std::string text;                   // as people read it
    std::vector<std::string> settings;  // as --set takes them
};

// The axis is there only where another has one of these values.
struct DesignCondition {
    std::size_t axis = 0;  // an earlier one
    std::vector<std::size_t> values;
};

constexpr std::size_t range_values = 5;

struct DesignAxis {
    std::string name;
    bool free = false;  // it costs nothing: tuned for each design before designs are compared
    std::vector<DesignCondition> when;
    std::vector<DesignValue> values;
    // The range of a free axis that takes any value of it; `values` has some, where `at` says.
    std::optional<Axis> range{};
    std::vector<double> at{};  // fractions of the range

    // The value at a fraction of the range, added when it is new.
    std::size_t value_at(double fraction);
    // How many of `values` all combinations are made with.
    std::size_t combined() const {
        return range ? std::min(values.size(), range_values) : values.size();
    }
};

class DesignSpace {
  public:
    // The value of each axis; none: the axis is not there.
    using Point = std::vector<std::optional<std::size_t>>;

    std::vector<DesignAxis> axes;

    // How many points axes that are not free make, and all of them; the last axis varies fastest.
    double size_at_most() const;  // without conditions
    std::vector<Point> designs() const;
    // A design with each combination of the free axes, the first value of each first.
    std::vector<Point> tunings(const Point& design) const;
    // The point, with each value of a range moved by so much of it to either side.
    std::vector<Point> beside(const Point& point, double step);
    std::vector<std::string> settings(const Point& point) const;
    std::string label(const Point& point) const;  // "storage = weka, spares = 4"

  private:
    std::vector<Point> extended(const Point& base, bool free) const;
    bool there(const DesignAxis& axis, const Point& point) const;
};

}  // namespace railyard
