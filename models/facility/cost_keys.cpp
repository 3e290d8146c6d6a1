#include "models/facility/cost_keys.h"

#include <fmt/format.h>

#include <optional>

namespace railyard {

namespace {

const std::vector<std::string> facility_names = {"colocation", "own"};
const std::vector<std::string> tenure_names = {"buy", "on_demand", "reserved"};
constexpr std::int64_t draws_max = 100'000;

// A part of the day that has a price of its own.
struct TariffHours {
    std::int64_t from = 0;
    std::int64_t until = 0;
    double factor = 1;
};

// What an even draw over a day costs, in prices of a kWh.
double read_tariff(Section& cost) {
    constexpr std::int64_t day = 24;
    std::vector<bool> taken(day);
    double sum = day;
    for (Section& each : cost.sections(
             "tariff",
             "Hours of a day in which electricity has another price; power is drawn evenly")) {
        TariffHours hours;
        each.read("from", hours.from, "The hour of the day at which it begins",
                  {.bound = Bound::non_negative, .required = true});
        each.read("until", hours.until,
                  "The hour at which it ends, the next day's if not after from",
                  {.bound = Bound::non_negative, .required = true});
        each.read("factor", hours.factor, "What a kWh costs in them, in prices of electricity_kwh",
                  {.bound = Bound::non_negative, .required = true});
        each.finish();
        if (each.describing()) continue;
        bool sound = each.has("from") && each.has("until");
        for (const auto& [key, hour] : {std::pair("from", hours.from), {"until", hours.until}}) {
            if (hour > day) each.error(key, "a day has 24 hours");
            sound &= hour >= 0 && hour <= day;
        }
        if (!sound) continue;
        const std::int64_t length =
            hours.until > hours.from ? hours.until - hours.from : hours.until + day - hours.from;
        for (std::int64_t h = hours.from; h < hours.from + length; ++h) {
            const auto hour = static_cast<std::size_t>(h % day);
            if (taken[hour]) {
                each.error("from", fmt::format("the hour from {} o'clock has two tariffs", hour));
                break;
            }
            taken[hour] = true;
            sum += hours.factor - 1;
        }
    }
    return sum / real(day);
}

Tenancy read_tenancy(Section& cost) {
    Tenancy out;
    cost.choose(
        "tenure", out.tenure, tenure_names,
        "buy: nodes and networks are bought and kept; on_demand: GPUs are rented for the share of "
        "the year in which they are used, at gpu_hour_rental; reserved: for all hours of whole "
        "terms, at gpu_hour_reserved. Rent has power, place, networks and repairs in it");
    std::optional<Duration> term;
    cost.read("term", term, "Reserved: each time for so long, and paid whether used or not",
              {Bound::positive, "needed with reserved"});
    cost.read("early_end", out.early_end,
              "Reserved: what must be paid of the rest of the last term, which is given back at "
              "the end of cost.years",
              {Bound::fraction});
    if (cost.describing()) return out;
    if (out.tenure == Tenure::reserved && !cost.has("term")) {
        cost.error("term", "is missing: for how long are GPUs reserved?");
    }
    if (out.tenure != Tenure::reserved && term) {
        cost.warning("term", "has no effect unless GPUs are reserved");
    }
    if (out.tenure != Tenure::reserved) {
        warn_of_keys(cost, {"early_end"}, "has no effect unless GPUs are reserved");
    }
    out.term = term.value_or(Duration{});
    return out;
}

void read_plan(Section& cost, Catalogue& catalogue, CostPlan& plan) {
    std::optional<Money> budget;
    cost.read("budget", budget, "What may be spent on buying the cluster: more is warned of",
              {Bound::positive});
    if (budget) plan.budget = budget->usd;
    Duration years = catalogue.time("price", "depreciation_years", "time");
    cost.read("years", years, "Over which what was bought is written off, the same each year",
              {Bound::positive, "5 years"});
    plan.years = seconds(years) / (hours_per_year * 3600);
    cost.read("residual", plan.residual, "Share of what was paid that is left at the end of them",
              {Bound::fraction});
    cost.read(
        "utilisation", plan.utilisation,
        "Share of a year in which the cluster does what it does in this campaign; else it is idle",
        {Bound::fraction});
    if (plan.utilisation <= 0)
        cost.error("utilisation", "a cluster that is never used gives nothing");
    plan.draws = 4000;
    cost.read("draws", plan.draws, "Draws of all prices, for the intervals", {Bound::count});
    if (plan.draws > draws_max) {
        cost.error("draws", fmt::format("expected at most {}, found {}", draws_max, plan.draws));
        plan.draws = draws_max;
    }
    cost.read("discount", plan.discount,
              "What money is worth less a year later: capital then costs the annuity of the day of "
              "purchase",
              {Bound::fraction});
}

}  // namespace

CostKeys read_cost_keys(Section& cost, Catalogue& catalogue) {
    CostKeys out;
    read_plan(cost, catalogue, out.plan);
    int facility = 0;
    cost.choose("facility", facility, facility_names,
                "colocation: the kW that nodes and switches are rated for are rented by the month; "
                "own: the building is there and costs nothing here");
    cost.read("parts_covered", out.parts_covered,
              "Support replaces broken parts; false: each costs its price");
    out.colocated = facility == 0;
    out.tenancy = read_tenancy(cost);
    if (out.tenancy.rented() && !cost.describing()) {
        warn_of_keys(cost, {"facility", "parts_covered", "tariff"},
                     "has no effect: it is in the rent");
    }
    const double tariff = read_tariff(cost);
    if (!out.tenancy.rented()) out.tariff = tariff;
    return out;
}

}  // namespace railyard
