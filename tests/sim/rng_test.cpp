#include "sim/rng.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace railyard;

TEST_CASE("a stream is its seed, replica and name, and nothing else") {
    RandomStream a(1, 2, "failure/gpu");
    RandomStream same(1, 2, "failure/gpu");
    RandomStream other_seed(2, 2, "failure/gpu");
    RandomStream other_replica(1, 3, "failure/gpu");
    RandomStream other_name(1, 2, "failure/nic");
    const std::uint64_t first = a.next_u64();
    CHECK(first == same.next_u64());
    CHECK(first != other_seed.next_u64());
    CHECK(first != other_replica.next_u64());
    CHECK(first != other_name.next_u64());
}

TEST_CASE("the generator's first numbers are pinned") {
    RandomStream stream(1, 0, "pin");
    CHECK(stream.next_u64() == 0x14bb7a2d6c19f3d7ULL);
    CHECK(stream.next_u64() == 0xf4aaf0002a893a3cULL);
}

TEST_CASE("portable_log and portable_exp agree with libm to a few ulp") {
    RandomStream stream(3, 0, "log");
    for (int i = 0; i < 100000; ++i) {
        const double u = stream.uniform();
        const double x =
            u < 0.5 ? u * 2 + 1e-300 : std::ldexp(u, static_cast<int>(stream.below(600)) - 300);
        CHECK(std::abs(portable_log(x) - std::log(x)) <=
              4e-16 * std::max(1.0, std::abs(std::log(x))));
        const double y = (u - 0.5) * 200;
        CHECK(std::abs(portable_exp(y) / std::exp(y) - 1) < 2e-15);
    }
}

TEST_CASE("distributions have their moments") {
    constexpr int n = 400000;
    RandomStream stream(7, 0, "moments");
    double uniform = 0, exponential = 0, normal = 0, normal2 = 0, spread = 0;
    std::vector<int> dice(6);
    for (int i = 0; i < n; ++i) {
        uniform += stream.uniform();
        exponential += stream.exponential();
        const double z = stream.normal();
        normal += z;
        normal2 += z * z;
        spread += lognormal(5.0, 0.8, stream.normal());
        ++dice[stream.below(6)];
    }
    CHECK(uniform / n == doctest::Approx(0.5).epsilon(0.003));
    CHECK(exponential / n == doctest::Approx(1.0).epsilon(0.006));
    CHECK(std::abs(normal / n) < 0.006);
    CHECK(normal2 / n == doctest::Approx(1.0).epsilon(0.008));
    CHECK(spread / n == doctest::Approx(5.0).epsilon(0.006));
    for (const int count : dice) CHECK(count == doctest::Approx(n / 6.0).epsilon(0.015));
}

TEST_CASE("a rate of zero never happens") {
    RandomStream stream(1, 0, "never");
    CHECK(stream.interarrival(Rate{0}) == Duration::max());
}

TEST_CASE("exponentials of any negative number are there, down to zero") {
    CHECK(portable_exp(-1e6) == 0);
    CHECK(portable_exp(-746) == 0);
    CHECK(portable_exp(-744) > 0);
    CHECK(portable_exp(-720) == doctest::Approx(std::exp(-720)).epsilon(1e-6));
    CHECK(portable_exp(-700) == doctest::Approx(std::exp(-700)).epsilon(1e-12));
}
