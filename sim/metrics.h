#pragma once
// Named results of one replica, and their means over many. One spelling from here to JSON, SQL and
// charts.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/statistics.h"
#include "sim/text.h"

namespace railyard {

struct Metric {
    std::string name;  // snake_case; models/campaign/metric_names.h has its unit
    double value = 0;  // not a number: this replica has none (0 interruptions have no mean cost)
    // For a mean over something that is counted in each replica: what was counted and its sum. The mean
    // over replicas is then all sums over all counts, not a mean of means.
    bool plain = true;
    double sum = 0;
    double count = 0;  // below zero where a part of a campaign takes back what an earlier one had
};

// A plain value, and a mean of `sum` over `count` things.
Metric plain_metric(std::string name, double value);
Metric mean_metric(std::string name, double sum, double count);

// Those of a replica, in the order in which they are added.
class MetricList : public std::vector<Metric> {
  public:
    void add(std::string name, double value) { push_back(plain_metric(std::move(name), value)); }
    void count(std::string name, std::int64_t things) {
        add(std::move(name), static_cast<double>(things));
    }
    void mean(std::string name, double sum, double count) {
        push_back(mean_metric(std::move(name), sum, count));
    }
};

// a / b; 0 where there is nothing to divide by.
inline double ratio(double a, double b) {
    return b > 0 || b < 0 ? a / b : 0;
}

struct MetricSummary {
    std::string name;
    Summary summary;
};

// The metrics of many replicas, a column each: a number or two of every replica, for means, intervals and
// pairs.
class MetricTable {
  public:
    // All replicas must have the same metrics in the same order. What throws changes nothing.
    void add(std::span<const Metric> replica);
    std::size_t replicas() const { return replicas_; }

    struct Column {
        std::string name;
        bool plain = true;
        std::vector<double> values;  // of replicas; of a mean over things counted: the sums
        std::vector<double> counts;  // then
    };
    const std::vector<Column>& columns() const { return columns_; }
    const Column* find(std::string_view name) const;  // null: no such metric

    // Means and intervals over the replicas, which are dealt out over so many draws of luck that they share;
    // 0: they share none.
    std::vector<MetricSummary> summaries(std::size_t draws = 0) const;

  private:
    std::vector<Column> columns_;
    std::size_t replicas_ = 0;
};

}  // namespace railyard
