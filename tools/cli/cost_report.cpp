#include "tools/cli/cost_report.h"

#include <fmt/format.h>

#include <cmath>

#include "tools/cli/terminal.h"
#include "tools/program/json_text.h"
#include "tools/program/lists.h"

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

std::string cents_text(Cents amount) {
    return grouped(std::floor(usd(amount) + 0.5));
}

std::string number_text(double v) {
    return v == std::floor(v) && v < 1e15 ? grouped(v) : fmt::format("{:.4g}", v);
}

std::string price_text(double v, const std::string& unit) {
    return unit.empty() || unit == "/year" ? fmt::format("{:g} %", 100 * v) : number_text(v);
}

struct PaidLine {
    CostLine line;
    Cents paid;
};

// The lines that pay for something, at typical prices.
std::vector<PaidLine> paid_lines(const CostPlan& plan, const std::vector<CostLine>& lines,
                                 const std::vector<double>& quantities) {
    const std::vector<double> prices = typical_prices(plan.prices);
    const Cents hardware =
        &lines == &plan.yearly ? supported_sum(plan, prices) : hardware_sum(plan, prices);
    std::vector<PaidLine> out;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        CostLine line = lines[i];
        line.quantity = quantities[i];
        if (line.quantity > 0) out.push_back({line, line_sum(line, prices, hardware)});
    }
    return out;
}

void add_lines(Table& table, const CostPlan& plan, const std::vector<CostLine>& lines,
               const std::vector<double>& quantities, Cents& sum) {
    for (const auto& [line, paid] : paid_lines(plan, lines, quantities)) {
        const Price& price = plan.prices[line.price];
        sum += paid;
        table.add({line.what, line.of_hardware ? "" : number_text(line.quantity), line.per,
                   price_text(price.typical, price.unit),
                   price.low == price.high
                       ? ""
                       : fmt::format("{} to {}", price_text(price.low, price.unit),
                                     price_text(price.high, price.unit)),
                   cents_text(paid), price.name, price.origin.substr(0, price.origin.find(':'))});
    }
}

std::vector<double> quantities_of(const std::vector<CostLine>& lines) {
    return mapped(lines, &CostLine::quantity);
}

// The cost of a year: the campaign as it was, and idle for the rest.
std::vector<double> used_per_year(const CostPlan& plan, const CampaignResult& result) {
    const CampaignUse all = together(result.uses);
    std::vector<double> out;
    for (std::size_t i = 0; i < plan.used.size(); ++i) out.push_back(used_in_a_year(plan, i, all));
    return out;
}

Table line_table(const char* title) {
    return Table({title, ">quantity", "", ">price, USD", ">low to high", ">sum, USD",
                  "name in cost.price", "source"});
}

Json lines_json(const CostPlan& plan, const std::vector<CostLine>& lines,
                const std::vector<double>& quantities) {
    return json_array(paid_lines(plan, lines, quantities), [&](const PaidLine& each) -> Json {
        const Price& price = plan.prices[each.line.price];
        return {{"what", each.line.what},    {"quantity", each.line.quantity},
                {"per", each.line.per},      {"price", price.name},
                {"unit", price.unit},        {"low", price.low},
                {"typical", price.typical},  {"high", price.high},
                {"sum_usd", usd(each.paid)}, {"source", price.origin}};
    });
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

void print_budget(const CostPlan& plan, Cents bought) {
    if (!plan.budget) return;
    const double over = usd(bought) - *plan.budget;
    fmt::print("  {} the budget of {} by {}\n",
               over > 0 ? coloured("over", Colour::red) : coloured("within", Colour::green),
               money_text(*plan.budget), money_text(std::abs(over)));
}

void print_cost_lines(const Scenario& s, const CampaignResult& r, const CostStudy& study) {
    const CostPlan& plan = s.cost->plan;
    Table capital = line_table("capital");
    Cents bought = 0;
    add_lines(capital, plan, plan.capital, quantities_of(plan.capital), bought);
    capital.add({"total", "", "", "", "", cents_text(bought), "", ""});
    fmt::print("{}\n{}", coloured(s.title, Colour::bold), capital.text());
    print_budget(plan, bought);
    Table yearly = line_table("a year");
    Cents kept = cents(study.typical.depreciation);
    yearly.add({"depreciation", number_text(plan.years), "years",
                plan.residual > 0 ? fmt::format("{:g} % left", 100 * plan.residual) : "", "",
                cents_text(kept), "", ""});
    add_lines(yearly, plan, plan.yearly, quantities_of(plan.yearly), kept);
    add_lines(yearly, plan, plan.used, used_per_year(plan, r), kept);
    yearly.add({"total", "", "", "", "", cents_text(kept), "", ""});
    fmt::print("\n{}", yearly.text());
    const YearlyCost& t = study.typical;
    fmt::print("  a year like the campaign's {}: goodput {:.2f} %, {:.4g} goodput GPU-hours{}\n",
               time_text(r.simulated_s), 100 * r.mean("goodput"), t.goodput_gpu_hours,
               t.tokens > 0 ? fmt::format(", {:.4g} tokens", t.tokens) : std::string());
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

Json cost_lines_json(const Scenario& s, const CampaignResult& r, const CostStudy& study) {
    const CostPlan& plan = s.cost->plan;
    return {{"capital", lines_json(plan, plan.capital, quantities_of(plan.capital))},
            {"depreciation_usd", study.typical.depreciation},
            {"yearly", lines_json(plan, plan.yearly, quantities_of(plan.yearly))},
            {"used", lines_json(plan, plan.used, used_per_year(plan, r))},
            {"cost", cost_json(s, study)}};
}

void print_cost(const Scenario& s, const CampaignResult& r) {
    if (!s.cost) return;
    print_cost_figures(s, study_costs(s.cost->plan, r.uses));
}

}  // namespace railyard
