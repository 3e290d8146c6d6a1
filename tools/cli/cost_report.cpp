#include "tools/cli/cost_report.h"

#include <fmt/format.h>

#include <cmath>

#include "tools/cli/terminal.h"
#include "tools/program/json_text.h"

namespace railyard {

namespace {

std::string range_text(const CostRange& range) {
    return fmt::format("{} to {}", money_text(range.low), money_text(range.high));
}

std::string signed_percent(double change) {
    return std::isfinite(change) ? fmt::format("{:+.1f} %", 100 * change) : "-";
}

void print_drivers(const CostStudy& study) {
    constexpr std::size_t shown_max = 5;
    constexpr double worth_saying = 0.005;
    Table table({"what dominates", ">low end", ">high end", ">of the variance"});
    std::size_t shown = 0;
    for (const CostDriver& driver : study.drivers) {
        if (shown == shown_max || driver.share < worth_saying) break;
        table.add({driver.name, signed_percent(driver.low), signed_percent(driver.high),
                   fmt::format("{:.0f} %", 100 * driver.share)});
        ++shown;
    }
    if (shown > 0) fmt::print("\n{}", table.text());
}

void print_rental(const Scenario& s, const CostStudy& study) {
    const CostPlan& plan = s.cost->plan;
    if (!plan.rental) return;
    const Price& price = plan.prices[*plan.rental];
    const CostRange hours = range_of(study.break_even, *study.typical_break_even);
    const auto share = [](double h) {
        return h <= hours_per_year ? fmt::format("{:.0f} h ({:.0f} %)", h, 100 * h / hours_per_year)
                                   : std::string("more than all");
    };
    const double used = plan.utilisation * hours_per_year;
    double owning = 0;
    for (const double h : study.break_even) owning += h < used ? 1 : 0;
    fmt::print(
        "\n  rent or buy: at {:.2f} USD ({:.2f} to {:.2f}) a GPU-hour renting costs as much as "
        "owning when\n  {} of a year are used, {} to {}; at {:.0f} h owning is cheaper in "
        "{:.0f} % of the draws\n",
        price.typical, price.low, price.high, share(hours.typical), share(hours.low),
        share(hours.high), used, 100 * owning / static_cast<double>(study.break_even.size()));
}

}  // namespace

std::vector<CostFigure> cost_figures(const Scenario& s) {
    std::vector<CostFigure> out;
    const auto add = [&](const std::string& name, const char* label) {
        out.push_back({name, label, cost_metric("cost_" + name)});
    };
    add("capital", "capital");
    add("per_year", "a year");
    add("per_goodput_gpu_hour", "a goodput GPU-hour");
    if (s.tokens_per_step > 0) add("per_1e12_tokens", "10^12 tokens");
    if (s.counts_work()) add("per_work", "a unit of work");
    return out;
}

void warn_of_prices_missing(const std::vector<std::pair<std::string, const Scenario*>>& designs) {
    for (const auto& [name, design] : designs) {
        for (const auto& [other, beside] : designs) {
            const std::vector<std::string> missing = prices_missing(*design, *beside);
            if (missing.empty()) continue;
            fmt::print(
                stderr,
                "railyard: warning: {0} has no price for {1}, and {2} has: {0} looks "
                "cheaper than it is. [cost] takes it, or compare something else than money\n",
                name, fmt::join(missing, ", "), other);
            break;
        }
    }
}

std::string middle_of_money(std::int64_t replicas) {
    return replicas > 1 ? "middle 95 %: prices and failures"
                        : "middle 95 %: prices only: one replica has no luck of failures";
}

void print_cost_figures(const Scenario& s, const CostStudy& study) {
    Table table({"cost", ">at typical prices", ">mean", middle_of_money(s.replicas)});
    for (const CostFigure& figure : cost_figures(s)) {
        const CostRange range = study.range(figure.metric->of);
        table.add(
            {figure.label, money_text(range.typical), money_text(range.mean), range_text(range)});
    }
    fmt::print("\n{}", table.text());
    print_drivers(study);
    print_rental(s, study);
    const auto& left_out = s.cost->plan.left_out;
    if (!left_out.empty()) {
        fmt::print("  {}: {}; [cost.price] takes their prices\n",
                   coloured("not in it", Colour::yellow), fmt::join(left_out, ", "));
    }
}

Json range_json(const CostRange& range) {
    return {{"typical", json_number(range.typical)},
            {"mean", json_number(range.mean)},
            {"middle95", ends_json(range)}};
}

Json cost_json(const Scenario& s, const CostStudy& study) {
    const CostPlan& plan = s.cost->plan;
    Json figures = Json::object();
    for (const CostFigure& figure : cost_figures(s)) {
        figures[figure.name] = range_json(study.range(figure.metric->of));
    }
    const Json drivers = json_array(study.drivers, [](const CostDriver& driver) -> Json {
        return {{"name", driver.name},
                {"low", driver.low},
                {"high", driver.high},
                {"variance_share", driver.share}};
    });
    Json out = {{"figures", figures}, {"drivers", drivers}, {"left_out", plan.left_out}};
    if (plan.budget) out["budget_usd"] = *plan.budget;
    if (plan.rental) {
        out["break_even_hours_per_year"] =
            range_json(range_of(study.break_even, *study.typical_break_even));
    }
    return out;
}

void print_cost(const Scenario& s, const CampaignResult& r) {
    if (!s.cost) return;
    print_cost_figures(s, study_costs(s.cost->plan, r.uses));
}

}  // namespace railyard
