#pragma once
// The prices of a scenario: the catalogue's, each of which [cost.price] may replace, and those that only
// [cost.price] can give.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/facility/cost.h"
#include "models/facility/cost_price.h"
#include "models/facility/quote_book.h"
#include "sim/config.h"

namespace railyard {

class PriceBook {
  public:
    // Reads nothing yet but that the section has a table of prices. All must outlive the book.
    PriceBook(Section& cost, ValueReader& values, Catalogue& catalogue, const QuoteBook& quotes);

    // The catalogue's entry of that name, or what the scenario says in its place.
    std::size_t price(const std::string& name);
    // A price that the catalogue does not have; none: neither [cost.price] nor a quote gives it.
    std::optional<std::size_t> given(const std::string& name, const std::string& unit);
    // One that nobody may change.
    std::size_t add(Price price);
    // Errors in what [cost.price] says, where it can't be known what is bought.
    void check();
    // Says what of [cost.price] nobody asked for: an error where no price has such a name.
    void finish();
    // Warns of this price where [cost.price] gives it.
    void has_no_effect(const std::string& name, const std::string& why);

    const std::vector<Price>& prices() const { return prices_; }
    // Those that [cost.price] gives.
    const std::vector<std::string>& set_by_hand() const { return set_by_hand_; }

  private:
    std::optional<std::size_t> known(const std::string& name) const;
    std::optional<Price> read(const std::string& name, const std::string& unit);
    std::optional<double> amount(const Value& value, const std::string& path,
                                 const std::string& unit);

    Section& cost_;
    ValueReader& values_;
    Catalogue& catalogue_;
    const QuoteBook& quotes_;
    const Value* table_;
    std::vector<Price> prices_;
    std::set<std::string> asked_;
    std::vector<std::string> set_by_hand_;
};

}  // namespace railyard
