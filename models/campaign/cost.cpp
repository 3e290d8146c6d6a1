#include "models/campaign/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/campaign/campaign.h"
#include "models/campaign/cost_lines.h"

namespace railyard {

namespace {

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

}  // namespace

std::optional<CostSetup> read_cost(Section& top, ValueReader& values, const Scenario& s) {
    Section cost = top.section("cost");
    if (!cost.present() && !cost.describing()) {
        top.no_effect("without [cost]");
        top.sections("quote", "What a vendor asks for, in writing");
        top.no_effect({});
        return std::nullopt;
    }
    CostSetup setup = read_cost_plan(top, cost, values, s);
    cost.finish();
    if (!cost.ok() || cost.describing()) return std::nullopt;
    warn_of_budget(cost, setup.plan);
    return setup;
}

std::string money_text(double amount) {
    if (!std::isfinite(amount)) return "-";
    const double size = std::abs(amount);
    if (size >= 999.5e3) return fmt::format("{:.3g} MUSD", amount * 1e-6);
    if (size >= 9.995e3) return fmt::format("{:.3g} kUSD", amount * 1e-3);
    return size >= 100 ? fmt::format("{:.0f} USD", amount) : fmt::format("{:.2f} USD", amount);
}

}  // namespace railyard
