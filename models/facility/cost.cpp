#include "models/facility/cost.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/check.h"
#include "sim/rng.h"

namespace railyard {

CostPlan::CostPlan() = default;
CostPlan::CostPlan(const CostPlan&) = default;
CostPlan::CostPlan(CostPlan&&) noexcept = default;
CostPlan& CostPlan::operator=(const CostPlan&) = default;
CostPlan& CostPlan::operator=(CostPlan&&) noexcept = default;
CostPlan::~CostPlan() = default;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

double per(double usd_paid, double amount) {
    return amount > 0 ? usd_paid / amount : infinite;
}

// Exact of a small x too, where a difference from 1 would have lost its digits (Kahan).
double log_beyond_one(double x) {
    const double sum = 1 + x;
    return sum == 1 ? x : portable_log(sum) * (x / (sum - 1));
}

double exp_beyond_one(double x) {
    const double power = portable_exp(x);
    if (power == 1) return x;
    return power - 1 == -1 ? -1 : (power - 1) * (x / portable_log(power));
}

// What of its worth money loses in so many years.
double lost_in_years(const CostPlan& plan, double years) {
    return -exp_beyond_one(-years * log_beyond_one(plan.discount));
}

// The years, of which each counts for as much as the end of it is worth.
double worth_of_years(const CostPlan& plan, double years) {
    return lost_in_years(plan, years) / plan.discount;
}

double squared_correlation(std::span<const double> a, std::span<const double> b) {
    const double r = correlation(a, b);
    return r * r;
}

}  // namespace

CampaignUse together(std::span<const CampaignUse> campaigns) {
    RY_CHECK(!campaigns.empty());
    CampaignUse sum;
    sum.used.assign(campaigns[0].used.size(), 0);
    for (const CampaignUse& c : campaigns) {
        sum.years += c.years;
        sum.goodput_gpu_hours += c.goodput_gpu_hours;
        sum.tokens += c.tokens;
        sum.work += c.work;
        for (std::size_t i = 0; i < c.used.size(); ++i) sum.used[i] += c.used[i];
    }
    return sum;
}

double YearlyCost::per_goodput_gpu_hour() const {
    return per(total(), goodput_gpu_hours);
}

double YearlyCost::per_1e12_tokens() const {
    return per(total(), tokens * 1e-12);
}

double YearlyCost::per_work() const {
    return per(total(), work);
}

Cents line_sum(const CostLine& line, std::span<const double> prices, Cents hardware) {
    RY_CHECK(line.price < prices.size());
    const double of = line.of_hardware ? usd(hardware) : 1;
    return cents(line.quantity * prices[line.price] * of);
}

Cents hardware_sum(const CostPlan& plan, std::span<const double> prices) {
    Cents sum = 0;
    for (const CostLine& line : plan.capital) {
        if (!line.of_hardware) sum += line_sum(line, prices, 0);
    }
    return sum;
}

Cents supported_sum(const CostPlan& plan, std::span<const double> prices) {
    Cents sum = 0;
    for (const CostLine& line : plan.capital) {
        if (!line.of_hardware && !line.own_support) sum += line_sum(line, prices, 0);
    }
    return sum;
}

double worth_of_year(const CostPlan& plan, double year) {
    return portable_exp(-year * log_beyond_one(plan.discount));
}

double capital_a_year(const CostPlan& plan, double capital, std::optional<double> resale) {
    RY_CHECK(plan.years > 0);
    const double residual = resale.value_or(plan.residual);
    if (plan.discount <= 0) return capital * (1 - residual) / plan.years;
    const double worth = worth_of_year(plan, plan.years);
    return capital * (1 - residual * worth) / worth_of_years(plan, plan.years);
}

double share_of_years(const CostPlan& plan, double from, double until) {
    RY_CHECK(plan.horizon > 0 && from <= until);
    if (plan.discount <= 0) return (until - from) / plan.horizon;
    return worth_of_year(plan, from) * lost_in_years(plan, until - from) /
           lost_in_years(plan, plan.horizon);
}

// What of a purchase is not written off after so many years: straight, or with a discount what its annuity
// has not paid yet.
double left_of_purchase(const CostPlan& plan, double age, std::optional<double> resale) {
    const double residual = resale.value_or(plan.residual);
    const double to_come = std::max(0.0, plan.years - age);
    if (plan.discount <= 0) return residual + (1 - residual) * to_come / plan.years;
    const double worth = worth_of_year(plan, to_come);
    return capital_a_year(plan, 1, resale) * worth_of_years(plan, to_come) + residual * worth;
}

double bought_a_year(const CostPlan& plan, const BoughtLine& bought) {
    const double left = left_of_purchase(plan, bought.until - bought.from, bought.line.resale);
    if (plan.discount <= 0) return (1 - left) / plan.horizon;
    return (worth_of_year(plan, bought.from) - left * worth_of_year(plan, bought.until)) /
           worth_of_years(plan, plan.horizon);
}

Cents hardware_bought(const CostPhase& phase, std::span<const double> prices) {
    Cents sum = 0;
    for (const BoughtLine& b : phase.bought) {
        if (!b.line.of_hardware) sum += line_sum(b.line, prices, 0);
    }
    return sum;
}

namespace {

// What is there, and since when: lines of the same thing at the same price.
class Inventory {
  public:
    explicit Inventory(std::vector<CostPhase>& phases) : phases_(phases) {}

    void begin(std::size_t k, double horizon) {
        CostPhase& phase = phases_[k];
        std::vector<CostLine> missing;
        for (const CostLine& line : phase.plan.capital) {
            if (line.of_hardware) continue;
            const double more = line.quantity - have(line);
            if (more > 0) {
                missing.push_back(line);
                missing.back().quantity = more;
            }
        }
        retire(phase);
        for (CostLine& line : missing) held_.push_back({std::move(line), k});
        if (missing.empty()) return;
        for (const CostLine& line : phase.plan.capital) {
            if (line.of_hardware) phase.bought.push_back({line, phase.from, horizon});
        }
    }
    void end(double horizon) {
        for (const Held& held : held_) sell(held, held.line.quantity, horizon);
    }

  private:
    struct Held {
        CostLine line;
        std::size_t since = 0;  // phase
    };
    static bool same(const CostLine& a, const CostLine& b) {
        return a.what == b.what && a.price == b.price;
    }
    double have(const CostLine& line) const {
        double sum = 0;
        for (const Held& held : held_) sum += same(held.line, line) ? held.line.quantity : 0;
        return sum;
    }
    void sell(const Held& held, double quantity, double until) {
        CostPhase& phase = phases_[held.since];
        phase.bought.push_back({held.line, phase.from, until});
        phase.bought.back().line.quantity = quantity;
    }
    void retire(const CostPhase& phase) {
        for (Held& held : held_) {
            double wanted = 0;
            for (const CostLine& line : phase.plan.capital) {
                if (!line.of_hardware && same(line, held.line)) wanted += line.quantity;
            }
            const double out = std::min(held.line.quantity, have(held.line) - wanted);
            if (out <= 0) continue;
            sell(held, out, phase.from);
            held.line.quantity -= out;
        }
        std::erase_if(held_, [](const Held& held) { return held.line.quantity <= 0; });
    }

    std::vector<CostPhase>& phases_;
    std::vector<Held> held_;
};

// The number of an equal price among `all`, added where there is none.
std::size_t number_of(const Price& price, std::vector<Price>& all) {
    const auto same = [&](const Price& other) {
        return other.name == price.name && other.low == price.low &&
               other.typical == price.typical && other.high == price.high;
    };
    const auto found = std::ranges::find_if(all, same);
    if (found == all.end()) all.push_back(price);
    return static_cast<std::size_t>(std::ranges::find_if(all, same) - all.begin());
}

YearlyCost cost_of_phases(const CostPlan& plan, std::span<const double> prices) {
    YearlyCost out;
    for (const CostPhase& phase : plan.phases) {
        const Cents hardware = hardware_bought(phase, prices);
        for (const BoughtLine& b : phase.bought) {
            const double paid = usd(line_sum(b.line, prices, hardware));
            out.capital += paid;
            out.depreciation += paid * bought_a_year(plan, b);
        }
        const Cents supported = supported_sum(phase.plan, prices);
        Cents kept = 0;
        for (const CostLine& line : phase.plan.yearly) kept += line_sum(line, prices, supported);
        out.kept += usd(kept) * share_of_years(plan, phase.from, phase.until);
    }
    return out;
}

}  // namespace

CostPlan join_phases(std::vector<CostPhase> phases, double horizon) {
    RY_CHECK(!phases.empty());
    CostPlan out = phases[0].plan;
    std::vector<Price> prices;
    out.capital.clear();
    out.yearly.clear();
    out.used.clear();
    out.left_out.clear();
    out.rental.reset();
    out.horizon = horizon;
    for (CostPhase& phase : phases) {
        for (auto* lines : {&phase.plan.capital, &phase.plan.yearly, &phase.plan.used}) {
            for (CostLine& line : *lines) {
                line.price = number_of(phase.plan.prices[line.price], prices);
            }
        }
        const double share = share_of_years(out, phase.from, phase.until);
        for (CostLine line : phase.plan.used) {
            line.quantity *= share;
            out.used.push_back(std::move(line));
        }
        for (const std::string& what : phase.plan.left_out) {
            if (std::ranges::find(out.left_out, what) == out.left_out.end())
                out.left_out.push_back(what);
        }
        out.gpus = std::max(out.gpus, phase.plan.gpus);
        phase.plan.prices.clear();
    }
    Inventory there(phases);
    for (std::size_t k = 0; k < phases.size(); ++k) there.begin(k, horizon);
    there.end(horizon);
    out.prices = std::move(prices);
    out.phases = std::move(phases);
    return out;
}

Cents capital_sum(const CostPlan& plan, std::span<const double> prices) {
    const Cents hardware = hardware_sum(plan, prices);
    Cents sum = hardware;
    for (const CostLine& line : plan.capital) {
        if (line.of_hardware) sum += line_sum(line, prices, hardware);
    }
    return sum;
}

double used_in_a_year(const CostPlan& plan, std::size_t line, const CampaignUse& campaign) {
    return campaign.used[line] * plan.utilisation / campaign.years +
           plan.used[line].quantity * (1 - plan.utilisation);
}

namespace {

// A year of all capital: of products with a resale of their own, each by its own.
double depreciation(const CostPlan& plan, std::span<const double> prices, double capital) {
    double of_products = 0;
    double rest = capital;
    for (const CostLine& line : plan.capital) {
        if (!line.resale) continue;
        const double paid = usd(line_sum(line, prices, 0));
        of_products += capital_a_year(plan, paid, line.resale);
        rest -= paid;
    }
    return of_products + capital_a_year(plan, rest);
}

}  // namespace

YearlyCost yearly_cost(const CostPlan& plan, std::span<const double> prices,
                       const CampaignUse& campaign) {
    RY_CHECK(campaign.years > 0 && campaign.used.size() == plan.used.size());
    YearlyCost out = cost_of_phases(plan, prices);
    if (plan.phases.empty()) {
        out.capital = usd(capital_sum(plan, prices));
        out.depreciation = depreciation(plan, prices, out.capital);
        Cents kept = 0;
        const Cents supported = supported_sum(plan, prices);
        for (const CostLine& line : plan.yearly) kept += line_sum(line, prices, supported);
        out.kept = usd(kept);
    }
    const double scale = plan.utilisation / campaign.years;
    for (std::size_t i = 0; i < plan.used.size(); ++i) {
        out.used += used_in_a_year(plan, i, campaign) * prices[plan.used[i].price];
    }
    out.goodput_gpu_hours = campaign.goodput_gpu_hours * scale;
    out.tokens = campaign.tokens * scale;
    out.work = campaign.work * scale;
    return out;
}

namespace {

// A year of what an owner pays and a tenant does not, used for such a share of it.
double owners_alone(const CostPlan& plan, std::span<const double> prices,
                    const CampaignUse& campaign, double utilisation) {
    CostPlan owned = plan;
    CostPlan shared = plan;
    owned.utilisation = shared.utilisation = utilisation;
    std::erase_if(shared.capital, [](const CostLine& line) { return !line.of_tenants; });
    std::erase_if(shared.yearly, [](const CostLine& line) { return !line.of_tenants; });
    double both = 0;
    for (std::size_t i = 0; i < plan.used.size(); ++i) {
        if (!plan.used[i].of_tenants) continue;
        both += used_in_a_year(shared, i, campaign) * prices[plan.used[i].price];
    }
    const YearlyCost year = yearly_cost(shared, prices, campaign);
    return yearly_cost(owned, prices, campaign).total() - year.depreciation - year.kept - both;
}

}  // namespace

double break_even_hours(const CostPlan& plan, std::span<const double> prices,
                        const CampaignUse& campaign) {
    // What owning costs is straight in the hours used: idle + slope * hours.
    const double unused = owners_alone(plan, prices, campaign, 0);
    const double slope = (owners_alone(plan, prices, campaign, 1) - unused) / hours_per_year;
    const double rent = prices[*plan.rental] * real(plan.gpus);
    return rent > slope ? unused / (rent - slope) : infinite;
}

CostRange range_of(std::vector<double> draws, double typical) {
    RY_CHECK(!draws.empty());
    CostRange out{.typical = typical, .mean = summarise(draws).mean};
    std::ranges::sort(draws);
    out.low = sorted_quantile(draws, 0.025);
    out.high = sorted_quantile(draws, 0.975);
    return out;
}

CostRange CostStudy::range(double (*figure)(const YearlyCost&)) const {
    std::vector<double> values;
    for (const YearlyCost& draw : draws) values.push_back(figure(draw));
    return range_of(std::move(values), figure(typical));
}

namespace {

// At either end of each price, and what each explains of the spread over the draws.
void find_drivers(const CostPlan& plan, std::span<const CampaignUse> campaigns,
                  const CampaignUse& all, const std::vector<std::vector<double>>& by_price,
                  CostStudy& study) {
    std::vector<double> costs;
    for (const YearlyCost& draw : study.draws) costs.push_back(draw.per_goodput_gpu_hour());
    const double typical = study.typical.per_goodput_gpu_hour();
    if (!std::ranges::all_of(costs, [](double c) { return std::isfinite(c); })) return;
    const std::vector<double> prices = typical_prices(plan.prices);
    for (std::size_t p = 0; p < plan.prices.size(); ++p) {
        const auto change = [&](double price) {
            std::vector<double> changed = prices;
            changed[p] = price;
            return yearly_cost(plan, changed, all).per_goodput_gpu_hour() / typical - 1;
        };
        const CostDriver driver{plan.prices[p].name, change(plan.prices[p].low),
                                change(plan.prices[p].high),
                                squared_correlation(by_price[p], costs)};
        if (driver.low != 0 || driver.high != 0) study.drivers.push_back(driver);
    }
    std::vector<double> at_typical;
    for (const CampaignUse& c : campaigns) {
        at_typical.push_back(yearly_cost(plan, prices, c).per_goodput_gpu_hour());
    }
    std::vector<double> failures;
    for (std::size_t d = 0; d < costs.size(); ++d) {
        failures.push_back(at_typical[d % campaigns.size()]);
    }
    const CostRange spread = range_of(at_typical, typical);
    study.drivers.push_back({"failures", spread.low / typical - 1, spread.high / typical - 1,
                             squared_correlation(failures, costs)});
    std::ranges::stable_sort(study.drivers,
                             [](const auto& a, const auto& b) { return a.share > b.share; });
}

}  // namespace

CostStudy study_costs(const CostPlan& plan, std::span<const CampaignUse> campaigns) {
    RY_CHECK(!campaigns.empty() && plan.draws > 0);
    CostStudy study;
    const CampaignUse all = together(campaigns);
    const std::vector<double> typical = typical_prices(plan.prices);
    study.typical = yearly_cost(plan, typical, all);
    if (plan.rental) study.typical_break_even = break_even_hours(plan, typical, all);
    std::vector<std::vector<double>> by_price(plan.prices.size());
    for (std::int64_t d = 0; d < plan.draws; ++d) {
        const auto draw = static_cast<std::uint64_t>(d);
        const std::vector<double> prices = draw_prices(plan.prices, plan.seed, draw);
        const CampaignUse& campaign = campaigns[draw % campaigns.size()];
        study.draws.push_back(yearly_cost(plan, prices, campaign));
        if (plan.rental) study.break_even.push_back(break_even_hours(plan, prices, campaign));
        for (std::size_t p = 0; p < prices.size(); ++p) by_price[p].push_back(prices[p]);
    }
    find_drivers(plan, campaigns, all, by_price, study);
    return study;
}

CostDifference compare_costs(const CostStudy& first, const CostStudy& second,
                             double (*figure)(const YearlyCost&), double open) {
    const std::size_t draws = std::min(first.draws.size(), second.draws.size());
    std::vector<double> differences;
    double cheaper = 0;
    for (std::size_t d = 0; d < draws; ++d) {
        const double a = figure(first.draws[d]);
        const double b = figure(second.draws[d]);
        differences.push_back(a == b ? 0 : b - a);
        if (b < a) ++cheaper;
    }
    CostDifference out;
    out.second_cheaper = cheaper / real(draws);
    out.difference =
        range_of(std::move(differences), figure(second.typical) - figure(first.typical));
    const Interval middle =
        widened({out.difference.low, out.difference.high}, out.difference.typical, open);
    out.difference.low = middle.low;
    out.difference.high = middle.high;
    return out;
}

Interval widened(const Interval& around, double value, double open) {
    if (open <= 0) return around;
    // A typical value can lie outside the middle of skewed draws: an arm shorter than none gains all of
    // `open`.
    const auto arm = [&](double length) {
        return length > 0 ? std::hypot(length, open) : length + open;
    };
    return {value - arm(value - around.low), value + arm(around.high - value)};
}

}  // namespace railyard
