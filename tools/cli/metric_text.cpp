#include "tools/cli/metric_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/campaign/campaign.h"
#include "sim/units.h"
#include "tools/cli/terminal.h"

namespace railyard {

namespace {

std::string size_text(std::string_view name, double value, int decimals) {
    const std::string_view unit = unit_of(name);
    constexpr double digits_shown = 1e4;
    if (unit == "s") return time_text(value);
    if (unit == "B" && value < 9e18) return to_text(Bytes::of(static_cast<std::int64_t>(value)));
    if (is_percentage(name)) {
        return fmt::format("{:.{}f} %{}", 100 * value, decimals,
                           unit == "1" ? "" : fmt::format(" of {}", unit));
    }
    const std::string number =
        value >= digits_shown && value < 1e15 ? grouped(value) : fmt::format("{:.4g}", value);
    return unit == "1" ? number : fmt::format("{} {}", number, unit);
}

}  // namespace

bool is_percentage(std::string_view name) {
    const std::string_view unit = unit_of(name);
    return (unit == "1" || unit == "bf16 peak") && is_share(name);
}

std::string metric_text(std::string_view name, double value, int decimals) {
    if (!std::isfinite(value)) return "-";
    return fmt::format("{}{}", value < 0 ? "-" : "", size_text(name, std::abs(value), decimals));
}

std::string difference_text(std::string_view name, double difference, int decimals) {
    if (!std::isfinite(difference)) return "-";
    if (is_percentage(name)) return fmt::format("{:+.{}f} points", 100 * difference, decimals);
    return fmt::format("{}{}", difference < 0 ? "-" : "+",
                       size_text(name, std::abs(difference), decimals));
}

Interval possible_part(std::string_view name, const Summary& summary) {
    Interval out = summary.ci95;
    if (!std::isfinite(out.low)) return out;
    if (summary.mean >= 0) out.low = std::max(0.0, out.low);
    if (is_share(name) && summary.mean <= 1) out.high = std::min(1.0, out.high);
    return out;
}

Json metrics_json(std::span<const MetricSummary> metrics) {
    Json out = Json::object();
    for (const MetricSummary& m : metrics) {
        out[m.name] = {{"mean", json_number(m.summary.mean)},
                       {"ci95", ends_json(possible_part(m.name, m.summary))},
                       {"unit", unit_of(m.name)}};
    }
    return out;
}

Json stuck_json(const CampaignResult::Stuck& stuck) {
    return {{"replica", stuck.replica}, {"report", stuck.report}};
}

}  // namespace railyard
