#include "sim/shapley.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "sim/check.h"

namespace railyard {

namespace {

// s! (n - s - 1)! / n!: how many of all orders have these s players before a given one.
std::vector<double> weights(std::size_t n) {
    std::vector<double> out(n);
    for (std::size_t s = 0; s < n; ++s) {
        double chosen = 1;  // n - 1 over s
        for (std::size_t i = 0; i < s; ++i) chosen = chosen * real(n - 1 - i) / real(i + 1);
        out[s] = 1 / (real(n) * chosen);
    }
    return out;
}

}  // namespace

std::vector<double> shapley_shares(std::span<const double> value) {
    RY_CHECK(std::has_single_bit(value.size()));
    const auto players = static_cast<std::size_t>(std::countr_zero(value.size()));
    RY_CHECK(players <= shapley_players_max);
    const std::vector<double> weight = weights(players);
    std::vector<double> shares(players, 0.0);
    for (std::size_t c = 0; c < value.size(); ++c) {
        const auto size = static_cast<std::size_t>(std::popcount(c));
        for (std::size_t p = 0; p < players; ++p) {
            const std::size_t bit = std::size_t{1} << p;
            if ((c & bit) == 0) shares[p] += weight[size] * (value[c | bit] - value[c]);
        }
    }
    return shares;
}

std::vector<JoiningOrder> sample_orders(std::size_t players, std::size_t pairs,
                                        RandomStream& random) {
    RY_CHECK(players <= shapley_players_max);
    std::vector<JoiningOrder> orders;
    JoiningOrder order(players);
    std::iota(order.begin(), order.end(), 0U);
    for (std::size_t i = 0; i < pairs; ++i) {
        random.shuffle(order);
        orders.push_back(order);
        orders.emplace_back(order.rbegin(), order.rend());
    }
    return orders;
}

SampledShares shapley_shares(const std::vector<JoiningOrder>& orders,
                             const std::function<double(Coalition)>& value) {
    RY_CHECK(!orders.empty() && orders.size() % 2 == 0);
    const std::size_t players = orders[0].size();
    const auto pairs = real(orders.size() / 2);
    std::vector<double> sum(players, 0.0);
    std::vector<double> squares(players, 0.0);
    std::vector<double> of_pair(players);
    for (std::size_t i = 0; i < orders.size(); ++i) {
        RY_CHECK(orders[i].size() == players);
        if (i % 2 == 0) of_pair.assign(players, 0.0);
        Coalition joined = 0;
        double before = value(joined);
        for (const std::uint32_t p : orders[i]) {
            joined |= Coalition{1} << p;
            const double after = value(joined);
            of_pair[p] += (after - before) / 2;
            before = after;
        }
        if (i % 2 == 0) continue;
        for (std::size_t p = 0; p < players; ++p) {
            sum[p] += of_pair[p];
            squares[p] += of_pair[p] * of_pair[p];
        }
    }
    SampledShares out;
    for (std::size_t p = 0; p < players; ++p) {
        const double mean = sum[p] / pairs;
        const double variance = std::max(0.0, squares[p] / pairs - mean * mean);
        out.share.push_back(mean);
        out.standard_error.push_back(pairs > 1 ? std::sqrt(variance / (pairs - 1))
                                               : std::numeric_limits<double>::infinity());
    }
    return out;
}

}  // namespace railyard
