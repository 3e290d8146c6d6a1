#pragma once
// Named results of one replica, and their means over many. One spelling from here to JSON, SQL and
// charts.

#include <string>
#include <vector>

#include "sim/statistics.h"

namespace railyard {

struct Metric {
    std::string name;  // snake_case
    std::string unit;  // "1" for a ratio
    double value = 0;
};

struct MetricSummary {
    std::string name;
    std::string unit;
    Summary summary;
};

// Means and intervals over replicas, which must all have the same metrics in the same order.
std::vector<MetricSummary> summarise_metrics(const std::vector<std::vector<Metric>>& replicas);

}  // namespace railyard
