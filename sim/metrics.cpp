#include "sim/metrics.h"

#include "sim/check.h"

namespace railyard {

std::vector<MetricSummary> summarise_metrics(const std::vector<std::vector<Metric>>& replicas) {
    std::vector<MetricSummary> out;
    if (replicas.empty()) return out;
    std::vector<double> values(replicas.size());
    for (std::size_t m = 0; m < replicas[0].size(); ++m) {
        for (std::size_t r = 0; r < replicas.size(); ++r) {
            RY_CHECK(replicas[r].size() == replicas[0].size());
            values[r] = replicas[r][m].value;
        }
        out.push_back({replicas[0][m].name, replicas[0][m].unit, summarise(values)});
    }
    return out;
}

}  // namespace railyard
