#include "sim/shapley.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

using namespace railyard;

namespace {

double sum(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
}

// A game of chance: any value for any coalition.
std::vector<double> random_game(std::size_t players, std::uint64_t replica) {
    RandomStream random(5, replica, "game");
    std::vector<double> value(std::size_t{1} << players);
    for (double& v : value) v = random.normal();
    return value;
}

}  // namespace

TEST_CASE("Shapley's shares of the glove game are those of the book") {
    // One left glove, two right ones; a pair is worth 1: 2/3, 1/6, 1/6.
    std::vector<double> value(8);
    for (unsigned c = 0; c < 8; ++c) value[c] = (c & 1) != 0 && (c & 6) != 0 ? 1 : 0;
    const std::vector<double> shares = shapley_shares(value);
    CHECK(shares[0] == doctest::Approx(2.0 / 3));
    CHECK(shares[1] == doctest::Approx(1.0 / 6));
    CHECK(shares[2] == doctest::Approx(1.0 / 6));
}

TEST_CASE("Shapley's shares of the airport game pay each length of runway once") {
    // The value is the longest runway of those that land: 1, 3, 7; the shares are known in closed form.
    const std::vector<double> runway = {1, 3, 7};
    std::vector<double> value(8, 0.0);
    for (unsigned c = 0; c < 8; ++c) {
        for (unsigned p = 0; p < 3; ++p) {
            if ((c >> p) & 1U) value[c] = std::max(value[c], runway[p]);
        }
    }
    const std::vector<double> shares = shapley_shares(value);
    CHECK(shares[0] == doctest::Approx(1.0 / 3));
    CHECK(shares[1] == doctest::Approx(1.0 / 3 + 1));
    CHECK(shares[2] == doctest::Approx(1.0 / 3 + 1 + 4));
}

TEST_CASE("shares sum to the gap whatever the game") {
    for (std::uint64_t game = 0; game < 50; ++game) {
        const std::size_t players = 1 + game % 8;
        const std::vector<double> value = random_game(players, game);
        CHECK(sum(shapley_shares(value)) ==
              doctest::Approx(value.back() - value[0]).epsilon(1e-12));
    }
}

TEST_CASE("a player that adds nothing to anything has no share") {
    std::vector<double> value = random_game(6, 1);
    for (std::size_t c = 0; c < value.size(); ++c) value[c] = value[c & ~std::size_t{8}];
    CHECK(shapley_shares(value)[3] == 0);
}

TEST_CASE("players that can be exchanged have equal shares") {
    std::vector<double> value = random_game(6, 2);
    // Values depend on how many of players 1 and 4 take part, not on which.
    for (std::size_t c = 0; c < value.size(); ++c) {
        if ((c & 2) != 0 && (c & 16) == 0) value[c] = value[(c & ~std::size_t{2}) | 16];
    }
    const std::vector<double> shares = shapley_shares(value);
    CHECK(shares[1] == doctest::Approx(shares[4]).epsilon(1e-12));
    CHECK(shares[0] != doctest::Approx(shares[4]));
}

TEST_CASE("no players have no shares") {
    const std::vector<double> value = {3.0};
    CHECK(shapley_shares(value).empty());
}

TEST_CASE("sampled orders sum to the gap and are right within four of their errors") {
    const std::vector<double> value = random_game(8, 3);
    const auto of = [&](Coalition c) { return value[c]; };
    const std::vector<double> exact = shapley_shares(value);
    RandomStream random(9, 0, "orders");
    const SampledShares few = shapley_shares(sample_orders(8, 50, random), of);
    CHECK(sum(few.share) == doctest::Approx(value.back() - value[0]).epsilon(1e-12));
    const SampledShares many = shapley_shares(sample_orders(8, 5000, random), of);
    for (std::size_t p = 0; p < 8; ++p) {
        CHECK(std::abs(many.share[p] - exact[p]) < 4 * many.standard_error[p]);
        CHECK(many.standard_error[p] < few.standard_error[p]);
    }
}

TEST_CASE("an order and its reverse are exact for games of pairs") {
    // Where players add something alone and in twos, each pair of orders has every twosome once either way
    // round.
    std::vector<double> value(16, 0.0);
    for (unsigned c = 0; c < 16; ++c) {
        for (unsigned p = 0; p < 4; ++p) {
            for (unsigned q = 0; q <= p; ++q) {
                if (((c >> p) & 1U) && ((c >> q) & 1U)) value[c] += 1 + p + 10 * q;
            }
        }
    }
    RandomStream random(1, 0, "orders");
    const SampledShares two =
        shapley_shares(sample_orders(4, 1, random), [&](Coalition c) { return value[c]; });
    const std::vector<double> exact = shapley_shares(value);
    for (std::size_t p = 0; p < 4; ++p) CHECK(two.share[p] == doctest::Approx(exact[p]));
    CHECK(std::isinf(two.standard_error[0]));
}
