#pragma once
// Who contributed what to a joint effect: Shapley's shares (1953).
//
// A coalition is the set of players that take part; its value is anything. A player's share is what it adds
// when it joins, averaged over all orders in which the players can join. The shares sum to value(all) -
// value(none); a player that never adds anything has share 0; two that add the same to everything have the
// same.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/rng.h"

namespace railyard {

using Coalition = std::uint32_t;  // bit p: player p takes part
constexpr std::size_t shapley_players_max = 20;

// `value` of each of the 2^n coalitions, n from 0 to shapley_players_max.
std::vector<double> shapley_shares(std::span<const double> value);

// Orders in which players join. Each that is drawn is followed by its reverse, which cancels much of the
// error.
using JoiningOrder = std::vector<std::uint32_t>;
std::vector<JoiningOrder> sample_orders(std::size_t players, std::size_t pairs,
                                        RandomStream& random);

// Shares over these orders only. They still sum to value(all) - value(none).
struct SampledShares {
    std::vector<double> share;
    std::vector<double> standard_error;  // over pairs of orders; infinite with one pair
};
SampledShares shapley_shares(const std::vector<JoiningOrder>& orders,
                             const std::function<double(Coalition)>& value);

}  // namespace railyard
