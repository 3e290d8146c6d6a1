#include "sim/metrics.h"

#include <cmath>
#include <limits>
#include <utility>

#include "sim/check.h"

namespace railyard {

Metric plain_metric(std::string name, std::string unit, double value) {
    return {std::move(name), std::move(unit), value, 0, -1};
}

Metric mean_metric(std::string name, std::string unit, double sum, double count) {
    const double mean = count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
    return {std::move(name), std::move(unit), mean, sum, count};
}

std::vector<MetricSummary> summarise_metrics(std::span<const std::span<const Metric>> replicas,
                                             std::size_t draws) {
    std::vector<MetricSummary> out;
    if (replicas.empty()) return out;
    std::vector<double> values;
    std::vector<double> counts;
    const std::vector<std::size_t> all_luck = dealt_over(replicas.size(), draws);
    std::vector<std::size_t> luck;
    for (std::size_t m = 0; m < replicas[0].size(); ++m) {
        const bool plain = replicas[0][m].count < 0;
        values.clear();
        counts.clear();
        luck.clear();
        for (std::size_t r = 0; r < replicas.size(); ++r) {
            const std::span<const Metric> replica = replicas[r];
            RY_CHECK(replica.size() == replicas[0].size());
            const Metric& metric = replica[m];
            if (plain && std::isnan(metric.value)) continue;  // it has nothing to tell
            values.push_back(plain ? metric.value : metric.sum);
            counts.push_back(metric.count);
            if (!all_luck.empty()) luck.push_back(all_luck[r]);
        }
        Summary summary =
            plain ? summarise(values, luck) : summarise_ratio(values, counts, luck);
        if (values.empty()) {
            constexpr double none = std::numeric_limits<double>::quiet_NaN();
            summary.mean = summary.ci95.low = summary.ci95.high = none;
        }
        out.push_back({replicas[0][m].name, replicas[0][m].unit, summary});
    }
    return out;
}

}  // namespace railyard
