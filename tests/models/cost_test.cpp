// Money: prices as ranges, exact sums, a year's cost, and what a scenario's bill of materials comes to.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "models/campaign/cost_metrics.h"
#include "sim/rng.h"
#include "sim/statistics.h"
#include "tests/models/whole_campaign.h"
#include "tests/scenario_text.h"

using namespace railyard;

namespace {

double capital(const YearlyCost& c) {
    return c.capital;
}
double gpu_hour(const YearlyCost& c) {
    return c.per_goodput_gpu_hour();
}

// Closed form of a triangular distribution.
double mean_of(const Price& p) {
    return (p.low + p.typical + p.high) / 3;
}
double variance_of(const Price& p) {
    return (p.low * p.low + p.typical * p.typical + p.high * p.high - p.low * p.typical -
            p.low * p.high - p.typical * p.high) /
           18;
}

Price price(const std::string& name, double low, double typical, double high) {
    return {name, "USD", low, typical, high, "test"};
}

// Ten nodes and their switch, a yearly share of them, and energy.
CostPlan small_plan() {
    CostPlan plan;
    plan.prices = {price("node", 200'000, 300'000.10, 400'000),
                   price("switch", 30'000, 36'000.01, 50'000),
                   {"support", "/year", 0.05, 0.08, 0.12, "test"},
                   {"energy", "USD/kWh", 0.05, 0.1, 0.2, "test"},
                   {"rental", "USD/h", 2, 2.5, 4, "test"}};
    plan.capital = {{"nodes", 10, "node", 0, false}, {"leaf", 2, "switch", 1, false}};
    plan.yearly = {{"support", 1, "", 2, true}};
    plan.used = {{"energy", 1000, "kWh", 3, false}};
    plan.gpus = 80;
    plan.years = 5;
    plan.draws = 20'000;
    plan.rental = 4;
    return plan;
}

// Half a year on 80 GPUs at 75 % goodput.
CampaignUse half_a_year() {
    return {0.5, 0.75 * 80 * hours_per_year / 2, 3e12, {200'000}};
}

const std::string two_nodes = cluster_text(2, "20 day", 4) + R"(
[fabric.compute]
topology = "fat_tree"
[job]
step.time = "2 s"
checkpoint.mode = "none"
[[failures.cause]]
name = "gpu_hw"
rate_per_node = "1 /day"
remedy = "replace"
repair_time = "1 h"
spare_part = "gpu"
[cost.price]
h100_8gpu_node = "300000.55 USD"
sw_ndr64 = "40 kUSD"
sw_mgmt_1g = "1000 USD"
aoc_400g = "900 USD"
copper_1g = "10 USD"
rack = "5000 USD"
spare_parts = 0.01
support_fraction_per_year = "0.1 /year"
colo_kw_month = "100 USD/kW/month"
generic_per_server = "20000 USD"
staff_per_year = "50000 USD/year"
)";

Cents bought(const Scenario& s) {
    return capital_sum(s.cost->plan, typical_prices(s.cost->plan.prices));
}

}  // namespace

TEST_CASE("phases that change nothing cost what one plan does, and growth is bought and sold") {
    CostPlan plan = small_plan();
    plan.residual = 0.1;
    const std::vector<double> prices = typical_prices(plan.prices);
    CampaignUse nothing;
    nothing.years = plan.years;
    nothing.used.assign(1, 0);
    for (const double discount : {0.0, 1e-15, 0.08}) {
        plan.discount = discount;
        const YearlyCost whole = yearly_cost(plan, prices, nothing);
        const CostPlan same =
            join_phases({{"now", 0, 2, plan, {}}, {"then", 2, plan.years, plan, {}}}, plan.years);
        CampaignUse both = nothing;
        both.used.assign(2, 0);
        const YearlyCost joined = yearly_cost(same, typical_prices(same.prices), both);
        CHECK(joined.capital == doctest::Approx(whole.capital));
        CHECK(joined.depreciation == doctest::Approx(whole.depreciation));
        CHECK(joined.kept == doctest::Approx(whole.kept));
        CHECK(same.phases[1].bought.empty());
        // Those that end before all is written off cost no more a year.
        const double early = 0.6 * plan.years;
        const CostPlan shorter =
            join_phases({{"now", 0, 1, plan, {}}, {"then", 1, early, plan, {}}}, early);
        both.years = early;
        const YearlyCost ended = yearly_cost(shorter, typical_prices(shorter.prices), both);
        CHECK(ended.depreciation == doctest::Approx(whole.depreciation));
    }
    // Half of the nodes come later and two leaves go: each is paid for the time that it is there.
    plan.discount = 0;
    CostPlan less = plan;
    less.capital[0].quantity = 4;
    CostPlan more = plan;
    more.capital.pop_back();
    const CostPlan grown = join_phases({{"now", 0, 1, less, {}}, {"then", 1, 3, more, {}}}, 3);
    const double node = prices[0];
    const double leaf = prices[1];
    const YearlyCost cost =
        yearly_cost(grown, prices, {.years = 3, .used = std::vector<double>(2, 0)});
    CHECK(cost.capital == doctest::Approx(10 * node + 2 * leaf));
    const double written_off = 0.9 / plan.years;
    CHECK(cost.depreciation ==
          doctest::Approx(written_off * (4 * node * 3 + 6 * node * 2 + 2 * leaf) / 3));
    const double support = prices[2];
    CHECK(cost.kept == doctest::Approx(support * ((4 * node + 2 * leaf) + 2 * 10 * node) / 3));
}

TEST_CASE("what phases have done is added up, and a cluster that is not there yet costs nothing") {
    const std::string text = R"(
[run]
start = "2026-06-01"
duration = "30 day"
replicas = 4
[[phase]]
at = "2026-06-21"
set = { cluster.nodes = 16, job.nodes = 16 }
stop = "1 day"
[cluster]
nodes = 8
[job]
nodes = 8
model = "llama2_7b"
[job.parallel]
global_batch = 512
[failures]
profile = "meta_rsc1"
[cost]
)";
    ScenarioChanges changes;
    CHECK_THROWS_WITH(load_scenario(text, "phases", changes), doctest::Contains("stays as it is"));
    changes.phases = true;
    const Scenario s = load_scenario(text, "phases", changes);
    REQUIRE(s.phases.size() == 2);
    const ReplicaResult r = run_replica(s, 1, false);
    const ReplicaResult first = run_replica(*s.phases[0].as, 1, false);
    const auto value = [](const ReplicaResult& of, const char* name) {
        return std::ranges::find(of.metrics, name, &Metric::name)->value;
    };
    CHECK(value(r, "phase_1_goodput") == value(first, "goodput"));
    const ReplicaResult second = run_replica(*s.phases[1].as, 1, false);
    const double apart = value(first, "tokens") + value(second, "tokens");
    CHECK(value(r, "tokens") < apart);  // what the stop found unsaved
    CHECK(value(r, "tokens") == doctest::Approx(apart).epsilon(1e-3));
    CHECK(s.phases[0].as->seed == s.seed);
    CHECK(s.phases[1].as->seed == RandomStream(s.seed, 1, "phase").next_u64());
    CHECK(static_cast<double>(r.ledger.total()) * 1e-9 ==
          doctest::Approx(s.gpu_seconds(s.duration)));
    CHECK(first.simulated == 20 * std::chrono::hours(24));
    changes.settings = {"run.ready=\"2026-06-11\""};
    const Scenario late = load_scenario(text, "phases", changes);
    const ReplicaResult waited = run_replica(late, 1, false);
    CHECK(value(waited, "cost_capital") == doctest::Approx(value(r, "cost_capital")));
    CHECK(value(waited, "cost_per_year") < 0.8 * value(r, "cost_per_year"));
    CHECK(value(waited, "tokens") < value(r, "tokens"));
    changes.settings = {"run.start=\"2026-07-01\""};
    CHECK_THROWS_WITH(load_scenario(text, "phases", changes),
                      doctest::Contains("comes before the phase before it"));
}

TEST_CASE(
    "with a discount capital costs an annuity that is worth what was paid less what is left") {
    CostPlan plan = small_plan();
    plan.residual = 0.1;
    CHECK(capital_a_year(plan, 1000) == doctest::Approx(180));
    plan.discount = 0.08;
    const double annuity = capital_a_year(plan, 1000);
    double worth = 0;
    for (int year = 1; year <= 5; ++year) worth += annuity / std::pow(1.08, year);
    CHECK(worth == doctest::Approx(1000 - 100 / std::pow(1.08, 5)));
}

TEST_CASE("prices with the same luck lie at the same share of their ranges, others do not") {
    std::vector<Price> prices = {price("a", 100, 150, 200), price("b", 10, 15, 20),
                                 price("c", 10, 15, 20)};
    prices[0].luck = prices[1].luck = "dollar";
    int apart = 0;
    for (std::uint64_t draw = 0; draw < 50; ++draw) {
        const std::vector<double> drawn = draw_prices(prices, 1, draw);
        CHECK(drawn[0] == doctest::Approx(10 * drawn[1]));
        if (std::abs(drawn[1] - drawn[2]) > 1e-6) ++apart;
    }
    CHECK(apart > 40);
}

TEST_CASE("hardware with support of its own is in no share that support costs") {
    CostPlan plan = small_plan();
    const std::vector<double> prices = typical_prices(plan.prices);
    plan.capital[0].own_support = true;
    CHECK(supported_sum(plan, prices) == 2 * 36'000'01);
    CHECK(yearly_cost(plan, prices, half_a_year()).kept == doctest::Approx(0.08 * 72'000.02));
}

TEST_CASE("a triangular price has its closed form's quantiles, mean and variance") {
    const Price p = price("x", 10, 14, 30);
    CHECK(triangular(p, 0) == 10);
    CHECK(triangular(p, 0.2) == doctest::Approx(14));  // (14 - 10) / (30 - 10) lies below the mode
    CHECK(triangular(p, 0.05) == doctest::Approx(10 + std::sqrt(0.05 * 20 * 4)));
    CHECK(triangular(p, 0.75) == doctest::Approx(30 - std::sqrt(0.25 * 20 * 16)));
    CHECK(triangular(price("quote", 7, 7, 7), 0.3) == 7);
    std::vector<double> draws;
    for (std::uint64_t d = 0; d < 40'000; ++d) {
        draws.push_back(draw_prices(std::vector{p}, 1, d)[0]);
    }
    const Summary s = summarise(draws);
    CHECK(s.ci95.contains(mean_of(p)));
    CHECK(s.deviation == doctest::Approx(std::sqrt(variance_of(p))).epsilon(0.01));
}

TEST_CASE("another price moves no price's draws") {
    const std::vector<Price> few = {price("a", 1, 2, 3), price("b", 1, 2, 3)};
    const std::vector<Price> more = {price("c", 5, 6, 7), few[1], few[0]};
    for (std::uint64_t d = 0; d < 100; ++d) {
        const auto x = draw_prices(few, 7, d);
        const auto y = draw_prices(more, 7, d);
        CHECK(x[0] == y[2]);
        CHECK(x[1] == y[1]);
        CHECK(x[0] != x[1]);
    }
}

TEST_CASE("capital is an exact sum of cents, and is written off straight") {
    CostPlan plan = small_plan();
    const std::vector<double> prices = typical_prices(plan.prices);
    CHECK(hardware_sum(plan, prices) == 10 * 300'000'10 + 2 * 36'000'01);
    // 2 % of parts on the shelf are capital, and not part of what support is a share of.
    plan.capital.push_back({"spare parts", 1, "", 5, true});
    plan.prices.push_back({"spares", "", 0.02, 0.02, 0.02, "test"});
    const std::vector<double> with_spares = typical_prices(plan.prices);
    CHECK(capital_sum(plan, with_spares) == 307'200'102 + 6'144'002);
    plan.residual = 0.1;
    const YearlyCost cost = yearly_cost(plan, with_spares, half_a_year());
    CHECK(cost.capital == 3'133'441.04);
    CHECK(cost.depreciation == doctest::Approx(3'133'441.04 * 0.9 / 5));
    CHECK(cost.kept == doctest::Approx(0.08 * 3'072'001.02).epsilon(1e-8));
}

TEST_CASE("a product with a resale of its own is written off down to that") {
    CostPlan plan = small_plan();
    const std::vector<double> prices = typical_prices(plan.prices);
    plan.residual = 0.1;
    plan.capital[0].resale = 0.3;
    const YearlyCost cost = yearly_cost(plan, prices, half_a_year());
    CHECK(cost.depreciation == doctest::Approx((3'000'001 * 0.7 + 72'000.02 * 0.9) / 5));
    plan.horizon = 2;
    const BoughtLine nodes{plan.capital[0], 0, 2};
    CHECK(bought_a_year(plan, nodes) == doctest::Approx(0.7 * 2 / 5 / 2));
}

TEST_CASE("a discount of next to nothing costs what none does, and a usual one its annuity") {
    CostPlan plan = small_plan();
    plan.residual = 0.1;
    plan.horizon = 3;
    const double straight = capital_a_year(plan, 1e6);
    const double third = share_of_years(plan, 1, 2);
    for (const double discount : {1e-300, 1e-18, 1e-15, 1e-12}) {
        CAPTURE(discount);
        plan.discount = discount;
        CHECK(capital_a_year(plan, 1e6) == doctest::Approx(straight).epsilon(1e-10));
        CHECK(share_of_years(plan, 1, 2) == doctest::Approx(third).epsilon(1e-10));
    }
    plan.discount = 0.08;
    const double worth = std::pow(1.08, -5);
    CHECK(capital_a_year(plan, 1e6) ==
          doctest::Approx(1e6 * (1 - 0.1 * worth) * 0.08 / (1 - worth)).epsilon(1e-12));
}

TEST_CASE("a year is the campaign's use as often as it fits, and idle for the rest") {
    CostPlan plan = small_plan();
    const std::vector<double> prices = typical_prices(plan.prices);
    const YearlyCost full = yearly_cost(plan, prices, half_a_year());
    CHECK(full.used == doctest::Approx(400'000 * 0.1));
    CHECK(full.goodput_gpu_hours == doctest::Approx(0.75 * 80 * 8760));
    CHECK(full.tokens == doctest::Approx(6e12));
    CHECK(full.per_1e12_tokens() == doctest::Approx(full.total() / 6));
    plan.utilisation = 0.25;
    const YearlyCost quarter = yearly_cost(plan, prices, half_a_year());
    CHECK(quarter.used == doctest::Approx((0.25 * 400'000 + 0.75 * 1000) * 0.1));
    CHECK(quarter.goodput_gpu_hours == doctest::Approx(full.goodput_gpu_hours / 4));
    CHECK(quarter.depreciation == full.depreciation);
    CHECK(std::isinf(yearly_cost(plan, prices, {1, 0, 0, {0}}).per_goodput_gpu_hour()));
}

TEST_CASE("at the break-even hours renting costs what owning does") {
    CostPlan plan = small_plan();
    const std::vector<double> prices = typical_prices(plan.prices);
    const double hours = break_even_hours(plan, prices, half_a_year());
    REQUIRE(hours > 0);
    REQUIRE(hours < hours_per_year);
    plan.utilisation = hours / hours_per_year;
    CHECK(yearly_cost(plan, prices, half_a_year()).total() == doctest::Approx(2.5 * 80 * hours));
    // What who rents pays as well is no reason to do either.
    CostPlan staffed = small_plan();
    staffed.capital.push_back(
        {.what = "store", .quantity = 3, .per = "TB", .price = 1, .of_tenants = true});
    staffed.yearly[0].of_tenants = true;
    staffed.yearly.push_back(
        {.what = "staff", .quantity = 9, .per = "", .price = 1, .of_tenants = true});
    CHECK(break_even_hours(staffed, prices, half_a_year()) == doctest::Approx(hours));
    plan.prices[4].typical = 0.01;  // less than the energy of an hour
    CHECK(std::isinf(break_even_hours(plan, typical_prices(plan.prices), half_a_year())));
}

TEST_CASE("the interval of one price is its own, of many that of their sum") {
    CostPlan one = small_plan();
    one.capital = {{"nodes", 10, "node", 0, false}};
    const CampaignUse use = half_a_year();
    const CostRange alone = study_costs(one, std::span(&use, 1)).range(capital);
    CHECK(alone.low == doctest::Approx(10 * triangular(one.prices[0], 0.025)).epsilon(0.005));
    CHECK(alone.high == doctest::Approx(10 * triangular(one.prices[0], 0.975)).epsilon(0.005));
    CHECK(alone.typical == 3'000'001);
    CHECK(alone.mean == doctest::Approx(10 * mean_of(one.prices[0])).epsilon(0.003));

    CostPlan many = small_plan();
    many.prices.clear();
    many.capital.clear();
    many.yearly.clear();
    many.rental.reset();
    double mean = 0;
    double variance = 0;
    for (std::size_t i = 0; i < 24; ++i) {
        const double n = 1 + static_cast<double>(i % 3);
        many.prices.push_back(price(fmt::format("part {}", i), 100, 150, 400));
        many.capital.push_back({"part", n, "", i, false});
        mean += n * mean_of(many.prices[i]);
        variance += n * n * variance_of(many.prices[i]);
    }
    many.used = {{"energy", 0, "kWh", 0, false}};
    const CampaignUse nothing_used{1, 1, 0, {0}};
    const CostRange sum = study_costs(many, std::span(&nothing_used, 1)).range(capital);
    CHECK(sum.mean == doctest::Approx(mean).epsilon(0.002));
    CHECK(sum.low == doctest::Approx(mean - 1.96 * std::sqrt(variance)).epsilon(0.01));
    CHECK(sum.high == doctest::Approx(mean + 1.96 * std::sqrt(variance)).epsilon(0.01));
}

TEST_CASE("two designs pay the same prices: what they share drops out of the difference") {
    const CostPlan first = small_plan();
    CostPlan second = first;
    second.capital.push_back({"another leaf", 1, "switch", 1, false});
    const CampaignUse use = half_a_year();
    const CostStudy a = study_costs(first, std::span(&use, 1));
    const CostStudy b = study_costs(second, std::span(&use, 1));
    const CostDifference d = compare_costs(a, b, capital);
    CHECK(d.decided());
    CHECK(d.second_cheaper == 0);
    CHECK(d.difference.low == doctest::Approx(triangular(first.prices[1], 0.025)).epsilon(0.005));
    CHECK(d.difference.high == doctest::Approx(triangular(first.prices[1], 0.975)).epsilon(0.005));
    // The intervals of the two themselves overlap almost wholly.
    CHECK(a.range(capital).high >
          b.range(capital).low + 0.9 * (b.range(capital).high - b.range(capital).low));
    CHECK(compare_costs(a, a, gpu_hour).difference.low == 0);
    CHECK_FALSE(compare_costs(a, a, gpu_hour).decided());
}

TEST_CASE("money is as open as other metrics where few draws of a network were looked at") {
    const CostPlan first = small_plan();
    CostPlan second = first;
    second.capital.push_back({"another leaf", 1, "switch", 1, false});
    const CampaignUse use = half_a_year();
    const CostStudy a = study_costs(first, std::span(&use, 1));
    const CostStudy b = study_costs(second, std::span(&use, 1));
    const CostMetric& metric = *cost_metric("cost_per_1e12_tokens");
    // The second is dearer by ten in one draw and by thirty in the other, whatever else happens.
    std::vector<double> of_a;
    std::vector<double> of_b;
    for (int r = 0; r < 16; ++r) {
        of_a.push_back(100 + r);
        of_b.push_back(of_a.back() + (r % 2 == 0 ? 10 : 30));
    }
    const PairedComparison alone = compare_money({a, of_a, 0}, {b, of_b, 0}, metric, 0.95);
    CHECK(alone.verdict == Verdict::first);
    const double open = open_by_luck({a, of_a, 2}, {b, of_b, 2}, 0.95);
    CHECK(open == doctest::Approx(student_t_quantile(0.975, 1) * 10));
    CHECK(open_by_luck({a, of_a, 2}, {b, of_b, 0}, 0.95) == open);
    // Sixteen pairs of their own leave it open, too; one pair wholly, and pairs that are equal not at all.
    CHECK(open_by_luck({a, of_a, 0}, {b, of_b, 0}, 0.95) ==
          doctest::Approx(student_t_quantile(0.975, 15) * 10 / std::sqrt(15)));
    CHECK(std::isinf(open_by_luck({a, {100}, 0}, {b, {110}, 0}, 0.95)));
    CHECK(open_by_luck({a, {100}, 0}, {b, {100}, 0}, 0.95) == 0);
    CHECK(compare_money({a, {100}, 0}, {b, {110}, 0}, metric, 0.95).verdict == Verdict::undecided);
    const CostRange bare = compare_costs(a, b, metric.of).difference;
    const PairedComparison shared = compare_money({a, of_a, 2}, {b, of_b, 2}, metric, 0.95);
    CHECK(shared.difference == alone.difference);
    CHECK(shared.difference - shared.interval.low ==
          doctest::Approx(std::hypot(bare.typical - bare.low, open)));
    CHECK(shared.interval.high - shared.difference ==
          doctest::Approx(std::hypot(bare.high - bare.typical, open)));
    // `cost` says the same.
    const CostDifference d = compare_costs(a, b, metric.of, open);
    CHECK(d.difference.low == doctest::Approx(shared.interval.low));
    CHECK(d.difference.high == doctest::Approx(shared.interval.high));
}

TEST_CASE("what dominates is named first, and failures are among it") {
    CostPlan plan = small_plan();
    plan.draws = 4000;
    const std::vector<CampaignUse> steady(8, half_a_year());
    const CostStudy prices_only = study_costs(plan, steady);
    REQUIRE(prices_only.drivers.size() >= 4);
    CHECK(prices_only.drivers[0].name == "node");
    CHECK(prices_only.drivers[0].share > 0.8);
    CHECK(prices_only.drivers[0].low < 0);
    CHECK(prices_only.drivers[0].high > 0);
    CHECK(prices_only.drivers.back().share < 1e-3);
    std::vector<CampaignUse> uneven(8, half_a_year());
    for (std::size_t i = 0; i < uneven.size(); i += 2) uneven[i].goodput_gpu_hours /= 4;
    CHECK(study_costs(plan, uneven).drivers[0].name == "failures");
}

TEST_CASE("a small cluster costs what its parts add up to") {
    const Scenario s = scenario(two_nodes);
    REQUIRE(s.cost);
    // 16 NICs to one leaf; 2 x 2 and the server's 2 to another; 3 ports of management; one rack.
    const Cents hardware =
        2 * 300'000'55 + 2 * 40'000'00 + 1'000'00 + 22 * 900'00 + 3 * 10'00 + 5'000'00 + 20'000'00;
    CHECK(hardware_sum(s.cost->plan, typical_prices(s.cost->plan.prices)) == hardware);
    CHECK(bought(s) == hardware + std::llround(static_cast<double>(hardware) * 0.01));

    const WholeCampaign r = run_whole(s);
    const CampaignUse use = usage_of(s, r.each[0]);
    CHECK(use.used[static_cast<std::size_t>(UsedLine::repair_visits)] ==
          static_cast<double>(r.each[0].repairs[0]));
    CHECK(r.each[0].repairs[0] > 10);
    CHECK(use.used[static_cast<std::size_t>(UsedLine::gpu_parts)] == 0);  // support pays
    const YearlyCost year = yearly_cost(s.cost->plan, typical_prices(s.cost->plan.prices), use);
    const double kw = 2 * 10.2 + 2 * 1.72 + 0.11;  // ratings
    CHECK(year.kept == doctest::Approx(0.1 * usd(hardware) + kw * 12 * 100 + 50'000).epsilon(1e-6));
    CHECK(r.metric("cost_capital").summary.mean == usd(bought(s)));

    const Scenario uncovered = scenario(two_nodes, {"cost.parts_covered=false"});
    const CampaignUse parts = usage_of(uncovered, run_replica(uncovered, 0, false));
    CHECK(parts.used[static_cast<std::size_t>(UsedLine::gpu_parts)] ==
          parts.used[static_cast<std::size_t>(UsedLine::repair_visits)]);
}

TEST_CASE("a management cable beyond copper's reach is bought as the fibre that it is") {
    const Scenario s = scenario(two_nodes, {"fabric.management.endpoint_cable=120 m"});
    REQUIRE(s.cost);
    std::map<std::string, double> bought_there;
    for (const CostLine& line : s.cost->plan.capital) {
        if (!line.what.starts_with("management NIC")) continue;
        bought_there[line.what] = line.quantity;
        // Transceivers of so little are cheap.
        if (line.per == "transceiver") {
            CHECK(s.cost->plan.prices[line.price].name == "optic_1g");
        }
    }
    const std::string cables = "management NIC to leaf";
    CHECK(bought_there == std::map<std::string, double>{{cables + " transceivers", 6},
                                                        {cables + " fibres", 3},
                                                        {cables + " fibre", 360}});
}

TEST_CASE(
    "the bill for energy is what the campaign's meter shows, and more than an idle cluster's") {
    const Scenario s = scenario(two_nodes);
    const ReplicaResult r = run_replica(s, 0, false);
    const double kwh = usage_of(s, r).used[static_cast<std::size_t>(UsedLine::energy)];
    const auto meter = std::find_if(r.metrics.begin(), r.metrics.end(),
                                    [](const Metric& m) { return m.name == "energy"; });
    REQUIRE(meter != r.metrics.end());
    CHECK(kwh == doctest::Approx(meter->value / 3.6e6));
    CHECK(kwh > s.cost->idle_kwh_per_year * 20 * 24 / hours_per_year);
}

TEST_CASE("a campaign that gives nothing has a cost, and no cost per anything") {
    const Scenario s = scenario(two_nodes, {"run.events_max=1"});
    const CampaignResult r = run_campaign(s, {});
    REQUIRE(r.metric("goodput").summary.mean == 0);
    const CostStudy study = study_costs(s.cost->plan, r.uses);
    CHECK(study.typical.capital == usd(bought(s)));
    CHECK(std::isinf(study.range(gpu_hour).high));
    CHECK(study.drivers.empty());
}

TEST_CASE("money moves nothing that is simulated") {
    const std::string text = two_nodes;
    const std::string without = text.substr(0, text.find("[cost.price]"));
    CHECK(run_campaign(scenario(text), {}).trajectory ==
          run_campaign(scenario(without), {}).trajectory);
}

TEST_CASE("published: an H100 node, a switch, NVL72, DGX B200, cabling per GPU") {
    StandaloneCatalogue own;
    const auto holds = [&](const char* name, double usd_published) {
        const Price p = catalogue_price(own.catalogue, name);
        CAPTURE(name);
        CHECK(p.low <= usd_published);
        CHECK(usd_published <= p.high);
    };
    holds("h100_8gpu_node", 317'000);  // a second quote; the typical price is the first
    holds("sw_ndr64", 36'000);
    holds("sw_ndr64", 50'000);
    holds("gb200_nvl72", 3e6);
    holds("dgx_b200", 515'000);
    // 1,024 GPUs on two tiers of NDR: optics and fibre came to 2,560 USD per GPU.
    const Scenario s = scenario(cluster_text(128, "1 h") + R"(
[job]
step.time = "1 s"
checkpoint.mode = "none"
[fabric.compute]
topology = "fat_tree"
[cost]
)");
    const CostPlan& plan = s.cost->plan;
    double low = 0;
    double high = 0;
    for (const CostLine& line : plan.capital) {
        if (!line.what.starts_with("compute") || line.per == "switch") continue;
        low += line.quantity * plan.prices[line.price].low / 1024;
        high += line.quantity * plan.prices[line.price].high / 1024;
    }
    CHECK(low < 2560);
    CHECK(high > 2560);
    CHECK(high < 3200);
}

TEST_CASE("what a budget does not buy is said, with by how much") {
    const auto said = [](const char* budget) {
        const Scenario s = scenario(two_nodes, {fmt::format("cost.budget={}", budget)});
        for (const Diagnostic& warning : s.warnings) {
            if (warning.path == "cost.budget") return warning.message;
        }
        return std::string();
    };
    CHECK(said("1 MUSD") == "");
    CHECK(said("700 kUSD").starts_with("over budget: the cluster costs "));
    CHECK(said("700 kUSD").find("even at the lowest prices") != std::string::npos);
}

TEST_CASE(
    "every price of the catalogue has a range or a reason, and hardware names prices that exist") {
    StandaloneCatalogue own;
    const std::vector<std::string> prices = Catalogue::names("price");
    const std::set<std::string> names(prices.begin(), prices.end());
    for (const char* kind : {"node", "nic", "switch", "gpu"}) {
        for (const std::string& name : Catalogue::names(kind)) {
            for (const char* key : {"price_ref", "rental_ref"}) {
                if (!own.catalogue.has(kind, name, key)) continue;
                CAPTURE(name);
                REQUIRE(names.count(own.catalogue.text(kind, name, key)) == 1);
                const Price p = catalogue_price(own.catalogue, own.catalogue.text(kind, name, key));
                CHECK(p.low < p.typical + 1e-9);
                CHECK(p.low < p.high);
                CHECK_FALSE(p.origin.empty());
            }
        }
    }
}

TEST_CASE("each product has a price of its own") {
    StandaloneCatalogue own;
    std::map<std::string, std::string> of;  // by price
    for (const char* kind : {"node", "nic", "switch", "gpu", "storage"}) {
        for (const std::string& name : Catalogue::names(kind)) {
            if (!own.catalogue.has(kind, name, "price_ref")) continue;
            const std::string price = own.catalogue.text(kind, name, "price_ref");
            CAPTURE(name);
            CHECK_MESSAGE(of.try_emplace(price, name).second, price, " is ", of[price], "'s too");
        }
    }
    CHECK(of.count("weka_per_usable_tb") == 1);
}

TEST_CASE("two vendors' stores are drawn apart, and equal ranges decide nothing") {
    const auto study = [](const char* system) {
        const Scenario s = scenario(std::string(cluster_text(2, "1 day") + R"(
[job]
step.time = "1 s"
checkpoint.mode = "none"
[storage]
system = ")") + system + R"("
servers = 8
[cost]
)");
        return study_costs(s.cost->plan, run_campaign(s, {}).uses);
    };
    // As many usable TB of either.
    const CostStudy gpfs = study("gpfs");
    const CostMetric* capital_metric = cost_metric("cost_capital");
    REQUIRE(capital_metric != nullptr);
    const CostedReplicas of_gpfs{gpfs, {0}};
    const CostStudy lustre = study("lustre");
    CHECK(compare_money(of_gpfs, of_gpfs, *capital_metric, 0.95).verdict == Verdict::equal);
    const PairedComparison p = compare_money(of_gpfs, {lustre, {0}}, *capital_metric, 0.95);
    CHECK(std::abs(p.difference) < 0.1 * p.interval.half_width());
    CHECK(p.interval.low < 0);
    CHECK(p.interval.high > 0);
    CHECK(p.verdict == Verdict::undecided);
}

TEST_CASE("a summary's intervals of money have the prices in them") {
    const Scenario s = scenario(cluster_text(2, "1 day", 4) + R"(
[job]
step.time = "1 s"
checkpoint.mode = "none"
[cost]
)");
    const CampaignResult r = run_campaign(s, {});
    const CostStudy study = study_costs(s.cost->plan, r.uses);
    std::vector<MetricSummary> metrics = r.metrics;
    carry_prices(study, metrics);
    for (std::size_t i = 0; i < metrics.size(); ++i) {
        const CostMetric* metric = cost_metric(metrics[i].name);
        const Interval& interval = metrics[i].summary.ci95;
        if (metric == nullptr) {
            const double before = r.metrics[i].summary.ci95.low;
            CHECK((interval.low == before || (std::isnan(interval.low) && std::isnan(before))));
            continue;
        }
        CAPTURE(metrics[i].name);
        CHECK(interval.low == study.range(metric->of).low);
        CHECK(interval.high > 1.05 * metrics[i].summary.mean);  // a node alone costs 230 to 400
    }
}

TEST_CASE("the guides' own prices can be chosen") {
    const auto node_price = [](const char* values, const char* name) {
        const Scenario s =
            scenario(std::string(two_nodes).substr(0, std::string(two_nodes).find("[cost.price]")) +
                         "[cost]\n",
                     {fmt::format("catalogue.values={}", values)});
        const auto& prices = s.cost->plan.prices;
        return *std::find_if(prices.begin(), prices.end(),
                             [&](const Price& p) { return p.name == name; });
    };
    CHECK(node_price("corrected", "sw_ndr64").typical == 36'000);
    const Price guide = node_price("seed", "sw_ndr64");
    CHECK(guide.typical == 30'000);
    CHECK(guide.low == guide.high);
}
