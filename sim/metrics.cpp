#include "sim/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/check.h"

namespace railyard {

Metric plain_metric(std::string name, double value) {
    return {std::move(name), value};
}

Metric mean_metric(std::string name, double sum, double count) {
    const double mean = count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
    return {std::move(name), mean, false, sum, count};
}

void MetricTable::add(std::span<const Metric> replica) {
    if (replicas_ == 0) {
        columns_.clear();
        for (const Metric& m : replica) columns_.push_back({m.name, m.plain, {}, {}});
    }
    RY_CHECK(replica.size() == columns_.size());
    const auto make_room = [this](std::vector<double>& numbers) {
        constexpr std::size_t at_first = 8;
        if (numbers.capacity() == replicas_) numbers.reserve(std::max(at_first, 2 * replicas_));
    };
    for (Column& column : columns_) {
        make_room(column.values);
        if (!column.plain) make_room(column.counts);
    }
    for (std::size_t m = 0; m < columns_.size(); ++m) {
        Column& column = columns_[m];
        RY_CHECK(column.plain == replica[m].plain);
        column.values.push_back(column.plain ? replica[m].value : replica[m].sum);
        if (!column.plain) column.counts.push_back(replica[m].count);
    }
    ++replicas_;
}

const MetricTable::Column* MetricTable::find(std::string_view name) const {
    const auto found = std::ranges::find(columns_, name, &Column::name);
    return found == columns_.end() ? nullptr : &*found;
}

namespace {

// Leaves out replicas that have nothing to tell.
Summary summarise_plain(std::span<const double> all, SharedLuck all_luck) {
    std::vector<double> values;
    std::vector<std::size_t> luck;
    for (std::size_t r = 0; r < all.size(); ++r) {
        if (std::isnan(all[r])) continue;
        values.push_back(all[r]);
        if (!all_luck.empty()) luck.push_back(all_luck[r]);
    }
    Summary out = summarise(values, luck);
    if (values.empty()) {
        constexpr double none = std::numeric_limits<double>::quiet_NaN();
        out.mean = out.ci95.low = out.ci95.high = none;
    }
    return out;
}

}  // namespace

std::vector<MetricSummary> MetricTable::summaries(std::size_t draws) const {
    const std::vector<std::size_t> luck = dealt_over(replicas_, draws);
    std::vector<MetricSummary> out;
    for (const Column& c : columns_) {
        out.push_back({c.name, c.plain ? summarise_plain(c.values, luck)
                                       : summarise_ratio(c.values, c.counts, luck)});
    }
    return out;
}

}  // namespace railyard
