#pragma once
// What a cluster costs to buy, to keep for a year and to use, and what that makes of its answer: USD per
// goodput GPU-hour and per 10^12 trained tokens. The equations are in this folder's README.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/facility/cost_price.h"
#include "sim/statistics.h"

namespace railyard {

constexpr double hours_per_year = 8760;
constexpr double seconds_per_year = hours_per_year * 3600;

// So many of something at a price.
struct CostLine {
    std::string what;
    double quantity = 0;
    std::string per;                 // what is counted: "node", "usable TB"
    std::size_t price = 0;           // among CostPlan's
    bool of_hardware = false;        // the price is a share of all capital lines without this mark
    bool own_support = false;        // bought with support that has a line of its own
    bool of_tenants = false;         // who rents GPUs pays it as well
    std::optional<double> resale{};  // what is left of it; none: CostPlan::residual
};

// What is bought of a line on a day, and kept until another.
struct BoughtLine {
    CostLine line;
    double from = 0;  // years after the first day
    double until = 0;
};

struct CostPhase;

// The lines of a cluster. What has no price is named in left_out and is in no sum.
struct CostPlan {
    // The defaults, in cost.cpp: compiled once there, not in each source that uses one.
    CostPlan();
    CostPlan(const CostPlan&);
    CostPlan(CostPlan&&) noexcept;
    CostPlan& operator=(const CostPlan&);
    CostPlan& operator=(CostPlan&&) noexcept;
    ~CostPlan();

    std::vector<Price> prices;
    std::vector<CostLine> capital;  // paid once
    std::vector<CostLine> yearly;   // paid every year, whatever runs
    std::vector<CostLine>
        used;  // their quantities are a CampaignUse's; here: those of an idle year
    std::vector<std::string> left_out;
    std::int64_t gpus = 0;
    double years = 1;              // over which capital is written off, straight
    double residual = 0;           // what is then left of it
    double discount = 0;           // what money is worth less a year later, as a share
    double utilisation = 1;        // share of a year that the cluster is used as in the campaign
    std::optional<double> budget;  // USD
    std::optional<std::size_t> rental;  // price of one GPU-hour elsewhere
    std::uint64_t seed = 1;
    std::int64_t draws = 0;  // of prices
    // When the cluster changes on some days; empty: it stays as it is. Then `used` has the lines of one
    // phase after those of another, and there are no other lines here.
    std::vector<CostPhase> phases;
    double horizon = 0;  // years that they last together
};

// What is there from a day until another.
struct CostPhase {
    std::string name;
    double from = 0;  // years after the first day
    double until = 0;
    CostPlan plan;                   // of all of it, at the whole's prices
    std::vector<BoughtLine> bought;  // on its first day
};
// Makes one plan of those of phases, which follow each other until `horizon`: what one has more of than the
// one before is bought on its first day, what it has less of is sold, what came first first.
CostPlan join_phases(std::vector<CostPhase> phases, double horizon);
// The same every year of the horizon, what is paid at a constant rate from one time until another.
double share_of_years(const CostPlan& plan, double from, double until);
Cents hardware_bought(const CostPhase& phase, std::span<const double> prices);
// What a purchase costs a year of the horizon, for a dollar: its price less what it is then sold for, or
// still worth: written off straight over CostPlan::years down to the residual.
double bought_a_year(const CostPlan& plan, const BoughtLine& bought);

// What one campaign used and gave.
struct CampaignUse {
    double years = 0;
    double goodput_gpu_hours = 0;
    double tokens = 0;
    std::vector<double> used;  // quantities of CostPlan::used
    double work = 0;           // of a mix of jobs, as their kinds' worths count it
};
// The use of several campaigns, one after the other.
CampaignUse together(std::span<const CampaignUse> campaigns);

// What one year costs, at given prices. Capital and what is paid every year are exact sums of cents.
struct YearlyCost {
    double capital = 0;       // bought once
    double depreciation = 0;  // a year's share of it
    double kept = 0;          // paid every year
    double used = 0;          // paid by use
    double goodput_gpu_hours = 0;
    double tokens = 0;
    double work = 0;
    double total() const { return depreciation + kept + used; }
    double per_goodput_gpu_hour() const;  // infinite without goodput
    double per_1e12_tokens() const;
    double per_work() const;
};
Cents line_sum(const CostLine& line, std::span<const double> prices, Cents hardware);
Cents hardware_sum(const CostPlan& plan, std::span<const double> prices);
// The part of it without a support of its own: what yearly lines of the hardware are a share of.
Cents supported_sum(const CostPlan& plan, std::span<const double> prices);
// The same every year, what an amount of capital costs over CostPlan::years less what is left of it then:
// with a discount, the annuity of the day of purchase.
double capital_a_year(const CostPlan& plan, double capital, std::optional<double> resale = {});
// What something paid at the end of year k = 1, 2, ... is worth on the day of purchase, as a share.
double worth_of_year(const CostPlan& plan, double year);
Cents capital_sum(const CostPlan& plan, std::span<const double> prices);
// What a year uses of plan.used[line]: as the campaign does, and idle for the rest of it.
double used_in_a_year(const CostPlan& plan, std::size_t line, const CampaignUse& campaign);
YearlyCost yearly_cost(const CostPlan& plan, std::span<const double> prices,
                       const CampaignUse& campaign);

// Hours a year from which on owning costs less than renting as many GPUs for those hours; infinite when
// it never does.
double break_even_hours(const CostPlan& plan, std::span<const double> prices,
                        const CampaignUse& campaign);

// The middle 95 % of what prices and failures make of a figure, and its mean.
struct CostRange {
    double typical = 0;  // at typical prices, all campaigns together
    double mean = 0;
    double low = 0;
    double high = 0;
};
CostRange range_of(std::vector<double> draws, double typical);

// What one price, or the campaigns' failures, does to the cost of a goodput GPU-hour.
struct CostDriver {
    std::string name;
    double low = 0;    // relative change at the low end of its range, all else typical
    double high = 0;   // at the high end
    double share = 0;  // of the variance over all draws: squared correlation
};

// Draw d takes prices d and campaign d mod their number.
struct CostStudy {
    std::vector<YearlyCost> draws;
    std::vector<double> break_even;  // hours a year, by draw; empty without a price to rent at
    YearlyCost typical;
    std::optional<double> typical_break_even;
    std::vector<CostDriver> drivers;  // largest share first

    CostRange range(double (*figure)(const YearlyCost&)) const;
};
CostStudy study_costs(const CostPlan& plan, std::span<const CampaignUse> campaigns);

// Two designs at the same prices, draw by draw: the second's cost less the first's. `open`: what else
// leaves the difference open, by so much on either side and whatever prices are; the middle 95 % is wider
// by it.
struct CostDifference {
    CostRange difference;
    double second_cheaper = 0;  // share of draws
    // The middle 95 % is on one side of nothing.
    bool decided() const { return difference.low > 0 || difference.high < 0; }
};
CostDifference compare_costs(const CostStudy& first, const CostStudy& second,
                             double (*figure)(const YearlyCost&), double open = 0);
// An interval around a value that is open by so much more on either side, for a reason of its own.
Interval widened(const Interval& around, double value, double open);

}  // namespace railyard
