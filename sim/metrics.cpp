#include "sim/metrics.h"

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

std::vector<MetricSummary> summarise_metrics(std::span<const std::span<const Metric>> replicas) {
    std::vector<MetricSummary> out;
    if (replicas.empty()) return out;
    std::vector<double> values(replicas.size());
    std::vector<double> counts(replicas.size());
    for (std::size_t m = 0; m < replicas[0].size(); ++m) {
        for (std::size_t r = 0; r < replicas.size(); ++r) {
            RY_CHECK(replicas[r].size() == replicas[0].size());
            const Metric& metric = replicas[r][m];
            values[r] = metric.count < 0 ? metric.value : metric.sum;
            counts[r] = metric.count;
        }
        out.push_back({replicas[0][m].name, replicas[0][m].unit,
                       counts[0] < 0 ? summarise(values) : summarise_ratio(values, counts)});
    }
    return out;
}

}  // namespace railyard
