#pragma once
// [[quote]]: what vendors have in writing, in place of the catalogue's prices.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "models/facility/cost.h"
#include "models/facility/cost_price.h"
#include "sim/config.h"

namespace railyard {

using Day = std::chrono::sys_days;

// "2027-03-01"; none, and said, when the key's text is no such day.
std::optional<Day> read_day(Section& section, const char* key, const char* doc);
// The day that a key's text names (it was read already); none when it is empty.
std::optional<Day> day_of(Section& section, const char* key, const std::string& text);
std::string day_text(Day day);

// Whether another design than this one, at the same prices and quotes, may pay this price.
bool another_may_pay(const Catalogue& catalogue, const std::string& price);

// What one piece costs from so many on.
struct QuotedPrice {
    double from = 1;
    double low = 0;  // USD
    double typical = 0;
    double high = 0;
};

struct Quote {
    std::string name;
    std::string of;                  // the price that it replaces, as 'railyard cost' names it
    std::string luck;                // quotes with the same word move together
    std::vector<QuotedPrice> steps;  // by `from`, the first from 1
    std::vector<double> support;     // USD a piece in year 1, 2, ...; later ones as the last
    std::vector<double> licence;
    std::optional<Day> valid_from;
    std::optional<Day> valid_until;
    std::optional<Day> delivery;
    std::optional<std::int64_t> available;  // no more can be had
    Position at;

    const QuotedPrice& price_of(double quantity) const;
};

// The quotes of a scenario that are asked for, and what of them is bought on the day of purchase.
class QuoteBook {
  public:
    // Reads [[quote]], and of [cost] which of them are asked for and when is bought.
    QuoteBook(Section& top, Section& cost);

    // The quote that this price is bought at. Null: there is none.
    const Quote* find(const std::string& price) const;
    // In place of the prices of `plan`: what so many pieces cost by their quote, with what they cost to
    // keep. `set_by_hand`: prices that [cost.price] has, which stay.
    void apply(CostPlan& plan, const std::vector<std::string>& set_by_hand,
               const Catalogue& catalogue);

  private:
    void choose();
    // The quote's price of so many, but for one that is set by hand.
    void replace(Price& price, const Quote& quote, double quantity,
                 const std::vector<std::string>& set_by_hand);
    void take_rent(CostPlan& plan, const Quote& quote, const std::vector<std::string>& set_by_hand);
    bool buyable(const Quote& quote) const;
    void refuse(const Quote& quote);
    Section& section_of(const Quote& quote) { return sections_[&quote - all_.data()]; }
    void keep(CostPlan& plan, const Quote& quote, const std::vector<double>& by_year,
              const char* what, double quantity, bool of_tenants) const;

    Section& cost_;
    std::vector<Quote> all_;
    std::vector<Section> sections_;    // of all_
    std::vector<std::size_t> chosen_;  // of all_
    std::vector<std::string> asked_;
    std::optional<Day> purchase_;
    std::optional<Day> needed_by_;
};

}  // namespace railyard
