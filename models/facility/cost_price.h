#pragma once
// Prices: each a range with a most likely value, never a point, unless somebody has it in writing.

#include <span>
#include <string>
#include <vector>

#include "models/catalogue/catalogue.h"

namespace railyard {

struct Price {
    std::string name;    // of the catalogue's entry of kind "price", or of what has none there
    std::string unit;    // "USD", "USD/kWh", "/year", empty for a share
    double low = 0;      // all three in that unit, low <= typical <= high
    double typical = 0;  // the most likely: the mode
    double high = 0;
    std::string origin;     // class and citation, or where in the scenario it stands
    std::string luck = {};  // prices with the same word here are drawn together; empty: by its name
    // The stream that its draws are from.
    std::string stream() const { return luck.empty() ? "price/" + name : "luck/" + luck; }
};

// The price of that entry; it must exist.
Price catalogue_price(Catalogue& catalogue, const std::string& name);

// The value below which a share u of [0, 1) of a triangular distribution lies. With m the typical price,
// a and b its ends and F = (m - a) / (b - a):
//
//     a + sqrt(u (b - a)(m - a))            u < F
//     b - sqrt((1 - u)(b - a)(b - m))       otherwise
double triangular(const Price& price, double u);

// Every price once, each from its own stream (seed, draw, Price::stream()): what costs the same in two
// designs costs the same in both, however many other things they buy, and prices that share their luck lie
// at the same share of their ranges.
std::vector<double> draw_prices(std::span<const Price> prices, std::uint64_t seed,
                                std::uint64_t draw);
std::vector<double> typical_prices(std::span<const Price> prices);

// Exact sums of money are in cents: what `usd` is, to the nearest.
using Cents = std::int64_t;
Cents cents(double usd);
inline double usd(Cents amount) {
    return real(amount) * 0.01;
}

}  // namespace railyard
