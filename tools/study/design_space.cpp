#include "tools/study/design_space.h"

#include <fmt/format.h>

#include <algorithm>

namespace railyard {

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
            for (std::size_t v = 0; v < axes[a].values.size(); ++v) {
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
