#pragma once
// Weighted max-min fair shares of limits that several transfers use. Progressive filling: all rates rise
// together, in proportion to the weights, until a limit is full; those on it stay, the others rise on.

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "models/storage/walls.h"

namespace railyard {

class ByteShares {
  public:
    struct Claim {
        std::size_t client = 0;
        std::array<std::size_t, 4> limits{};
        std::array<double, 4> use{};  // of each limit, per bit/s
        double weight = 1;
        std::int64_t cap = 0;  // bits/s, of its own
        Wall cap_wall = Wall::network;
        // What solve() finds.
        std::int64_t rate = 0;
        Wall wall = Wall::store;  // what holds it back; neighbours, if other clients are at it too
    };

    // So many limits, none of which bounds anything yet.
    explicit ByteShares(std::size_t limits) : limits_(limits) {}
    void limit(std::size_t index, double most, Wall wall) {
        limits_[index].free = most;
        limits_[index].wall = wall;
    }
    void lift(std::size_t index) { limits_[index].free = infinity; }
    void add(const Claim& claim);
    bool idle(std::size_t index) const { return limits_[index].rising == 0; }  // nobody claims it

    void solve();
    const Claim& share(std::size_t index) const { return claims_[index]; }  // in the order of add()

  private:
    static constexpr double infinity = std::numeric_limits<double>::infinity();
    struct Limit {
        double free = infinity;  // what those that have their rate leave of it
        double rising = 0;       // weights, times use, of those whose rate still rises
        std::size_t client = SIZE_MAX;
        bool several = false;  // clients use it
        Wall wall = Wall::store;

        double level() const;
    };
    double next_level(const std::vector<Claim*>& rising) const;
    bool settle(Claim& claim, double level) const;  // false: it rises on

    std::vector<Limit> limits_;
    std::vector<Claim> claims_;
};

}  // namespace railyard
