#include "models/facility/price_book.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/text.h"

namespace railyard {

namespace {

constexpr double usd_max = 1e9;  // of one thing

}  // namespace

PriceBook::PriceBook(Section& cost, ValueReader& values, Catalogue& catalogue,
                     const QuoteBook& quotes)
    : cost_(cost),
      values_(values),
      catalogue_(catalogue),
      quotes_(quotes),
      table_(cost.open_table(
          "price",
          "Prices in place of the catalogue's, by the names that 'railyard cost' prints, each a "
          "quantity or { value, low, high, source }; and what the catalogue has no price for: "
          "STORE_per_server and STORE_per_tb_year in place of STORE_per_usable_tb, for each "
          "storage.system (a price of a usable TB has drives, servers and software in it; beside "
          "STORE_per_server, what servers leave); licence_per_gpu_year, staff_per_year, "
          "gpu_hour_rental, "
          "gpu_hour_reserved, and hardware by its own name")) {}

std::optional<std::size_t> PriceBook::known(const std::string& name) const {
    const Price* found = find_named(prices_, name);
    if (found == nullptr) return std::nullopt;
    return static_cast<std::size_t>(found - prices_.data());
}

std::size_t PriceBook::add(Price price) {
    prices_.push_back(std::move(price));
    return prices_.size() - 1;
}

std::size_t PriceBook::price(const std::string& name) {
    if (const auto index = known(name)) return *index;
    asked_.insert(name);
    Price price = catalogue_price(catalogue_, name);
    if (auto own = read(name, price.unit)) price = std::move(*own);
    return add(std::move(price));
}

std::optional<std::size_t> PriceBook::given(const std::string& name, const std::string& unit) {
    if (const auto index = known(name)) return index;
    asked_.insert(name);
    if (auto own = read(name, unit)) return add(std::move(*own));
    // What it is is filled in when it is known how many are bought.
    if (const Quote* quote = quotes_.find(name)) {
        return add({name, unit, 0, 0, 0, "quote " + visible(quote->name)});
    }
    return std::nullopt;
}

std::optional<double> PriceBook::amount(const Value& value, const std::string& path,
                                        const std::string& unit) {
    if (unit.empty()) return values_.number(value, path, Bound::fraction);
    const Dimension dimension = unit == "USD"     ? Dimension::money
                                : unit == "/year" ? Dimension::rate
                                                  : Dimension::price;
    const auto quantity = values_.quantity(value, path, {dimension}, Bound::non_negative);
    if (!quantity) return std::nullopt;
    if (dimension == Dimension::rate) return quantity->value * seconds_per_year;
    const Value* inner = value.find("value");
    const std::string& text = (inner ? inner : &value)->text;
    if (!quantity->unit.ends_with(unit)) {
        values_.error(
            value.at, path,
            fmt::format("expected a price in {0}, k{0} or M{0}, found \"{1}\"", unit, text));
        return std::nullopt;
    }
    if (quantity->value > usd_max) {
        values_.error(value.at, path,
                      fmt::format("expected at most 1000 MUSD, found \"{}\"", text));
        return std::nullopt;
    }
    return quantity->value;
}

std::optional<Price> PriceBook::read(const std::string& name, const std::string& unit) {
    const Value* value = table_ ? table_->find(name) : nullptr;
    if (value == nullptr) return std::nullopt;
    set_by_hand_.push_back(name);
    const std::string path = cost_.path("price." + name);
    const auto typical = amount(*value, path, unit);
    if (!typical) return std::nullopt;
    Price price{name, unit, *typical, *typical, *typical, "the scenario"};
    if (const Value* source = value->find("source")) price.origin += ": " + source->text;
    for (const auto& [key, end] : {std::pair("low", &price.low), std::pair("high", &price.high)}) {
        const Value* bound = value->find(key);
        if (bound == nullptr) continue;
        if (const auto given = amount(*bound, path + "." + key, unit)) *end = *given;
    }
    if (price.low > price.typical || price.typical > price.high) {
        values_.error(value->at, path,
                      fmt::format("expected low <= value <= high, found {:g}, {:g} and {:g} {}",
                                  price.low, price.typical, price.high, unit));
    }
    return price;
}

void PriceBook::has_no_effect(const std::string& name, const std::string& why) {
    if (std::ranges::find(set_by_hand_, name) == set_by_hand_.end()) return;
    values_.warning(table_->find(name)->at, cost_.path("price." + name), "has no effect: " + why);
}

void PriceBook::check() {
    for (const std::string& name : catalogue_.all_names("price")) {
        if (table_ == nullptr || table_->find(name) == nullptr) continue;
        if (name != "depreciation_years") price(name);
    }
}

void PriceBook::finish() {
    if (table_ == nullptr) return;
    for (const auto& [name, value] : table_->members) {
        if (asked_.contains(name)) continue;
        if (another_may_pay(catalogue_, name)) {
            values_.warning(value.at, cost_.path("price." + name),
                            "has no effect: nothing here has this price");
            continue;
        }
        values_.error(value.at, cost_.path("price." + name),
                      "nothing here has a price of this name",
                      suggest(name, {asked_.begin(), asked_.end()}));
    }
}

}  // namespace railyard
