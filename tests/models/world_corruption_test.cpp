// Silent corruption under many jobs: who goes back, how far, and whose results are wrong, by hand.

#include <doctest/doctest.h>

#include <cmath>

#include "models/campaign/campaign.h"
#include "tests/models/small_world.h"
#include "tests/scenario_text.h"

using namespace railyard;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""h;

namespace {

// Jobs that save each hour. The first cause corrupts and shows after four, the second breaks.
struct Corrupted : SmallWorld {
    explicit Corrupted(std::int64_t nodes) : SmallWorld(nodes, 2) {
        spec.kinds[0].checkpoint_interval = 1h;
        causes[0].name = "corrupts";
        causes[0].silent = true;
        causes[0].detection = 4h;
        causes[1].name = "breaks";
    }
};

}  // namespace

TEST_CASE("a corruption that is found takes its job back to the checkpoint before it") {
    Corrupted f(2);
    f.submit(8, 10h);
    f.inject(3h + 30min, 0);
    SUBCASE("on another node, while its own is reset") {
        const WorldRunResult r = f.run(24h);
        CHECK(r.outcome.runs[0].end == Instant(7h + 30min + 7h));  // three of ten hours are kept
        CHECK(node_hours(r, Category::lost_work) == doctest::Approx(4.5).epsilon(1e-9));
        CHECK(node_hours(r, Category::productive) == doctest::Approx(10).epsilon(1e-9));
        CHECK(node_hours(r, Category::repair) == doctest::Approx(1).epsilon(1e-9));
        CHECK(r.outcome.runs[0].kept == Duration(10h));
        CHECK(r.outcome.interruptions[0] == 1);
        CHECK(r.outcome.corruptions_found == 1);
        CHECK(r.outcome.corrupted_results == 0);
    }
    SUBCASE("where nothing is broken the new start is the cure") {
        f.causes[0].remedy = Remedy::restart;
        const WorldRunResult r = f.run(24h);
        CHECK(r.outcome.runs[0].end == Instant(7h + 30min + 7h));
        CHECK(node_hours(r, Category::repair) == 0);
    }
    SUBCASE("a checkpoint that was being written holds what was done before") {
        f.spec.kinds[0].checkpoint_stall = 10min;
        f.spec.injected = {{2h + 15min, 0, 0, {}}};
        const WorldRunResult r = f.run(24h);
        // Found at 6:15; two hours of work are kept, three stalls and 3:45 of work after them are not.
        CHECK(r.outcome.runs[0].end == Instant(6h + 15min + 8h + 70min));
        CHECK(node_hours(r, Category::lost_work) == doctest::Approx(3 + 25.0 / 60).epsilon(1e-6));
    }
    SUBCASE("one that saves nothing begins again") {
        f.spec.kinds[0].checkpoint_interval = {};
        CHECK(f.run(24h).outcome.runs[0].end == Instant(7h + 30min + 10h));
    }
    SUBCASE("nobody's numbers are wrong on a node that nobody uses") {
        f.spec.injected = {{3h + 30min, 0, 1, {}}};
        const WorldRunResult r = f.run(24h);
        CHECK(r.outcome.runs[0].end == Instant(10h));
        CHECK(node_hours(r, Category::repair) == doctest::Approx(1).epsilon(1e-9));
    }
}

TEST_CASE("who carries wrong numbers to another node goes back too, and who was done has them") {
    Corrupted f(3);
    f.submit(4, 5h);   // on node 0: done before anybody knows
    f.submit(4, 10h);  // on node 0
    f.submit(8, 5h + 30min);
    f.inject(3h + 30min, 0);
    f.inject(5h + 15min, 0, 1);  // the node breaks: from five o'clock on elsewhere
    const WorldRunResult r = f.run(24h);
    CHECK(r.outcome.corrupted_results == 1);
    CHECK(r.outcome.runs[0].end == Instant(5h));
    CHECK(r.outcome.corruptions_found == 1);
    CHECK(r.outcome.runs[1].interruptions == 2);
    CHECK(r.outcome.runs[1].end == Instant(7h + 30min + 7h));
    CHECK(r.outcome.runs[2].end == Instant(5h + 30min));
    // Half a node: a quarter of an hour by the break, the rest back to three o'clock.
    CHECK(node_hours(r, Category::lost_work) == doctest::Approx(0.5 * 4.5).epsilon(1e-9));
    CHECK(node_hours(r, Category::productive) == doctest::Approx(0.5 * 15 + 5.5).epsilon(1e-9));
}

TEST_CASE("a job that fails before it has saved anything wrong is clean on another node") {
    Corrupted f(2);
    f.submit(8, 10h);
    f.inject(3h + 30min, 0);
    f.inject(3h + 45min, 0, 1);
    const WorldRunResult r = f.run(24h);
    CHECK(r.outcome.runs[0].end == Instant(3h + 45min + 7h));
    CHECK(r.outcome.corruptions_found == 0);
    CHECK(node_hours(r, Category::lost_work) == doctest::Approx(0.75).epsilon(1e-9));
}

TEST_CASE("a part goes on corrupting those that start on its node") {
    Corrupted f(1);
    f.inject(30min, 0);
    f.submit(8, 1h);
    for (int i = 0; i < 6; ++i) f.submit(8, 1h);
    const WorldRunResult r = f.run(24h);  // found at half past four, out for an hour
    CHECK(r.outcome.corrupted_results == 4);
    CHECK(r.outcome.corruptions_found == 1);
    CHECK(r.outcome.runs[6].end == Instant(4h + 30min + 1h + 3h));
}

TEST_CASE("a part that a repair leaves in makes numbers wrong again, and stops nobody") {
    Corrupted f(1);
    f.causes[0].remedy = Remedy::replace;
    f.causes[0].repair_time = 1h;
    f.spec.repair.fails_again = 0.999999;
    f.spec.health.prolog = false;
    f.inject(30min, 0);
    for (int i = 0; i < 40; ++i) f.submit(8, 1h);
    const WorldRunResult r = f.run(24h);  // found at 4:30, 9:30, 14:30, 19:30, out for an hour each
    CHECK(node_hours(r, Category::detection) == 0);
    CHECK(node_hours(r, Category::repair) == doctest::Approx(4).epsilon(1e-9));
    CHECK(r.outcome.corruptions_found == 4);
    CHECK(r.outcome.corrupted_results >= 12);
}

TEST_CASE(
    "corruptions, failures and slow parts at random: the ledger sums, and work is kept once") {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        Corrupted f(12);
        f.spec.slowdowns = {0.5};
        f.causes[0].rate_per_node = {1 / 80000.0};
        f.causes[1].rate_per_node = {1 / 40000.0};
        f.causes[1].detection = 30s;
        FailureCause slow = f.causes[1];
        slow.name = "slow";
        slow.slow = SlowPart{0, 1h};
        f.causes.push_back(slow);
        f.spec.search.compare = 20min;
        f.spec.kinds[0].checkpoint_stall = 90s;
        f.spec.kinds[0].restart = 1min;
        const double work_h = f.submit_random({seed, 0, "corrupted jobs"}, false);
        const WorldRunResult r = f.run(2000h, seed);  // which checks the sum
        for (const WorldJobRun& job : r.outcome.runs) CHECK(job.over);
        CHECK(r.outcome.corruptions_found > 5);
        CHECK(r.outcome.corrupted_results > 0);
        CHECK(node_hours(r, Category::productive) == doctest::Approx(work_h).epsilon(1e-9));
    }
}

TEST_CASE(
    "a corruption takes from a scheduler's only job what it takes from the one job of a cluster") {
    const std::string cluster = cluster_text(9, "3 day") + R"(
[failures]
random = false
[[failures.cause]]
name = "corrupts"
rate_per_node = "1 /year"
silent = true
detection = "7 h"
remedy = "reset"
reset_time = "3 h"
[[inject]]
at = "20 h"
cause = "corrupts"
node = 2
)";
    const ReplicaResult many = run_replica(load_scenario(cluster + R"(
[scheduler]
[[jobs.kind]]
name = "a"
gpus = 64
work = "1000 day"
limit = "2000 day"
checkpoint_interval = "90 min"
restart = "5 min"
)",
                                                         "many"),
                                           0, false);
    const ReplicaResult one = run_replica(load_scenario(cluster + R"(
[job]
nodes = 8
step.time = "1 s"
[job.checkpoint]
size = "1 kB"
interval = "90 min"
[[job.checkpoint.tier]]
place = "storage"
keep = 20
[job.recovery]
restart = "5 min"
replacement = "0 s"
restore = "0 s"
[storage]
system = "generic"
servers = 4
)",
                                                        "one"),
                                          0, false);
    CHECK(one.job.corruptions_found == 1);
    CHECK(one.ledger.fraction(Category::lost_work) > 0.05);
    CHECK(many.ledger.fraction(Category::lost_work) ==
          doctest::Approx(one.ledger.fraction(Category::lost_work)).epsilon(1e-3));
    CHECK(many.ledger.fraction(Category::repair) ==
          doctest::Approx(one.ledger.fraction(Category::repair)).epsilon(1e-6));
}
