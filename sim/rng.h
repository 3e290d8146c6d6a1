#pragma once
// Randomness: one counter-based stream (Philox 4x32-10, Random123) per named component.
//
// A stream is (seed, replica, name) and nothing else, so what one component draws never moves
// another's draws: change the storage and every failure stays where it was. The distributions are
// our own, built on +, -, *, / and square root only, because the standard library's, and libm's
// logarithm, differ between implementations.

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "sim/units.h"

namespace railyard {

// Natural logarithm of x > 0 and exponential of x, within a few ulp, from IEEE basic operations
// only: the same bits everywhere.
double portable_log(double x);
double portable_exp(double x);
// base^exponent of base >= 0, likewise.
inline double portable_power(double base, double exponent) {
    if (base <= 0) return exponent == 0 ? 1 : 0;
    return portable_exp(exponent * portable_log(base));
}

// Log-normal with this mean and standard deviation of its logarithm, from a standard normal z.
double lognormal(double mean, double sigma, double z);

class RandomStream {
  public:
    RandomStream(std::uint64_t seed, std::uint64_t replica, std::string_view name);

    std::uint64_t next_u64();
    double uniform();                      // [0, 1), 53 bits
    std::uint64_t below(std::uint64_t n);  // [0, n), unbiased; n > 0
    // Any order of the items, as likely as another.
    template <class Items>
    void shuffle(Items& items) {
        for (std::size_t left = items.size(); left > 1; --left) {
            std::swap(items[left - 1], items[below(left)]);
        }
    }
    bool chance(double probability) { return uniform() < probability; }
    double exponential();  // mean 1
    double normal();       // mean 0, variance 1
    // Time to the next event of a Poisson process, in whole nanoseconds; the clock's end when rate
    // is 0.
    Duration interarrival(Rate rate);

  private:
    std::array<std::uint32_t, 2> key_;
    std::uint64_t replica_;
    std::uint64_t block_ = 0;
    std::uint64_t spare_ = 0;
    bool has_spare_ = false;
};

}  // namespace railyard
