// Slow parts under many jobs: what they take longer, who finds them, and what leaving costs, by hand.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "models/campaign/campaign.h"
#include "models/scheduler/world_progress.h"
#include "tests/models/small_world.h"
#include "tests/scenario_text.h"

using namespace railyard;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""h;

namespace {

// One kind of slow part, which makes work take half as long again.
struct Slowed : SmallWorld {
    explicit Slowed(std::int64_t nodes) : SmallWorld(nodes, 1) {
        spec.slowdowns = {0.5};
        causes[0].name = "slow";
        causes[0].slow = SlowPart{};
    }
};

}  // namespace

TEST_CASE("a plan that is cut at the end of a step, and goes on, takes what it takes uncut") {
    RandomStream random(1, 0, "plans");
    for (int i = 0; i < 2000; ++i) {
        RunPlan plan;
        plan.restart = Duration(static_cast<std::int64_t>(random.below(50)));
        plan.step = Duration(static_cast<std::int64_t>(1 + random.below(20)));
        plan.steps = static_cast<std::int64_t>(1 + random.below(60));
        plan.interval = static_cast<std::int64_t>(random.below(9));
        plan.stall = Duration(static_cast<std::int64_t>(random.below(30)));
        const Duration whole = plan.finish_after();
        const Duration cut(plan.setup().count() +
                           static_cast<std::int64_t>(random.below(
                               static_cast<std::uint64_t>((whole - plan.setup()).count()))));
        const Duration at = plan.boundary_after(cut);
        REQUIRE(at >= cut);
        const RunProgress first = plan.after(at);
        CHECK(first.partial == Duration{});
        CHECK(plan.after(cut).steps >= first.steps - 1);
        RunPlan rest;
        rest.step = plan.step;
        rest.steps = plan.steps - first.steps;
        rest.interval = plan.interval;
        rest.stall = plan.stall;
        rest.done = plan.interval > 0 ? first.steps % plan.interval : 0;
        if (rest.steps == 0) continue;
        CHECK(at + rest.finish_after() == whole);
        for (const std::int64_t share : {1, 2, 3}) {
            const Duration later = (whole - at) * share / 3;
            const RunProgress p = rest.after(later);
            const RunProgress uncut = plan.after(at + later);
            CHECK(first.steps + p.steps == uncut.steps);
            CHECK(first.stall + p.stall == uncut.stall);
            CHECK(p.partial == uncut.partial);
            CHECK((p.saved > 0 ? first.steps + p.saved : first.saved) == uncut.saved);
        }
    }
}

TEST_CASE("work takes longer while a part of its nodes is slow, and no longer than that") {
    Slowed f(2);
    f.causes[0].slow->lasts = 3h;
    f.submit(16, 10h);
    f.inject(4h, 0);
    SUBCASE("one part") {
        const WorldRunResult r = f.run(24h);
        CHECK(r.outcome.runs[0].end == Instant(11h));  // three hours do the work of two
        CHECK(node_hours(r, Category::degraded) == doctest::Approx(2).epsilon(1e-9));
        CHECK(node_hours(r, Category::productive) == doctest::Approx(20).epsilon(1e-9));
        CHECK(r.outcome.slow_parts.slow == 1);
        CHECK(r.outcome.slow_parts.found == 0);
        CHECK(r.outcome.runs[0].starts == 1);
    }
    SUBCASE("two at a time are as one") {
        f.inject(5h, 1);
        const double end_h = seconds(f.run(24h).outcome.runs[0].end.time_since_epoch()) / 3600;
        CHECK(end_h == doctest::Approx(10 + 4 - 4 / 1.5).epsilon(1e-8));  // from 4 to 8
    }
    SUBCASE("a job that meets the part when it starts") {
        f.submit(16, 2h);
        f.causes[0].slow->lasts = 100h;
        f.spec.injected = {{9h, 0, 1, {}}};
        const WorldRunResult r = f.run(24h);
        CHECK(r.outcome.runs[0].end == Instant(10h + 30min));
        CHECK(r.outcome.runs[1].end == Instant(13h + 30min));
    }
    SUBCASE("on a node that nobody uses it slows nobody") {
        f.jobs.jobs[0].gpus = 8;
        f.spec.injected = {{4h, 0, 1, {}}};
        CHECK(f.run(24h).outcome.runs[0].end == Instant(10h));
    }
}

TEST_CASE("the first health check finds half of the parts, if checks find half") {
    Slowed f(2);
    f.spec.search.check_every = 6h;
    f.spec.search.check_finds = 0.5;
    f.submit(8, 10h);
    f.inject(4h, 0);
    std::int64_t found = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        found += f.run(7h, seed).outcome.slow_parts.found;
    }
    CHECK(std::abs(found - 50) < 20);
}

TEST_CASE("a health check finds the part: the job saves, leaves, and goes on elsewhere") {
    Slowed f(2);
    WorldJobKind& kind = f.spec.kinds[0];
    kind.checkpoint_interval = 100h;
    kind.checkpoint_stall = 2min;
    kind.restart = 5min;
    kind.restore = 3min;
    f.spec.search.check_every = 6h;
    f.submit(8, 10h);
    f.inject(4h, 0);
    SUBCASE("and its node is reset") {
        const WorldRunResult r = f.run(24h);
        // 235 minutes of work before, 80 in the two slow hours, 285 after.
        CHECK(r.outcome.runs[0].end == Instant(6h + 2min + 5min + 3min + 285min));
        CHECK(node_hours(r, Category::degraded) == doctest::Approx(40.0 / 60).epsilon(1e-6));
        CHECK(node_hours(r, Category::checkpoint_stall) == doctest::Approx(2.0 / 60).epsilon(1e-9));
        CHECK(node_hours(r, Category::repair) == doctest::Approx(1).epsilon(1e-6));
        CHECK(node_hours(r, Category::lost_work) == 0);
        CHECK(r.outcome.slow_parts.found == 1);
        CHECK(r.outcome.runs[0].starts == 2);
    }
    SUBCASE("where nothing is broken the new start is the cure") {
        f.causes[0].remedy = Remedy::restart;
        f.spec.groups[0].nodes = f.spec.partitions[0].nodes = 1;
        const WorldRunResult r = f.run(24h);
        CHECK(r.outcome.runs[0].end == Instant(6h + 2min + 5min + 3min + 285min));
        CHECK(node_hours(r, Category::repair) == 0);
    }
    SUBCASE("a comparison of ranks sees it sooner, when it slows enough") {
        f.spec.search.compare = 30min;
        f.spec.search.compare_above = 0.4;
        const WorldRunResult r = f.run(24h);
        CHECK(node_hours(r, Category::degraded) == doctest::Approx(10.0 / 60).epsilon(1e-6));
        f.spec.search.compare_above = 0.6;
        CHECK(node_hours(f.run(24h), Category::degraded) == doctest::Approx(40.0 / 60));
    }
    SUBCASE("a job that saves nothing goes on to its end") {
        kind = {.name = "job"};
        const WorldRunResult r = f.run(24h);
        CHECK(r.outcome.runs[0].end == Instant(13h));
        CHECK(r.outcome.runs[0].starts == 1);
        CHECK(node_hours(r, Category::drained) == 0);  // it was in use all along
        CHECK(node_hours(r, Category::repair) == doctest::Approx(1).epsilon(1e-6));
    }
    SUBCASE("one that fails while it saves has lost what it had not") {
        FailureCause breaks;
        breaks.name = "breaks";
        f.causes.push_back(breaks);
        f.spec.injected.push_back({6h + 1min, 1, 0, {}});
        const WorldRunResult r = f.run(48h);
        CHECK(node_hours(r, Category::lost_work) ==
              doctest::Approx(3 + 55.0 / 60 + 2).epsilon(1e-6));
        CHECK(node_hours(r, Category::checkpoint_stall) == doctest::Approx(1.0 / 60).epsilon(1e-6));
    }
}

TEST_CASE("checkpoints come after as much work as ever, whatever slows it") {
    Slowed f(1);
    f.causes[0].slow->lasts = 90min;
    f.spec.kinds[0].checkpoint_interval = 1h;
    f.spec.kinds[0].checkpoint_stall = 6min;
    f.submit(8, 5h);
    f.inject(30min, 0);
    const WorldRunResult r = f.run(24h);
    CHECK(node_hours(r, Category::checkpoint_stall) == doctest::Approx(0.4).epsilon(1e-9));
    CHECK(node_hours(r, Category::productive) == doctest::Approx(5).epsilon(1e-9));
    // From 0:30 to 1:15 the rest of the first hour, a stall, and from 1:21 to 2:00 at two thirds.
    const double slowed_h = (45 + 39) / 3.0 / 60;
    CHECK(node_hours(r, Category::degraded) == doctest::Approx(slowed_h).epsilon(1e-6));
    CHECK(seconds(r.outcome.runs[0].end.time_since_epoch()) / 3600 ==
          doctest::Approx(5 + 0.4 + slowed_h).epsilon(1e-6));
}

TEST_CASE(
    "random slow parts, failures, limits and checkpoints: the ledger sums, and work is kept once") {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        Slowed f(12);
        f.spec.repair_sigma = 1;
        f.spec.slowdowns = {0.5, 0.2};
        f.spec.search = {2h, 0.5, 20min, 0.3};
        f.spec.health.prolog_time = 10s;
        f.causes[0].rate_per_node = {1 / 20000.0};
        FailureCause other = f.causes[0];
        other.name = "warm";
        other.slow = SlowPart{1, 1h};
        other.remedy = Remedy::restart;
        f.causes.push_back(other);
        FailureCause breaks;
        breaks.name = "breaks";
        breaks.rate_per_node = {1 / 40000.0};
        breaks.detection = 30s;
        breaks.remedy = Remedy::replace;
        breaks.repair_time = 5h;
        f.causes.push_back(breaks);
        f.spec.kinds[0].checkpoint_interval = 40min;
        f.spec.kinds[0].checkpoint_stall = 90s;
        f.spec.kinds[0].restart = 1min;
        f.spec.kinds[0].resubmit = true;
        const double work_h = f.submit_random({seed, 0, "slow jobs"}, true);
        const WorldRunResult r = f.run(2000h, seed);  // which checks the sum
        for (const WorldJobRun& job : r.outcome.runs) CHECK(job.over);
        CHECK(r.outcome.slow_parts.found > 10);
        CHECK(node_hours(r, Category::degraded) > 0);
        CHECK(node_hours(r, Category::productive) == doctest::Approx(work_h).epsilon(1e-9));
    }
}

TEST_CASE("a model's job is slowed by a part as the one job of its cluster is") {
    const std::string cluster = cluster_text(8, "1 day") + R"(
[failures]
random = false
[[failures.cause]]
name = "throttled"
rate_per_node = "1 /year"
slows = "gpu"
speed = 0.6
lasts = "5 h"
[[inject]]
at = "3 h"
cause = "throttled"
node = 2
)";
    const ReplicaResult many = run_replica(scenario(cluster + llama_among_many()), 0, false);
    const ReplicaResult one = run_replica(scenario(cluster + llama_as_one_job()), 0, false);
    const double degraded = one.ledger.fraction(Category::degraded);
    CHECK(degraded > 0.01);
    CHECK(many.ledger.fraction(Category::degraded) == doctest::Approx(degraded).epsilon(2e-3));
    CHECK(many.ledger.fraction(Category::productive) ==
          doctest::Approx(one.ledger.fraction(Category::productive)).epsilon(1e-4));
}

TEST_CASE("a part that gets slow while the job is down is slow when it is back") {
    const Scenario s = scenario(cluster_text(2, "1 day") + R"(
[failures]
[[failures.cause]]
name = "crash"
rate_per_node = "0 /day"
detection = "1 h"
remedy = "restart"
[[failures.cause]]
name = "slow"
rate_per_node = "0 /day"
slows = "gpu"
slowdown = 0.5
remedy = "restart"
[[inject]]
at = "3 h"
cause = "crash"
node = 1
[[inject]]
at = "3.5 h"
cause = "slow"
node = 0
)" + job_without_losses);
    const ReplicaResult r = run_replica(s, 0, false);
    CHECK(r.ledger.fraction(Category::degraded) == doctest::Approx(20.0 / 24 / 3).epsilon(1e-3));
    CHECK(metric(r, "failures_while_down") == 0);
}

// Three intervals of 1,000 s and two stalls of 1,000 s; the part is slowed by nothing to speak of.
TEST_CASE("what changes in the last step before a save leaves the save as it is") {
    for (const int strikes_at : {985, 991, 995, 1000, 1001}) {
        const ReplicaResult r = run_replica(scenario(fmt::format(R"(
[run]
replicas = 1
[cluster]
nodes = 2
[storage]
system = "generic"
servers = 1
server_write_bandwidth = "1 GB/s"
server_read_bandwidth = "1 GB/s"
[scheduler]
[[jobs.kind]]
name = "train"
nodes = 2
length = "3000 s"
step.time = "10 s"
checkpoint = {{ interval = "100 steps", size = "1 TB" }}
[[failures.cause]]
name = "slow"
rate_per_node = "0 /day"
slows = "gpu"
slowdown = 0.000001
[[inject]]
at = "{} s"
cause = "slow"
node = 0
)",
                                                                 strikes_at)),
                                            0, false);
        CAPTURE(strikes_at);
        CHECK(r.ledger.fraction(Category::checkpoint_stall) ==
              doctest::Approx(2.0 / 5).epsilon(1e-3));
    }
}
