#include "models/campaign/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/campaign/campaign.h"
#include "models/campaign/cost_energy.h"
#include "models/campaign/cost_lines.h"

namespace railyard {

namespace {

constexpr double seconds_per_year = hours_per_year * 3600;

// Capital with each price at the same end of its range.
double capital_at(const CostPlan& plan, double Price::*end) {
    std::vector<double> prices;
    for (const Price& price : plan.prices) prices.push_back(price.*end);
    return usd(capital_sum(plan, prices));
}

void warn_of_budget(Section& cost, const CostPlan& plan) {
    if (!plan.budget) return;
    const double typical = capital_at(plan, &Price::typical);
    const double low = capital_at(plan, &Price::low);
    if (typical <= *plan.budget) return;
    cost.warning("budget",
                 fmt::format("over budget: the cluster costs {} ({} to {}), {} more than {}{}",
                             money_text(typical), money_text(low),
                             money_text(capital_at(plan, &Price::high)),
                             money_text(typical - *plan.budget), money_text(*plan.budget),
                             low > *plan.budget ? ", and more even at the lowest prices" : ""),
                 "railyard cost says what each line of it costs");
}

double metric(const ReplicaResult& r, std::string_view name) {
    const auto found = std::find_if(r.metrics.begin(), r.metrics.end(),
                                    [&](const Metric& m) { return m.name == name; });
    return found == r.metrics.end() ? 0 : found->value;
}

// What the campaign's metrics say was paid by use.
double paid_by_use(const ReplicaResult& r) {
    constexpr double months_per_year = 12;
    const double months = seconds(r.simulated) / seconds_per_year * months_per_year;
    return metric(r, "object_store_requests_cost") + metric(r, "object_store_egress_cost") +
           metric(r, "object_store_kept_cost_per_month") * months + metric(r, "data_egress_cost");
}

UsedLine part_of(const std::string& cause) {
    if (cause.starts_with("gpu") || cause == "sdc") return UsedLine::gpu_parts;
    return cause == "nic" ? UsedLine::nic_parts : UsedLine::other_parts;
}

}  // namespace

std::optional<CostSetup> read_cost(Section& top, ValueReader& values, const Scenario& s) {
    Section cost = top.section("cost");
    if (!cost.present() && !cost.describing()) return std::nullopt;
    CostSetup setup = read_cost_plan(cost, values, s);
    cost.finish();
    if (!cost.ok() || cost.describing()) return std::nullopt;
    warn_of_budget(cost, setup.plan);
    return setup;
}

CampaignUse usage_of(const Scenario& s, const ReplicaResult& r) {
    CampaignUse usage;
    // A replica that ended at once has used and given nothing, in no time: that is no division by it.
    usage.years = std::max(seconds(r.simulated), 1e-9) / seconds_per_year;
    usage.goodput_gpu_hours =
        static_cast<double>(r.ledger.booked(Category::productive)) * 1e-9 / 3600;
    if (s.fleet) usage.goodput_gpu_hours /= static_cast<double>(s.fleet->spec.parts_per_gpu());
    usage.tokens = static_cast<double>(r.job.steps_kept) * static_cast<double>(s.tokens_per_step);
    usage.used.assign(used_line_count, 0);
    const auto used = [&](UsedLine line) -> double& {
        return usage.used[static_cast<std::size_t>(line)];
    };
    used(UsedLine::energy) = metric(r, "energy") / joules_per_kilowatt_hour;
    for (std::size_t cause = 0; cause < r.repairs.size(); ++cause) {
        const auto repairs = static_cast<double>(r.repairs[cause]);
        used(UsedLine::repair_visits) += repairs;
        if (!s.cost->parts_covered) used(part_of(s.causes[cause].name)) += repairs;
    }
    used(UsedLine::paid) = paid_by_use(r);
    return usage;
}

void add_cost_metrics(const Scenario& s, ReplicaResult& r) {
    const CostPlan& plan = s.cost->plan;
    const YearlyCost cost = yearly_cost(plan, typical_prices(plan.prices), usage_of(s, r));
    const auto add = [&](const char* name, double value) {
        r.metrics.push_back(plain_metric(name, "USD", std::isfinite(value) ? value : NAN));
    };
    add("cost_capital", cost.capital);
    add("cost_per_year", cost.total());
    add("cost_per_goodput_gpu_hour", cost.per_goodput_gpu_hour());
    if (s.tokens_per_step > 0) add("cost_per_1e12_tokens", cost.per_1e12_tokens());
}

CostStudy study_costs(const Scenario& s, const std::vector<ReplicaResult>& replicas) {
    std::vector<CampaignUse> campaigns;
    for (const ReplicaResult& r : replicas) campaigns.push_back(usage_of(s, r));
    return study_costs(s.cost->plan, campaigns);
}

std::string money_text(double amount) {
    if (!std::isfinite(amount)) return "-";
    const double size = std::abs(amount);
    if (size >= 999.5e3) return fmt::format("{:.3g} MUSD", amount * 1e-6);
    if (size >= 9.995e3) return fmt::format("{:.3g} kUSD", amount * 1e-3);
    return size >= 100 ? fmt::format("{:.0f} USD", amount) : fmt::format("{:.2f} USD", amount);
}

}  // namespace railyard
