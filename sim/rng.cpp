#include "sim/rng.h"

#include <Random123/philox.h>

#include <bit>
#include <cmath>

#include "sim/check.h"
#include "sim/fingerprint.h"

namespace railyard {

double portable_log(double x) {
    RY_CHECK(x > 0);
    // x = m * 2^k with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m - 1) / (m + 1).
    constexpr double ln2_high = 6.93147180369123816490e-01;
    constexpr double ln2_low = 1.90821492927058770002e-10;
    int k = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        k = -54;
    }
    std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
    k += static_cast<int>(bits >> 52) - 1023;
    double m = std::bit_cast<double>((bits & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        ++k;
    }
    const double s = (m - 1.0) / (m + 1.0);
    const double z = s * s;
    double series = 0;
    for (int n = 23; n >= 3; n -= 2) series = (series + 1.0 / n) * z;
    return k * ln2_high + (2.0 * s + (2.0 * s * series + k * ln2_low));
}

double portable_exp(double x) {
    RY_CHECK(x < 700);
    constexpr double least = -745.2;  // below it, the nearest double is zero
    if (x < least) return 0;
    constexpr double ln2_high = 6.93147180369123816490e-01;
    constexpr double ln2_low = 1.90821492927058770002e-10;
    const double k = std::floor(x * 1.4426950408889634 + 0.5);
    const double r = (x - k * ln2_high) - k * ln2_low;
    double sum = 1.0;
    for (int n = 14; n >= 1; --n) sum = 1.0 + sum * r / n;
    return std::ldexp(sum, static_cast<int>(k));
}

RandomStream::RandomStream(std::uint64_t seed, std::uint64_t replica, std::string_view name)
    : replica_(replica) {
    Fingerprint hash;
    hash.add(seed);
    hash.add(name);
    const std::uint64_t key = hash.value();
    key_ = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
}

std::uint64_t RandomStream::next_u64() {
    if (has_spare_) {
        has_spare_ = false;
        return spare_;
    }
    const r123::Philox4x32 philox;
    const r123::Philox4x32::ctr_type counter = {
        {static_cast<std::uint32_t>(block_), static_cast<std::uint32_t>(block_ >> 32),
         static_cast<std::uint32_t>(replica_), static_cast<std::uint32_t>(replica_ >> 32)}};
    const r123::Philox4x32::key_type key = {{key_[0], key_[1]}};
    const r123::Philox4x32::ctr_type out = philox(counter, key);
    ++block_;
    spare_ = out[2] | (std::uint64_t{out[3]} << 32);
    has_spare_ = true;
    return out[0] | (std::uint64_t{out[1]} << 32);
}

double RandomStream::uniform() {
    return real(next_u64() >> 11) * 0x1p-53;
}

std::uint64_t RandomStream::below(std::uint64_t n) {
    RY_CHECK(n > 0);
    using Wide = unsigned __int128;
    Wide product = Wide{next_u64()} * n;
    if (static_cast<std::uint64_t>(product) < n) {
        const std::uint64_t threshold = (0 - n) % n;
        while (static_cast<std::uint64_t>(product) < threshold) product = Wide{next_u64()} * n;
    }
    return static_cast<std::uint64_t>(product >> 64);
}

double RandomStream::exponential() {
    return -portable_log(1.0 - uniform());
}

double RandomStream::normal() {
    // Marsaglia's polar method; the second value is not kept, so that a draw's cost is its own.
    for (;;) {
        const double u = 2.0 * uniform() - 1.0;
        const double v = 2.0 * uniform() - 1.0;
        const double q = u * u + v * v;
        if (q > 0 && q < 1) return u * std::sqrt(-2.0 * portable_log(q) / q);
    }
}

double lognormal(double mean, double sigma, double z) {
    return mean * portable_exp(sigma * z - 0.5 * sigma * sigma);
}

Duration RandomStream::interarrival(Rate rate) {
    const double ns = exponential() / rate.per_second * 1e9;
    return ns < 9.2e18 ? Duration(std::llround(ns)) : Duration::max();
}

}  // namespace railyard
