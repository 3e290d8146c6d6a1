#pragma once
// Values of metrics as people read them, by name: "93.66 %", "2.53 h", "1.2 TB", "3,210 USD".

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <string>
#include <string_view>

#include "models/campaign/campaign.h"
#include "sim/metrics.h"
#include "tools/program/json_text.h"

namespace railyard {

// People read it as a percentage: a share, whose unit is "1" or what it is a share of ("bf16 peak").
bool is_percentage(std::string_view name);
// `decimals` are those of shares: of "93.66 %" and "+1.50 points" two.
std::string metric_text(std::string_view name, double value, int decimals = 2);
// With its sign: "+1.50 points", "-2.53 h".
std::string difference_text(std::string_view name, double difference, int decimals = 2);
// "1 to 2", as `show` has the ends; "1 or more" without an upper one (a cost without any work is
// infinite); `none` without a lower one.
template <class Range, class Show>
std::string interval_text(const Range& range, const Show& show, const char* none) {
    if (!std::isfinite(range.low)) return none;
    return std::isfinite(range.high) ? fmt::format("{} to {}", show(range.low), show(range.high))
                                     : show(range.low) + " or more";
}
// The part of a mean's interval that the metric can be: a share is no more than 1, and what is counted or
// measured not below zero, whatever a symmetric interval says.
Interval possible_part(std::string_view name, const Summary& summary);
// By name: mean, ci95, unit.
Json metrics_json(std::span<const MetricSummary> metrics);
// The first replica in which nothing could go on: which, and who waits on what.
Json stuck_json(const CampaignResult::Stuck& stuck);

}  // namespace railyard
