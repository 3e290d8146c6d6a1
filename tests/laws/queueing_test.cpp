// Streams of jobs of one GPU against queueing theory.

#include "tools/queueing.h"

#include <doctest/doctest.h>

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
    for (const TableRow& row : read_table("71_oracle_queueing.csv")) {
        const Fields f(row);
        const auto simulated = runs.simulate(f);
        if (!simulated) continue;
        CAPTURE(f.text("system"));
        CAPTURE(f.text("servers"));
        CAPTURE(f.text("rho"));
        CAPTURE(f.text("service"));
        CAPTURE(f.text("quantity"));
        const double error = std::abs(simulated->mean - f.number("value"));
        CHECK(error <= wide * simulated->ci95.half_width());
        ++rows;
        inside += simulated->ci95.contains(f.number("value"));
    }
    CHECK(rows >= 89);
    CHECK(inside >= 0.9 * rows);
}
