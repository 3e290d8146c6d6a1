#include <doctest/doctest.h>

#include <cmath>

#include "tests/laws/oracles/alpha_beta.h"
#include "tests/table.h"

using namespace railyard;

TEST_CASE("every row of the alpha-beta table, to 1e-9") {
    int rows = 0;
    for (const TableRow& row : read_oracle("72_oracle_collectives_alpha_beta.csv")) {
        const std::string& name = row.at("collective");
        const std::int64_t n = std::stoll(row.at("n"));
        const double bytes = std::stod(row.at("bytes"));
        const RingLink link{std::stod(row.at("alpha_s")), std::stod(row.at("bandwidth_Bps"))};
        double time = 0;
        if (name == "ring all_reduce") time = ring_all_reduce_seconds(n, bytes, link);
        if (name == "ring all_gather / reduce_scatter") time = one_pass_seconds(n, bytes, link);
        if (name == "recursive halving-doubling all_reduce") {
            time = halving_doubling_all_reduce_seconds(n, bytes, link);
        }
        if (name == "pairwise alltoall") time = one_pass_seconds(n, bytes, link);
        CAPTURE(name);
        CAPTURE(n);
        CHECK(std::abs(time / std::stod(row.at("time_s")) - 1) < 1e-9);
        ++rows;
    }
    CHECK(rows == 96);
}

TEST_CASE("one rank has nothing to say") {
    CHECK(ring_all_reduce_seconds(1, 1e9, {1e-6, 1e9}) == 0);
}
