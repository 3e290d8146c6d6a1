#include "tools/study/design_space.h"

#include <fmt/format.h>

#include <algorithm>

namespace railyard {

std::size_t DesignAxis::value_at(double fraction) {
    const AxisValue value = range->at(fraction);
    const auto found = std::ranges::find(values, value.text, &DesignValue::text);
    const auto place = static_cast<std::size_t>(found - values.begin());
    if (found == values.end()) {
        values.push_back({value.text, {range->key() + "=" + value.toml}});
        at.push_back(fraction);
    }
    return place;
}

double DesignSpace::size_at_most() const {
    double out = 1;
    for (const DesignAxis& axis : axes) {
        if (!axis.free) out *= static_cast<double>(axis.values.size());
    }
    return out;
}

bool DesignSpace::there(const DesignAxis& axis, const Point& point) const {
    return std::ranges::all_of(axis.when, [&](const DesignCondition& condition) {
        const auto& value = point[condition.axis];
        return value && std::ranges::find(condition.values, *value) != condition.values.end();
    });
}

std::vector<DesignSpace::Point> DesignSpace::extended(const Point& base, bool free) const {
    std::vector<Point> points = {base};
    for (std::size_t a = 0; a < axes.size(); ++a) {
        if (axes[a].free != free) continue;
        std::vector<Point> more;
        for (const Point& point : points) {
            if (!there(axes[a], point)) {
                more.push_back(point);
                continue;
            }
            for (std::size_t v = 0; v < axes[a].combined(); ++v) {
                more.push_back(point);
                more.back()[a] = v;
            }
        }
        points = std::move(more);
    }
    return points;
}

std::vector<DesignSpace::Point> DesignSpace::designs() const {
    return extended(Point(axes.size()), false);
}

std::vector<DesignSpace::Point> DesignSpace::tunings(const Point& design) const {
    return extended(design, true);
}

std::vector<DesignSpace::Point> DesignSpace::beside(const Point& point, double step) {
    std::vector<Point> out;
    for (std::size_t a = 0; a < axes.size(); ++a) {
        if (!axes[a].range || !point[a]) continue;
        for (const double side : {-step, step}) {
            const double fraction = axes[a].at[*point[a]] + side;
            if (fraction < 0 || fraction > 1) continue;
            const std::size_t value = axes[a].value_at(fraction);
            if (value == *point[a]) continue;
            out.push_back(point);
            out.back()[a] = value;
        }
    }
    return out;
}

std::vector<std::string> DesignSpace::settings(const Point& point) const {
    std::vector<std::string> out;
    for (std::size_t a = 0; a < axes.size(); ++a) {
        if (!point[a]) continue;
        const std::vector<std::string>& more = axes[a].values[*point[a]].settings;
        out.insert(out.end(), more.begin(), more.end());
    }
    return out;
}

std::string DesignSpace::label(const Point& point) const {
    std::vector<std::string> parts;
    for (std::size_t a = 0; a < axes.size(); ++a) {
        if (!point[a] || (axes[a].values.size() == 1 && axes.size() > 1)) continue;
        parts.push_back(fmt::format("{} = {}", axes[a].name, axes[a].values[*point[a]].text));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace railyard
