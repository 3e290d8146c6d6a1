// Jobs under Kubernetes that go on on fewer nodes after a failure, and grow again: what must come, by hand.

#include <doctest/doctest.h>

#include "models/campaign/campaign.h"
#include "tests/models/gpu_audit.h"
#include "tests/models/small_world.h"

using namespace railyard;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""h;

namespace {

constexpr Duration step_time = 10s;

// A job on all nodes, a replica of its data on each `nodes_each`, saves every ten steps in no time. A broken
// node is back after an hour.
struct Elastic : SmallWorld {
    Elastic(std::int64_t nodes, std::int64_t job_nodes, std::int64_t nodes_each = 1)
        : SmallWorld(nodes, 1) {
        spec.scheduler = "kubernetes";
        spec.kube.queues = {{.name = "default"}};
        spec.kube.pod_interval = 0s;
        const PlacedStep step = [](const auto&, std::uint32_t, const NetworkNow&) {
            StepTime out;
            out.compute = step_time;
            return out;
        };
        WorldJobKind& kind = spec.kinds[0];
        kind.step = step;
        kind.steps = 1000;
        kind.checkpoint_steps = 10;
        kind.checkpoint_interval = 10 * step_time;
        kind.shrink_after = 34s;
        kind.replicas = static_cast<std::int32_t>(job_nodes / nodes_each);
        for (std::int32_t n = kind.replicas; --n > 0;) {
            kind.smaller.push_back({n * nodes_each, n, step});
        }
        submit(job_nodes * 8, 1h);
    }
};

double node_seconds(const WorldRunResult& r, Category category) {
    return node_hours(r, category) * 3600;
}

}  // namespace

TEST_CASE("a job that lost a node goes on on the others, and on all once it is back") {
    Elastic f(3, 3);
    f.inject(1003s, 1);
    const WorldRunResult r = f.run(6h);
    const WorldJobRun& job = r.outcome.runs[0];
    // 100 steps on all; from 1037 s on two nodes; the third is back at 4603 s, in the 357th of these steps.
    // What it lacked, 357 of 3 replicas, is 119 steps more at the end.
    CHECK(job.end == Instant(1037s + 3570s + (900 - 357 + 119) * step_time));
    CHECK(job.starts == 3);
    CHECK(job.interruptions == 1);
    CHECK(job.kept_steps == 1000 + 119);
    CHECK(job.replica_steps_missing == 357);
    CHECK(r.outcome.shrinks == 1);
    CHECK(node_seconds(r, Category::productive) == doctest::Approx(3000 * 10));
    CHECK(node_seconds(r, Category::lost_work) == doctest::Approx(3 * 3));
    CHECK(node_seconds(r, Category::repair) == doctest::Approx(3600));
    // Two nodes wait for the third, and this one for the end of the step.
    CHECK(node_seconds(r, Category::partial_hold) == doctest::Approx(2 * 34 + 4));
}

TEST_CASE("with a spare node a job keeps its size") {
    Elastic f(4, 3);
    f.inject(1003s, 1);
    const WorldRunResult r = f.run(6h);
    CHECK(r.outcome.shrinks == 0);
    CHECK(r.outcome.runs[0].starts == 2);
    // Its pod is made anew after ten seconds.
    CHECK(r.outcome.runs[0].end == Instant(1013s + 900 * step_time));
    CHECK(node_seconds(r, Category::partial_hold) == doctest::Approx(2 * 10));
}

TEST_CASE("a job waits where too few nodes are left for its smallest size") {
    Elastic f(3, 3);
    f.spec.kinds[0].smaller.pop_back();
    f.inject(1003s, 1);
    f.inject(1005s, 2);
    const WorldRunResult r = f.run(6h);
    CHECK(r.outcome.shrinks == 1);
    // The first is back at 4603 s, and the job goes on; the second is two seconds later, and when its first
    // step ends the job grows.
    CHECK(node_seconds(r, Category::partial_hold) == doctest::Approx(2 * 2 + 3598 + 8));
    CHECK(r.outcome.runs[0].over);
}

TEST_CASE("what whole replicas don't take is held, and its loss stops nobody") {
    Elastic f(4, 4, 2);
    f.inject(1003s, 1);
    f.inject(2000s, 3);  // of a pod that the job does without
    const WorldRunResult r = f.run(6h);
    const WorldJobRun& job = r.outcome.runs[0];
    CHECK(job.interruptions == 1);
    CHECK(r.outcome.shrinks == 1);
    // The first is back at 4603 s, the other at 5600: then it is whole, and grows at the end of the step.
    const std::int64_t fewer = 457;  // (5600 - 1037) / 10, the one under way too
    CHECK(job.replica_steps_missing == fewer);
    CHECK((job.kept_steps * 2 - fewer) / 2 == 1000);
    const double unused = (2000 - 1037) + (5607 - 4603) + (5607 - 5600);
    CHECK(node_seconds(r, Category::partial_hold) == doctest::Approx(3 * 34 + unused));
}

TEST_CASE("a host that is gone is left behind before its pods are evicted") {
    Elastic f(3, 3);
    f.causes[0].silences = true;
    f.causes[0].detection = 20s;
    f.inject(1003s, 1);
    const WorldRunResult r = f.run(6h);
    const WorldJobRun& job = r.outcome.runs[0];
    CHECK(job.interruptions == 1);
    CHECK(r.outcome.shrinks == 1);
    CHECK(job.starts == 3);
    CHECK(node_seconds(r, Category::detection) == doctest::Approx(3 * 20));
    CHECK((job.kept_steps * 3 - job.replica_steps_missing) / 3 == 1000);
}

TEST_CASE("a job grows with its state saved, and without saves stays as it is") {
    Elastic f(3, 3);
    WorldJobKind& kind = f.spec.kinds[0];
    f.inject(1003s, 1);
    SUBCASE("a save takes its stall") {
        kind.checkpoint_stall = 2s;
        const WorldRunResult r = f.run(6h);
        CHECK(r.outcome.runs[0].lost_steps < 10);  // of the failure alone
        CHECK(r.outcome.runs[0].starts == 3);
    }
    SUBCASE("nothing is saved") {
        kind.checkpoint_steps = 0;
        kind.checkpoint_interval = {};
        const WorldRunResult r = f.run(6h);
        CHECK(r.outcome.runs[0].starts == 2);
        CHECK(r.outcome.runs[0].lost_steps == 100);
        CHECK(r.outcome.runs[0].replica_steps_missing == 1500);
    }
}

TEST_CASE("every job's work is done once, however its size changes") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        Elastic f(12, 4, seed % 2 == 0 ? 2 : 1);
        f.spec.scheduler = seed % 3 == 0 ? "kueue" : "kubernetes";
        f.spec.kube.backoff_limit = 1000;
        for (int i = 0; i < 6; ++i) f.submit(i % 2 == 0 ? 32 : 8, 1h, i * 20min);
        f.causes[0].rate_per_node = Rate{1 / seconds(Duration(9h))};
        f.causes[0].detection = 40s;
        f.causes[0].silences = seed % 4 == 0;
        // Jobs of one node have one size.
        f.spec.kinds.push_back(f.spec.kinds[0]);
        f.spec.kinds[1].name = "small";
        f.spec.kinds[1].smaller.clear();
        f.spec.kinds[1].replicas = 1;
        for (WorldJob& job : f.jobs.jobs) job.kind = job.gpus == 8 ? 1 : 0;
        std::stable_sort(f.jobs.jobs.begin(), f.jobs.jobs.end(),
                         [](const auto& a, const auto& b) { return a.submit < b.submit; });
        const WorldRunResult r = f.run(200h, seed);
        for (std::size_t i = 0; i < f.jobs.jobs.size(); ++i) {
            const WorldJobRun& run = r.outcome.runs[i];
            const std::int64_t replicas = f.spec.kinds[f.jobs.jobs[i].kind].replicas;
            REQUIRE(run.over);
            if (run.how != JobEnd::completed) continue;
            const std::int64_t done = run.kept_steps * replicas - run.replica_steps_missing;
            CHECK(done >= 1000 * replicas);
            CHECK(done < 1001 * replicas);
        }
    }
}

TEST_CASE("a job with experts shrinks to whole groups of ranks that share them out") {
    const Scenario s = load_scenario(R"(
[cluster]
node = "dgx_h100"
nodes = 8
[job]
model = "qwen3_30b_a3b"
[job.parallel]
data = 64
expert = 16
global_batch = 512
sequence_length = 4096
zero = 1
recompute = "full"
[job.checkpoint]
mode = "sync"
interval = "30 min"
[job.recovery]
policy = "shrink"
[run]
duration = "1 day"
)",
                                     "shrink");
    std::vector<std::int64_t> sizes;
    for (const SmallerJob& smaller : s.job.smaller) sizes.push_back(smaller.replicas);
    CHECK(sizes == std::vector<std::int64_t>{48, 32});  // 40 and 56 leave a group of 8 ranks
}
