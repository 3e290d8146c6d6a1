#include "tools/import/failure_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>

#include "sim/statistics.h"
#include "tools/import/text_file.h"

namespace railyard {

CountedRate counted_rate(std::int64_t events, double exposure) {
    constexpr double side = 0.025;
    const auto n = static_cast<double>(events);
    CountedRate out;
    out.rate = n / exposure;
    out.low = events > 0 ? boost::math::gamma_p_inv(n, side) / exposure : 0;
    out.high = boost::math::gamma_p_inv(n + 1, 1 - side) / exposure;
    return out;
}

double poisson_tail(std::int64_t count, double mean) {
    if (count <= 0) return 1;
    if (!(mean > 0)) return 0;
    return boost::math::gamma_p(static_cast<double>(count), mean);
}

namespace {

// The mean time out when some have no known end: what all are out together, over those that ended.
double mean_outage_s(const SeenCause& cause) {
    double all = static_cast<double>(cause.open_s);
    for (const std::int64_t s : cause.outages_s) all += static_cast<double>(s);
    return all / static_cast<double>(std::max<std::size_t>(1, cause.outages_s.size()));
}

// The deviation of the logarithms of times that ended, about the mean of each cause, which has a
// repair_time of its own; 0 with fewer than ten.
double log_deviation(const std::vector<SeenCause>& causes) {
    double squares = 0;
    double count = 0;
    double means = 0;
    for (const SeenCause& cause : causes) {
        if (cause.remedy != "replace") continue;
        std::vector<double> logs;
        for (const std::int64_t s : cause.outages_s) {
            if (s > 0) logs.push_back(std::log(static_cast<double>(s)));
        }
        if (logs.empty()) continue;
        const auto n = static_cast<double>(logs.size());
        const double deviation = summarise(logs).deviation;
        squares += deviation * deviation * (n - 1);
        count += n;
        means += 1;
    }
    if (count < 10 || count <= means) return 0;
    return std::sqrt(squares / (count - means));
}

void add_cause(const SeenCause& cause, double node_days, ImportedPart& part) {
    const CountedRate rate = counted_rate(cause.events, node_days);
    part.entry("failures.cause");
    part.quoted("name", cause.name, fmt::format("{}: {}", cause.first, some_of(cause.what)));
    part.value("rate_per_node", fmt::format("\"{:.6g} /day\"", rate.rate),
               fmt::format("{} in {:.6g} node-days: {:.3g} to {:.3g} with 95 %", cause.events,
                           node_days, rate.low, rate.high));
    part.quoted("remedy", cause.remedy, "by its kind");
    if (cause.remedy == "restart") return;
    const char* key = cause.remedy == "reset" ? "reset_time" : "repair_time";
    if (cause.outages_s.empty()) {
        return part.left_out("{} of {}: no outage in the input has ended", key, cause.name);
    }
    part.value(key, fmt::format("\"{:.0f} s\"", std::round(mean_outage_s(cause))),
               fmt::format("mean of {} outages{}", cause.outages_s.size(),
                           cause.open > 0 ? fmt::format(", with {} that last", cause.open)
                                          : std::string()));
}

}  // namespace

void add_causes(std::vector<SeenCause> causes, double node_days, ImportedPart& part) {
    std::ranges::stable_sort(causes, std::greater<>(), &SeenCause::events);
    std::int64_t few = 0;
    for (const SeenCause& cause : causes) few += cause.events < 5;
    if (few > 0) {
        part.note("{} of {} causes have fewer than 5 events: mind their intervals.", few,
                  causes.size());
    }
    part.section("failures");
    part.quoted("profile", "none", "what follows is all that was seen");
    if (const double sigma = log_deviation(causes); sigma > 0) {
        part.value("repair_sigma", fmt::format("{:.4g}", sigma),
                   "standard deviation of the logarithms of the repairs that ended");
    } else {
        part.left_out("failures.repair_sigma: fewer than ten repairs have ended");
    }
    for (const SeenCause& cause : causes) add_cause(cause, node_days, part);
}

}  // namespace railyard
