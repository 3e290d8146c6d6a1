// Streams of jobs of one GPU against queueing theory.

#include "tests/laws/oracles/queueing.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/table.h"

using namespace railyard;

TEST_CASE(
    "waits of one-GPU jobs are those of M/M/c, M/G/1, priorities and loss systems; a store shares "
    "its time") {
    // Fewer than one in a thousand of intervals this wide misses: 1.86 times the half-width at 95 %,
    // by Student's t with 19 degrees.
    constexpr double wide = 1.86;
    QueueRuns runs;
    int rows = 0;
    int inside = 0;
    int rare = 0;
    double errors = 0;
    for (const TableRow& row : read_oracle("71_oracle_queueing.csv")) {
        const Fields f(row);
        const auto simulated = runs.simulate(f);
        REQUIRE(simulated);
        CAPTURE(f.text("system"));
        CAPTURE(f.text("servers"));
        CAPTURE(f.text("rho"));
        CAPTURE(f.text("service"));
        CAPTURE(f.text("quantity"));
        const double published = f.number("value");
        // What hardly ever happens is known by its logarithm.
        const bool by_logarithm = published < 1e-5;
        const double error =
            by_logarithm ? std::log(published / simulated->mean) : published - simulated->mean;
        const double half_width = by_logarithm ? std::log(simulated->ci95.high / simulated->mean)
                                               : simulated->ci95.half_width();
        CHECK(std::abs(error) <= wide * half_width);
        if (by_logarithm) CHECK(half_width < 0.9);  // 2 x 10^-40 within a factor of 2.5
        ++rows;
        rare += by_logarithm;
        inside += simulated->ci95.contains(published);
        errors += std::abs(simulated->mean / published - 1);
    }
    CHECK(errors <= 0.05 * rows);
    CHECK(rows == 104);
    CHECK(rare == 12);
    CHECK(inside >= 0.9 * rows);
}

TEST_CASE("Ninety-five of a hundred intervals of rare waits have the truth in them") {
    // Waits of one in a thousand millions (16 servers), of another seed each time.
    int inside = 0;
    constexpr int seeds = 20;
    double bias = 0;
    for (const TableRow& row : read_oracle("71_oracle_queueing.csv")) {
        const Fields f(row);
        if (f.text("servers") != "16" || f.text("rho") != "0.3") continue;
        if (f.text("quantity") != "P(Wq>1)") continue;
        for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
            const auto simulated = QueueRuns(seed).simulate(f);
            REQUIRE(simulated);
            inside += simulated->ci95.contains(f.number("value"));
            bias += simulated->mean / f.number("value") / seeds - 1.0 / seeds;
        }
    }
    CHECK(inside >= 17);  // fewer of 20 at 95 %: one time in sixty
    CHECK(std::abs(bias) < 0.1);
}
