// Steps that wait for their data: what slows them hides in that wait, for one job and among many.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "models/campaign/campaign.h"
#include "tests/scenario_text.h"

using namespace railyard;

namespace {

// Steps of 10 s on 32 GPUs, each of which reads `batch` samples of 1 MB from a store of 8 GB/s: so one job,
// or the only one of a kind.
std::string job_that_reads(bool many, int batch, std::string_view length = "1000 h") {
    const char* job = many ? "jobs.kind" : "job";
    return fmt::format(R"(
[storage]
server_write_bandwidth = "8 GB/s"
server_read_bandwidth = "8 GB/s"
{}
nodes = 4
length = "{}"
step.time = "10 s"
[{}.checkpoint]
mode = "none"
[{}.data]
source = "storage"
sample_size = "1 MB"
batch = {}
prefetch = 2
)",
                       many ? "[scheduler]\nkind = \"fifo\"\n[[jobs.kind]]\nname = \"a\"" : "[job]",
                       length, job, job, batch);
}

// Seconds that are booked so for each 10 s of computing.
double per_step(const ReplicaResult& r, Category category) {
    return 10 * r.ledger.fraction(category) / r.ledger.fraction(Category::productive);
}

}  // namespace

TEST_CASE("a step that waits for its data is no longer for a slow part until that takes more") {
    struct Case {
        double slowdown;
        int batch;
        double step_s;  // the longer one of computing and reading
    };
    for (const Case& c : {Case{0.1, 3000, 12}, {0.3, 3000, 13}, {1, 3000, 20}, {0.5, 6000, 24}}) {
        for (const bool many : {false, true}) {
            CAPTURE(c.slowdown);
            CAPTURE(many);
            const std::string slow = fmt::format(R"(
[failures]
[[failures.cause]]
name = "slow"
rate_per_node = "0 /day"
slows = "gpu"
slowdown = {}
remedy = "restart"
[[inject]]
at = "1 s"
cause = "slow"
node = 1
)",
                                                 c.slowdown);
            const ReplicaResult r = run_replica(
                scenario(cluster_text(4, "5 day") + slow + job_that_reads(many, c.batch)), 0,
                false);
            const double degraded = per_step(r, Category::degraded);
            const double waits = per_step(r, Category::data_wait);
            CHECK(degraded == doctest::Approx(10 * c.slowdown).epsilon(1e-3));
            CHECK(10 + degraded + waits == doctest::Approx(c.step_s).epsilon(1e-3));
        }
    }
}
