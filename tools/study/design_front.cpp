#include "tools/study/design_front.h"

#include <algorithm>
#include <cmath>

namespace railyard {

std::vector<std::size_t> front_of(const std::vector<std::vector<double>>& rows) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const bool numbers =
            std::ranges::all_of(rows[i], [](double x) { return std::isfinite(x); });
        if (numbers && !rows[i].empty()) order.push_back(i);
    }
    // In this order only what comes before a row can be as good as it in everything.
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return rows[a] < rows[b]; });
    std::vector<std::size_t> front;
    for (const std::size_t i : order) {
        const bool beaten = std::ranges::any_of(front, [&](std::size_t other) {
            return std::ranges::equal(rows[other], rows[i],
                                      [](double x, double y) { return x <= y; });
        });
        if (!beaten) front.push_back(i);
    }
    std::sort(front.begin(), front.end());
    return front;
}

}  // namespace railyard
