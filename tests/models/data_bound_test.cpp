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

const std::string crash_at_20_h = R"(
[failures]
[[failures.cause]]
name = "crash"
rate_per_node = "0 /day"
detection = "0 s"
remedy = "restart"
[[inject]]
at = "20 h"
cause = "crash"
node = 1
)";

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

TEST_CASE(
    "what heat, a budget or a cap slow hides in a wait for data too, and is not counted twice") {
    for (const char* limit : {"[facility]\ninlet_temperature = \"42 degC\"\n",
                              "[power]\nbudget = \"36 kW\"\n", "[power]\ngpu_cap = \"450 W\"\n"}) {
        CAPTURE(limit);
        const std::string on = cluster_text(4, "5 day") + limit;
        for (const int batch : {2600, 3000}) {
            const ReplicaResult one =
                run_replica(scenario(on + job_that_reads(false, batch)), 0, false);
            const ReplicaResult many =
                run_replica(scenario(on + job_that_reads(true, batch)), 0, false);
            for (const Category category :
                 {Category::productive, Category::throttled, Category::data_wait}) {
                CHECK(many.ledger.fraction(category) ==
                      doctest::Approx(one.ledger.fraction(category)).epsilon(1e-4));
            }
        }
        // Done after its length, whatever slows it.
        const ReplicaResult ends =
            run_replica(scenario(on + job_that_reads(true, 3000, "50 h")), 0, false);
        CHECK(metric(ends, "jct_mean") == doctest::Approx(50 * 3600).epsilon(1e-3));
    }
}

TEST_CASE("hot GPUs save after as many of a measured kind's steps as of one job's") {
    for (const char* limit :
         {"", "[facility]\ninlet_temperature = \"44 degC\"\n", "[power]\nbudget = \"36 kW\"\n"}) {
        CAPTURE(limit);
        std::vector<double> stalled;
        for (const bool many : {false, true}) {
            const char* job = many ? "jobs.kind" : "job";
            const ReplicaResult r = run_replica(
                scenario(cluster_text(4, "5 day") + limit +
                         "[storage]\nserver_write_bandwidth = \"4 GB/s\"\n"
                         "server_read_bandwidth = \"4 GB/s\"\n" +
                         (many ? "[scheduler]\nkind = \"fifo\"\n[[jobs.kind]]\nname = \"a\"\n"
                               : "[job]\n") +
                         fmt::format("nodes = 4\nlength = \"1000 h\"\nstep.time = \"1 min\"\n"
                                     "[{}.checkpoint]\ninterval = \"1 h\"\nsize = \"4 TB\"\n",
                                     job)),
                0, false);
            stalled.push_back(r.ledger.fraction(Category::checkpoint_stall));
        }
        CHECK(stalled[1] == doctest::Approx(stalled[0]).epsilon(1e-3));
    }
}

TEST_CASE("work that is lost has cost what its steps draw, also while they waited for data") {
    std::vector<double> watts;
    for (const bool many : {false, true}) {
        const ReplicaResult r = run_replica(
            scenario(cluster_text(4, "1 day") + crash_at_20_h + job_that_reads(many, 6000)), 0,
            false);
        watts.push_back(static_cast<double>(drawn(r, Category::lost_work)) /
                        static_cast<double>(r.ledger.booked(Category::lost_work)));
    }
    CHECK(watts[0] > 0);
    CHECK(watts[1] == doctest::Approx(watts[0]).epsilon(1e-3));
}

TEST_CASE("lost steps have read their data too") {
    const ReplicaResult r = run_replica(
        scenario(cluster_text(4, "1 day") + crash_at_20_h + job_that_reads(false, 1000)), 0, false);
    CHECK(metric(r, "steps_lost") > 0);
    CHECK(metric(r, "data_fetched") ==
          doctest::Approx((metric(r, "steps") + metric(r, "steps_lost")) * 32 * 1000 * 1e6));
}
