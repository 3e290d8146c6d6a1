#include "models/facility/cost_price.h"

#include <algorithm>
#include <cmath>

#include "models/facility/cost.h"
#include "sim/rng.h"

namespace railyard {

Price catalogue_price(Catalogue& catalogue, const std::string& name) {
    const char* key = "price";
    for (const char* other : {"annual_rate", "fraction"}) {
        if (catalogue.has("price", name, other)) key = other;
    }
    const ValueRange range = catalogue.range("price", name, key);
    const double scale = range.unit == "/year" ? seconds_per_year : 1;
    return {name,        range.unit, range.low * scale, range.value * scale, range.high * scale,
            range.origin};
}

double triangular(const Price& price, double u) {
    const double width = price.high - price.low;
    if (width <= 0) return price.typical;
    const double rising = price.typical - price.low;
    if (u * width < rising) return price.low + std::sqrt(u * width * rising);
    return price.high - std::sqrt((1 - u) * width * (price.high - price.typical));
}

std::vector<double> draw_prices(std::span<const Price> prices, std::uint64_t seed,
                                std::uint64_t draw) {
    std::vector<double> out;
    for (const Price& price : prices) {
        RandomStream stream(seed, draw, price.stream());
        out.push_back(triangular(price, stream.uniform()));
    }
    return out;
}

std::vector<double> typical_prices(std::span<const Price> prices) {
    std::vector<double> out;
    for (const Price& price : prices) out.push_back(price.typical);
    return out;
}

Cents cents(double usd) {
    constexpr double cents_max = 1e17;  // a thousand trillion USD: sums of ninety still fit
    return std::llround(std::clamp(usd * 100, -cents_max, cents_max));
}

}  // namespace railyard
