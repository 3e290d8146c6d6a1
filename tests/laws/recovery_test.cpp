// What a failure takes and how a job comes back, to the second where nothing is drawn.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "models/campaign/campaign.h"
#include "tests/scenario_text.h"

using namespace railyard;

namespace {

using std::chrono::hours;

ReplicaResult run(const std::string& text, std::vector<std::string> settings = {}) {
    return run_replica(scenario(text, std::move(settings)), 0, true);
}

CampaignResult run_all(const std::string& text, std::vector<std::string> settings = {}) {
    CampaignOptions options;
    options.threads = 2;
    return run_campaign(scenario(text, std::move(settings)), options);
}

// GPU-hours over the GPUs of a node: node-hours.
double node_hours(const ReplicaResult& r, Category category) {
    return static_cast<double>(r.ledger.booked(category)) * 1e-9 / 3600 / 8;
}

// Eight nodes that step and come back in no time at all.
const std::string eight = cluster_text(8, "100 h") + job_without_losses + R"(
[failures]
repair_sigma = 0
[[failures.cause]]
name = "lost"
rate_per_node = "0 /day"
remedy = "replace"
repair_time = "4 h"
)";

const std::string saved = cluster_text(9, "100 h") + R"(
[job]
nodes = 8
[job.step]
time = "1 s"
[job.checkpoint]
mode = "sync"
size = "1 GB"
interval = "1 h"
clock = "wall"
[job.recovery]
replacement = "0 s"
restart = "0 s"
restore = "0 s"
[[failures.cause]]
name = "sdc"
silent = true
rate_per_node = "0 /day"
detection = "10 h"
remedy = "replace"
repair_time = "4 h"
[[inject]]
at = "20.5 h"
cause = "sdc"
node = 3
)";

// 64 GPUs in eight replicas of one node each.
const std::string modelled = cluster_text(8, "100 h") + R"(
[job]
model = "llama2_13b"
[job.parallel]
tensor = 8
data = 8
microbatch = 4
global_batch = 128
sequence_length = 4096
[job.checkpoint]
interval = "1 h"
[job.recovery]
replacement = "0 s"
restart = "0 s"
restore = "0 s"
[failures]
repair_sigma = 0
[[failures.cause]]
name = "lost"
rate_per_node = "0 /day"
remedy = "replace"
repair_time = "10 h"
[[failures.cause]]
name = "throttled"
rate_per_node = "0 /day"
slows = "gpu"
speed = 0.5
remedy = "reset"
reset_time = "1 h"
)";

std::string injected(const std::string& at, const std::string& cause, int node,
                     const std::string& more = "") {
    return fmt::format("[[inject]]\nat = \"{}\"\ncause = \"{}\"\nnode = {}\n{}\n", at, cause, node,
                       more);
}

}  // namespace

TEST_CASE("an injected failure takes its node at its time for its duration") {
    const ReplicaResult r = run(eight + injected("10 h", "lost", 3) +
                                injected("50 h", "lost", 5, "duration = \"30 min\""));
    CHECK(node_hours(r, Category::repair) == doctest::Approx(4.5).epsilon(1e-12));
    CHECK(node_hours(r, Category::requeue_wait) == doctest::Approx(7 * 4.5).epsilon(1e-12));
    CHECK(node_hours(r, Category::productive) == doctest::Approx(8 * 95.5).epsilon(1e-12));
    CHECK(r.job.interruptions[0] == 2);
    REQUIRE(r.log.size() > 0);
    CHECK(r.log[1].at == Instant(hours(10)));
    CHECK(r.log[1].slot == 3);
}

TEST_CASE("no burst follows an injected failure") {
    const std::string bursts = R"([[failures.cause]]
name = "cascade"
rate_per_node = "0 /day"
remedy = "reset"
burst = 20
burst_within = "30 h"
)";
    const ReplicaResult r = run(eight + bursts + injected("10 h", "cascade", 3));
    CHECK(r.job.interruptions[0] == 0);
    CHECK(r.job.interruptions[1] == 1);
    CHECK(r.job.strikes_while_down == 0);
}

TEST_CASE("a cause of the catalogue can be injected where no profile is") {
    const ReplicaResult r = run(eight + injected("10 h", "software", 0));
    CHECK(r.job.interruptions[1] == 1);
    CHECK(seconds(r.job.detection) == 20);  // by the heartbeat
}

TEST_CASE("what fails while the job is down stops it as soon as it is up") {
    const ReplicaResult r = run(eight + injected("10 h", "lost", 3) + injected("11 h", "lost", 5));
    // The second is met when the first is back: eight hours, not five.
    CHECK(node_hours(r, Category::productive) == doctest::Approx(8 * 92).epsilon(1e-12));
    CHECK(r.job.strikes_while_down == 1);
    CHECK(r.job.interruptions[0] == 2);
}

TEST_CASE(
    "run.failures = false leaves nothing that fails, failures.random = false what is injected") {
    const std::string text = eight + injected("10 h", "lost", 3);
    const std::vector<std::string> often = {"failures.profile=meta_rsc1",
                                            "failures.rate_scale=1000"};
    std::vector<std::string> none = often;
    none.push_back("run.failures=false");
    std::vector<std::string> only_injected = often;
    only_injected.push_back("failures.random=false");
    CHECK(run(text, often).job.strikes_while_down > 10);
    CHECK(node_hours(run(text, none), Category::productive) == 800);
    CHECK(run(text, only_injected).ledger.booked(Category::productive) ==
          run(text).ledger.booked(Category::productive));
}

TEST_CASE(
    "a rack that loses power takes its nodes, in the job or spare, and gives all back at once") {
    const std::string rack = R"([[failures.cause]]
name = "breaker"
domain = "rack"
rate_per_domain = "0 /day"
remedy = "reset"
reset_time = "2 h"
)";
    // Nodes 4 to 7 are the second rack; 6 and 7 are spare.
    const ReplicaResult r = run(eight + rack + injected("10 h", "breaker", 1), {"job.nodes=6"});
    CHECK(node_hours(r, Category::repair) == doctest::Approx(4 * 2).epsilon(1e-12));
    CHECK(node_hours(r, Category::requeue_wait) == doctest::Approx(4 * 2).epsilon(1e-12));
    CHECK(node_hours(r, Category::spare) == doctest::Approx(2 * 98).epsilon(1e-12));
    CHECK(r.job.interruptions[1] == 1);

    // Two outages, from 10 to 12 h and from 11 to 13 h: it is back when both are over.
    const ReplicaResult overlapping =
        run(eight + rack + injected("10 h", "breaker", 1) + injected("11 h", "breaker", 1),
            {"job.nodes=6"});
    CHECK(node_hours(overlapping, Category::repair) == doctest::Approx(4 * 3).epsilon(1e-12));
    CHECK(node_hours(overlapping, Category::requeue_wait) == doctest::Approx(4 * 3).epsilon(1e-12));

    // A rollout goes from the first rack to the second an hour later: two and one hour of waiting.
    const std::string staged = rack + "further_domains = 1\nfurther_every = \"3 h\"\n";
    const ReplicaResult both = run(eight + staged + injected("10 h", "breaker", 0));
    CHECK(node_hours(both, Category::repair) == doctest::Approx(2 * 4 * 2).epsilon(1e-12));
    CHECK(both.job.interruptions[1] == 2);
}

TEST_CASE("crews make broken nodes wait for one another") {
    const std::string text = eight + injected("10 h", "lost", 0) + injected("10 h", "lost", 6) +
                             injected("10 h", "lost", 7);
    // Nodes 6 and 7 are spare: all three are broken at once. 4 h each, one after the other.
    const ReplicaResult one =
        run(text, {"job.nodes=6", "failures.repair.crews=1", "failures.repair.burn_in=1 h"});
    CHECK(node_hours(one, Category::repair) == doctest::Approx(5 + 9 + 13).epsilon(1e-12));
    CHECK(node_hours(run(text, {"job.nodes=6"}), Category::repair) ==
          doctest::Approx(12).epsilon(1e-12));
    // A part each, one in stock: the others are a day away.
    const ReplicaResult parts =
        run(text, {"job.nodes=6", "failures.repair.parts=1", "failures.repair.lead_time=1 day"});
    CHECK(node_hours(parts, Category::repair) == doctest::Approx(4 + 28 + 28).epsilon(1e-12));
}

TEST_CASE("a node that fails too often is locked out, and comes back a good one if inspected") {
    std::string text = eight;
    for (const char* at : {"10 h", "20 h", "30 h"}) text += injected(at, "lost", 2);
    const std::vector<std::string> locked = {"failures.quarantine.failures=3",
                                             "failures.quarantine.within=25 h"};
    const ReplicaResult r = run(text, locked);
    CHECK(node_hours(r, Category::repair) == doctest::Approx(4 + 4 + 70).epsilon(1e-12));
    CHECK(r.nodes.quarantined == 1);
    CHECK(r.repairs[0] == 2);  // the third time it is locked out, and nothing is put in
    std::vector<std::string> inspected = locked;
    inspected.push_back("failures.quarantine.inspection=12 h");
    CHECK(node_hours(run(text, inspected), Category::repair) ==
          doctest::Approx(4 + 4 + 12).epsilon(1e-12));
    // The first is too long ago.
    CHECK(run(text, {locked[0], "failures.quarantine.within=19 h"}).nodes.quarantined == 0);
}

TEST_CASE("a wrong diagnosis costs another interruption: 1 / (1 - p) of them a failure") {
    const std::vector<std::string> often = {"run.replicas=60",
                                            "run.duration=300 day",
                                            "cluster.nodes=40",
                                            "job.nodes=8",
                                            "failures.cause.0.rate_per_node=0.02 /day",
                                            "failures.cause.0.repair_time=1 min"};
    std::vector<std::string> wrong = often;
    wrong.push_back("failures.misdiagnosis=0.25");
    const double right = run_all(eight, often).metric("interruptions").summary.mean;
    const CampaignResult r = run_all(eight, wrong);
    CHECK(r.metric("interruptions").summary.mean / right ==
          doctest::Approx(1 / 0.75).epsilon(0.02));
    CHECK(r.metric("nodes_blamed").summary.mean / right ==
          doctest::Approx(0.25 / 0.75).epsilon(0.05));
}

TEST_CASE("what follows from an injected failure is drawn as it is of one at random") {
    constexpr int failures = 400;
    constexpr double n = failures;
    std::string text = eight;
    for (int i = 0; i < failures; ++i) {
        text += injected(fmt::format("{} h", 100 * i), "lost", i % 8);
    }
    // Bounds of four deviations.
    std::vector<std::string> settings = {"run.duration=5 year", "failures.repair_sigma=0.8",
                                         "failures.cause.0.replace_fraction=0.5",
                                         "failures.cause.0.reset_time=0 s"};
    const ReplicaResult repaired = run(text, settings);
    const double repairs = static_cast<double>(repaired.repairs[0]);
    CHECK(std::abs(repairs / n - 0.5) < 4 * 0.5 / std::sqrt(n));
    const double deviation_h = 4 * std::sqrt(std::exp(0.8 * 0.8) - 1);
    CHECK(std::abs(node_hours(repaired, Category::repair) / repairs - 4) <
          4 * deviation_h / std::sqrt(repairs));
    // p / (1 - p) sound nodes are blamed for each; the variance is p / (1 - p)^2.
    const ReplicaResult wrong =
        run(text, {"run.duration=5 year", "failures.cause.0.repair_time=1 min",
                   "failures.cause.0.reset_time=1 min", "failures.misdiagnosis=0.5"});
    CHECK(std::abs(static_cast<double>(wrong.job.nodes_blamed) / n - 1) < 4 * std::sqrt(2 / n));
}

TEST_CASE("silent corruption costs what was done since the last checkpoint before it") {
    const ReplicaResult kept = run(saved, {"job.checkpoint.tier=[{place=\"storage\",keep=24}]"});
    REQUIRE(kept.job.corruptions_found == 1);
    // Corrupt at 20.5 h, found at 30.5 h; saved on the hour.
    CHECK(seconds(kept.job.lost_work) / 3600 == doctest::Approx(10.5).epsilon(1e-3));
    const ReplicaResult forgotten =
        run(saved, {"job.checkpoint.tier=[{place=\"storage\",keep=3}]"});
    CHECK(seconds(forgotten.job.lost_work) / 3600 == doctest::Approx(30.5).epsilon(1e-3));
}

TEST_CASE("a corruption whose node leaves with another failure is undone by going back before it") {
    const std::string text = saved + R"([[failures.cause]]
name = "lost"
rate_per_node = "0 /day"
remedy = "replace"
repair_time = "4 h"
)" + injected("20.75 h", "lost", 3);
    const std::vector<std::string> kept = {"job.checkpoint.tier=[{place=\"storage\",keep=24}]"};
    const ReplicaResult r = run(text, kept);
    CHECK(r.job.corruptions_found == 0);
    CHECK(seconds(r.job.lost_work) / 3600 == doctest::Approx(0.75).epsilon(1e-2));
    // Another node's failure does not help: the part goes on corrupting.
    std::string other = text;
    other.replace(other.rfind("node = 3"), 8, "node = 4");
    CHECK(run(other, kept).job.corruptions_found == 1);
}

TEST_CASE("a slow GPU slows every step as the step model says, until a health check finds it") {
    const std::string text = modelled + injected("1 h", "throttled", 2);
    const Scenario s = scenario(text);
    const double step = seconds(s.job.step.duration());
    const double slowed = seconds(s.job.slowed[1]);
    const Scenario faulty = scenario(modelled + "[[cluster.fault]]\npart = \"gpu\"\nspeed = 0.5\n");
    CHECK(slowed == doctest::Approx(seconds(faulty.job.step.degraded)));
    CHECK(slowed > 0.3 * step);
    const double share = slowed / (step + slowed);

    const auto slow_hours = [&](std::vector<std::string> settings) {
        settings.push_back("job.nodes=8");
        settings.push_back("cluster.nodes=9");
        const ReplicaResult r = run(text, settings);
        CHECK(r.ledger.total() == GpuNanoseconds{72} * Duration(hours(100)).count());
        return node_hours(r, Category::degraded) / 8 / share;
    };
    CHECK(slow_hours({}) == doctest::Approx(99).epsilon(0.02));  // and what saving takes of it
    CHECK(slow_hours({"failures.search.check_every=6 h"}) == doctest::Approx(5).epsilon(0.02));
    CHECK(slow_hours({"failures.search.compare_after=30 min"}) ==
          doctest::Approx(0.5).epsilon(0.02));
    CHECK(slow_hours({"failures.search.compare_after=30 min",
                      "failures.search.compare_above=0.9"}) == doctest::Approx(99).epsilon(0.02));
    CHECK(slow_hours({"failures.cause.1.lasts=2 h"}) == doctest::Approx(2).epsilon(0.02));
}

TEST_CASE(
    "a job that shrinks goes on at the smaller plan's own step, and grows when nodes are back") {
    const std::string text = modelled + injected("10 h", "lost", 2);
    const std::vector<std::string> policy = {"job.recovery.policy=shrink"};
    const Scenario s = scenario(text, policy);
    REQUIRE(s.job.smaller.size() == 4);
    CHECK(s.job.smaller[0].nodes == 7);
    const Scenario seven =
        scenario(modelled, {"job.nodes=7", "job.parallel.data=7", "job.parallel.global_batch=112"});
    CHECK(s.job.smaller[0].step.duration() == seven.job.step.duration());

    const ReplicaResult r = run_replica(s, 0, true);
    CHECK(r.ledger.total() == GpuNanoseconds{64} * Duration(hours(100)).count());
    CHECK(r.job.shrinks == 1);
    CHECK(r.job.nodes_changed == 1);  // grown again
    CHECK(r.ledger.booked(Category::requeue_wait) == 0);
    CHECK(node_hours(r, Category::repair) == doctest::Approx(10).epsilon(1e-12));
    const double short_steps = 10 * 3600 / seconds(seven.job.step.duration());
    CHECK(static_cast<double>(r.job.replica_steps_missing) ==
          doctest::Approx(short_steps).epsilon(0.02));
    CHECK(node_hours(run(text), Category::requeue_wait) == doctest::Approx(70).epsilon(1e-12));
    // 90 h of 8 nodes and 10 h of 7, against 90 h of 8.
    const auto tokens = [](const ReplicaResult& result) {
        for (const Metric& m : result.metrics) {
            if (m.name == "tokens") return m.value;
        }
        return 0.0;
    };
    CHECK(tokens(r) / tokens(run(text)) == doctest::Approx(1 + 10.0 * 7 / 8 / 90).epsilon(0.01));
}

TEST_CASE(
    "what a job waits for checkpoints is the sum of its walls, in the job's time, whatever its "
    "size") {
    for (const char* policy : {"spare", "shrink"}) {
        CAPTURE(policy);
        const Scenario s = scenario(modelled + injected("10 h", "lost", 2),
                                    {std::string("job.recovery.policy=") + policy,
                                     "job.checkpoint.mode=sync", "job.checkpoint.interval=5 min"});
        const ReplicaResult r = run_replica(s, 0, true);
        CHECK((r.job.shrinks > 0) == (std::string(policy) == "shrink"));
        double stall = 0;
        double walls = 0;
        for (const Metric& m : r.metrics) {
            if (m.name == "checkpoint_stall_time") {
                stall = m.value;
            } else if (m.name.starts_with("checkpoint_stall_")) {
                walls += m.value;
            }
        }
        CHECK(stall > 0);
        CHECK(stall == doctest::Approx(walls).epsilon(1e-12));
    }
}

TEST_CASE("bursts bring as many more failures as they say, and leave the first where they were") {
    const std::vector<std::string> often = {"run.replicas=100", "run.duration=100 day",
                                            "failures.cause.0.rate_per_node=0.01 /day",
                                            "failures.cause.0.remedy=restart"};
    std::vector<std::string> bursts = often;
    bursts.push_back("failures.cause.0.burst=1.5");
    bursts.push_back("failures.cause.0.burst_within=2 h");
    const CampaignResult alone = run_all(eight, often);
    const CampaignResult more = run_all(eight, bursts);
    CHECK(more.metric("interruptions").summary.mean / alone.metric("interruptions").summary.mean ==
          doctest::Approx(2.5).epsilon(0.06));
}
