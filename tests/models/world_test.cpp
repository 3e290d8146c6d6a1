// Many jobs on a cluster that fails: their life, the books, and what Slurm promises.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include "models/scheduler/scheduler.h"
#include "models/scheduler/slurm_placement.h"
#include "models/scheduler/slurm_priority.h"
#include "models/scheduler/world_progress.h"
#include "tests/models/gpu_audit.h"
#include "tests/models/small_world.h"

using namespace railyard;
using std::chrono_literals::operator""ns;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""h;

namespace {

// Nodes of 8 GPUs behind one partition, one account, one QOS.
WorldSpec world(std::int64_t nodes) {
    WorldSpec spec = world_of({{"all", nodes, 8}});
    spec.kinds = {{.name = "job"}};
    return spec;
}

WorldJob job(std::int64_t id, Duration submit, std::int64_t gpus, Duration work,
             Duration limit = {}) {
    return world_job(id, submit, gpus, work, limit > Duration{} ? limit : work + 1min);
}

FailureCause breaks(Rate per_node, Duration detection, Remedy remedy = Remedy::reset) {
    FailureCause cause;
    cause.name = "breaks";
    cause.rate_per_node = per_node;
    cause.detection = detection;
    cause.remedy = remedy;
    cause.reset_time = 1h;
    cause.repair_time = 24h;
    return cause;
}

using Promise = std::function<void(JobIndex, Instant, Instant)>;

WorldRunResult run(const WorldSpec& spec, std::vector<WorldJob> jobs,
                   const std::vector<FailureCause>& causes = {}, Duration end = {},
                   std::uint64_t seed = 1, const Promise& on_promise = {},
                   std::vector<CampaignEvent>* events = nullptr) {
    std::stable_sort(jobs.begin(), jobs.end(),
                     [](const WorldJob& a, const WorldJob& b) { return a.submit < b.submit; });
    const WorldJobs all{std::move(jobs)};
    GpuAudit auditor(spec);
    auditor.on_promise = on_promise;
    WorldRun world_run{.spec = spec, .jobs = all, .causes = causes, .seed = seed};
    if (end > Duration{}) world_run.end = Instant(end);
    world_run.listeners = {&auditor};
    world_run.events = events;
    return run_world(world_run);
}

// So many jobs of all sizes, often with a limit above what they take.
std::vector<WorldJob> random_jobs(std::uint64_t seed, std::int64_t count, std::int64_t gpus_max,
                                  Duration gap) {
    RandomStream random(seed, 0, "jobs");
    std::vector<WorldJob> out;
    Duration at{};
    for (std::int64_t i = 0; i < count; ++i) {
        at += from_seconds(seconds(gap) * random.exponential());
        const auto whole =
            static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(gpus_max) / 8)) + 1;
        const std::int64_t gpus = random.chance(0.4)
                                      ? static_cast<std::int64_t>(random.below(8)) + 1
                                  : random.chance(0.2) ? whole * 8 - 3
                                                       : whole * 8;
        const Duration work = from_seconds(600 + 7200 * random.exponential());
        const Duration limit = from_seconds(seconds(work) * (1 + 2 * random.uniform()));
        out.push_back(job(i + 1, at, gpus, work, limit));
    }
    return out;
}

double hours_of(GpuNanoseconds booked) {
    return static_cast<double>(booked) / 3.6e12;
}

}  // namespace

TEST_CASE("A job alone is done after its work, its set-up and its checkpoints") {
    WorldSpec spec = world(2);
    spec.kinds[0].checkpoint_interval = 1h;
    spec.kinds[0].checkpoint_stall = 1min;
    spec.kinds[0].restart = 5min;
    spec.health.prolog_time = 10s;
    const WorldRunResult r = run(spec, {job(1, 0s, 16, 10h, 24h)});
    const Duration expected = 10s + 5min + 10h + 9 * 1min;
    CHECK(r.outcome.runs[0].end == Instant(expected));
    CHECK(r.ledger.booked(Category::productive) == GpuNanoseconds{16} * Duration(10h).count());
    CHECK(r.ledger.booked(Category::checkpoint_stall) ==
          GpuNanoseconds{16} * Duration(9min).count());
    CHECK(r.ledger.booked(Category::health_check) == GpuNanoseconds{16} * Duration(10s).count());
    CHECK(r.ledger.booked(Category::idle) == 0);
}

TEST_CASE("What a run has done is a function of time whose parts always sum to it") {
    RunPlan plan;
    plan.prolog = 3ns;
    plan.restart = 5ns;
    plan.restore = 7ns;
    plan.step = 4ns;
    plan.steps = 23;
    plan.interval = 5;
    plan.stall = 6ns;
    CHECK(plan.finish_after() == 15ns + 23 * 4ns + 4 * 6ns);
    std::int64_t steps_before = 0;
    for (Duration t{}; t <= plan.finish_after(); t += 1ns) {
        const RunProgress p = plan.after(t);
        REQUIRE(p.prolog + p.restart + p.restore + p.stall + plan.step * p.steps + p.partial == t);
        REQUIRE(p.steps >= steps_before);
        REQUIRE(p.saved <= p.steps);
        REQUIRE((p.saved % 5 == 0 || p.saved == 23));
        REQUIRE(p.steps - p.saved <= 5);
        steps_before = p.steps;
    }
    CHECK(plan.after(plan.finish_after()).saved == 23);
}

TEST_CASE(
    "A small job passes a large one that waits only if its time limit says that it is gone in "
    "time") {
    const std::vector<WorldJob> jobs = {job(1, 0s, 8, 10h, 10h), job(2, 1min, 16, 1h, 1h),
                                        job(3, 2min, 8, 1h, 5h), job(4, 3min, 8, 1h, 20h)};
    const WorldRunResult r = run(world(2), jobs);
    CHECK(r.outcome.runs[1].first_start == Instant(10h));
    CHECK(r.outcome.runs[2].first_start == Instant(2min));  // at a multiple of 30 s
    CHECK(r.outcome.runs[3].first_start == Instant(11h));  // though it would have been done in time
}

TEST_CASE(
    "No GPU is in two jobs and every GPU-ns is booked once, whatever fails, is displaced or "
    "requeued") {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        CAPTURE(seed);
        WorldSpec spec = world(12);
        spec.kinds[0].checkpoint_interval = 20min;
        spec.kinds[0].checkpoint_stall = 10s;
        spec.kinds[0].restart = 1min;
        spec.kinds[0].restore = 30s;
        spec.kinds[0].own_failure_rate_per_gpu = {1.0 / 500000};
        spec.health.prolog_time = 5s;
        spec.health.epilog_time = seed % 2 == 0 ? 7s : 0s;
        spec.health.epilog = seed % 3 != 0;
        spec.health.prolog = seed % 4 != 0;
        spec.health.interval = 5min;
        spec.slurm.priority.age = 1000;
        spec.slurm.priority.job_size = 300;
        spec.slurm.topology = static_cast<SlurmTopology>(seed % 3);
        for (std::uint32_t n = 0; n < 12; ++n) spec.places.push_back({n / 4, n / 8});
        spec.slurm.qos = {{.name = "low", .mode = static_cast<PreemptMode>(seed % 4)},
                          {.name = "high", .priority = 5, .preempts = {0}}};
        if (seed % 2 == 0) spec.slurm.qos[0].grace = 2min;
        spec.reservations = {{3, 4, Instant(20h), 5h, 60h}};
        std::vector<FailureCause> causes = {breaks({1.0 / 400000}, 30s, Remedy::replace),
                                            breaks({1.0 / 400000}, 10min, Remedy::reset)};
        causes[0].silences = true;
        causes[1].name = "resets";
        std::vector<WorldJob> jobs = random_jobs(seed, 400, 96, 25min);
        RandomStream random(seed, 1, "qos");
        for (WorldJob& j : jobs) j.qos = random.chance(0.2) ? 1 : 0;
        const WorldRunResult all =
            run(spec, jobs, causes, 20 * 24h, seed);  // checks the sum itself
        std::int64_t over = 0;
        for (const WorldJobRun& r : all.outcome.runs) over += r.over ? 1 : 0;
        CHECK(over > 300);
        CHECK(all.outcome.interruptions[0] > 0);
        CHECK(all.outcome.interruptions[1] > 0);
        CHECK(all.ledger.booked(Category::lost_work) > 0);
        CHECK(all.ledger.booked(Category::repair) > 0);
        CHECK(all.ledger.booked(Category::planned_maintenance) > 0);
        CHECK(run(spec, jobs, causes, 20 * 24h, seed).trajectory.value() == all.trajectory.value());
    }
}

TEST_CASE("Backfill never delays what it has promised the first of the queue") {
    std::int64_t promises = 0;
    std::int64_t passed = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        CAPTURE(seed);
        const std::vector<WorldJob> jobs = random_jobs(seed, 200, 96, 20min);
        std::map<JobIndex, Instant> promised;
        const WorldRunResult r =
            run(world(12), jobs, {}, {}, seed, [&](JobIndex j, Instant, Instant start) {
                const auto [known, is_new] = promised.emplace(j, start);
                CHECK(start <= known->second);  // ends come early, never late
                known->second = start;
                ++promises;
            });
        for (const auto& [j, start] : promised) CHECK(r.outcome.runs[j].first_start <= start);
        for (std::size_t i = 1; i < jobs.size(); ++i) {
            passed += r.outcome.runs[i].first_start < r.outcome.runs[i - 1].first_start ? 1 : 0;
        }
    }
    CHECK(promises > 1000);
    CHECK(passed > 500);  // and it does let jobs pass
}

TEST_CASE("Accounts that always wait get GPU time in proportion to their shares") {
    WorldSpec spec = world(8);
    spec.accounts = {"a", "b", "c"};
    spec.slurm.shares = {5, 2, 1};
    spec.slurm.priority.fair_share = 1'000'000;
    spec.slurm.priority.half_life = 24h;
    spec.kinds = {{.name = "job"}};
    std::vector<WorldJob> jobs;
    for (std::int64_t i = 0; i < 9000; ++i) {
        WorldJob one = job(i + 1, 0s, 8, 1h);
        one.account = static_cast<std::uint32_t>(i % 3);
        jobs.push_back(one);
    }
    const WorldRunResult r = run(spec, jobs, {}, 14 * 24h);
    std::array<double, 3> used{};
    double all = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        used[i % 3] += seconds(r.outcome.runs[i].held);
        all += seconds(r.outcome.runs[i].held);
    }
    CHECK(used[0] / all == doctest::Approx(5.0 / 8).epsilon(0.02));
    CHECK(used[1] / all == doctest::Approx(2.0 / 8).epsilon(0.02));
    CHECK(used[2] / all == doctest::Approx(1.0 / 8).epsilon(0.02));
}

TEST_CASE("Usage decays with its half-life and sums what runs") {
    SlurmPriority rules;
    rules.half_life = 10h;
    rules.calc_period = 1h;
    SlurmUsage usage(1, rules);
    usage.change_rate(0, 4, Instant(0s));
    usage.change_rate(0, -4, Instant(30min));  // 7,200 GPU-s
    CHECK(usage.usage(0, Instant(1h)) == doctest::Approx(7200));
    CHECK(usage.usage(0, Instant(11h)) == doctest::Approx(3600));
    CHECK(usage.usage(0, Instant(11h + 59min)) == doctest::Approx(3600));  // once a period
    SlurmUsage often(1, rules);
    SlurmUsage once(1, rules);
    often.change_rate(0, 3, Instant(20min));
    once.change_rate(0, 3, Instant(20min));
    for (Duration t = 1h; t < 100h; t += 7min) often.usage(0, Instant(t));
    CHECK(often.usage(0, Instant(100h)) == doctest::Approx(once.usage(0, Instant(100h))));
}

TEST_CASE("A failure of a node is noticed, ends the job, and costs what was not saved") {
    WorldSpec spec = world(3);
    spec.kinds[0].checkpoint_interval = 1h;
    spec.kinds[0].restart = 10min;
    spec.kinds[0].restore = 5min;
    std::vector<CampaignEvent> events;
    const FailureCause cause = breaks({1.0 / 3e5}, 2min);
    const WorldRunResult r = run(spec, {job(1, 0s, 16, 200h, 5000h)}, {cause}, {}, 3, {}, &events);
    const std::int64_t n = r.outcome.interruptions[0];
    REQUIRE(n > 3);
    CHECK(r.outcome.runs[0].starts >= n + 1);  // and those that the prolog stopped
    CHECK(r.ledger.booked(Category::productive) == GpuNanoseconds{16} * Duration(200h).count());
    CHECK(r.ledger.booked(Category::restart) <=
          GpuNanoseconds{16} * Duration(10min).count() * (n + 1));
    CHECK(r.ledger.booked(Category::lost_work) < GpuNanoseconds{16} * Duration(1h).count() * n);
    CHECK(r.ledger.booked(Category::lost_work) > 0);
    // Each was noticed after two minutes, on all 16 GPUs. A broken idle node is found by the next prolog.
    CHECK(r.ledger.booked(Category::detection) >= GpuNanoseconds{16} * Duration(2min).count() * n);
    // Two jobs' nodes and one over: the job goes on at once on what is left.
    CHECK(r.ledger.booked(Category::repair) > 0);
}

TEST_CASE("A node whose host is gone is found by the heartbeat when nobody on it notices") {
    WorldSpec spec = world(1);
    spec.kinds[0].requeue = false;
    FailureCause cause = breaks({1.0 / 1e6}, 100h);
    cause.silences = true;
    std::vector<CampaignEvent> events;
    const WorldRunResult r =
        run(spec, {job(1, 0s, 8, 10000h, 20000h)}, {cause}, {}, 5, {}, &events);
    REQUIRE(r.outcome.runs[0].how == JobEnd::node_fail);
    const auto struck = std::find_if(events.begin(), events.end(), [](const CampaignEvent& e) {
        return std::string(e.kind) == "interruption";
    });
    REQUIRE(struck != events.end());
    CHECK(r.outcome.runs[0].end - struck->at == Duration(300s));
    CHECK(r.ledger.booked(Category::detection) == GpuNanoseconds{8} * Duration(300s).count());
}

TEST_CASE(
    "Without checks a broken node ends job after job; the prolog's check sends them elsewhere") {
    WorldSpec spec = world(4);
    spec.kinds[0].requeue = false;
    std::vector<WorldJob> jobs;
    for (std::int64_t i = 0; i < 300; ++i) jobs.push_back(job(i + 1, i * 1h, 8, 30min));
    const std::vector<FailureCause> causes = {breaks({1.0 / 3e5}, 1min)};
    const auto failed = [&](bool prolog, bool epilog) {
        WorldSpec changed = spec;
        changed.health.prolog = prolog;
        changed.health.epilog = epilog;
        const WorldRunResult r = run(changed, jobs, causes, {}, 11);
        return std::count_if(r.outcome.runs.begin(), r.outcome.runs.end(),
                             [](const WorldJobRun& j) { return j.how == JobEnd::node_fail; });
    };
    const auto unchecked = failed(false, false);
    const auto epilog_only = failed(false, true);
    CHECK(unchecked > 10 * std::max<std::int64_t>(1, epilog_only));
}

TEST_CASE(
    "A job of a QOS that may displaces the youngest of least priority, and no more than it needs") {
    WorldSpec spec = world(3);
    spec.slurm.qos = {{.name = "low"},
                      {.name = "mid", .priority = 1},
                      {.name = "high", .priority = 2, .preempts = {0, 1}}};
    std::vector<WorldJob> jobs = {job(1, 0s, 8, 10h), job(2, 1min, 8, 10h), job(3, 2min, 8, 10h),
                                  job(4, 1h, 8, 1h)};
    jobs[0].qos = 1;
    jobs[3].qos = 2;
    SUBCASE("requeue: it runs again from nothing") {
        const WorldRunResult r = run(spec, jobs);
        CHECK(r.outcome.runs[3].first_start == Instant(1h));
        CHECK(r.outcome.runs[2].starts == 2);
        CHECK(r.outcome.runs[2].end == Instant(2h + 10h));
        CHECK(r.outcome.runs[0].starts == 1);
        CHECK(r.outcome.runs[1].starts == 1);
        CHECK(r.ledger.booked(Category::lost_work) == GpuNanoseconds{8} * Duration(58min).count());
        CHECK(r.outcome.preemptions == 1);
    }
    SUBCASE("cancel: that is its end") {
        spec.slurm.qos[0].mode = PreemptMode::cancel;
        const WorldRunResult r = run(spec, jobs);
        CHECK(r.outcome.runs[2].how == JobEnd::preempted);
        CHECK(r.outcome.runs[2].end == Instant(1h));
    }
    SUBCASE("suspend: it goes on where it was") {
        spec.slurm.qos[0].mode = PreemptMode::suspend;
        const WorldRunResult r = run(spec, jobs);
        CHECK(r.outcome.runs[2].end == Instant(2min + 10h + 1h));
        CHECK(r.ledger.booked(Category::lost_work) == 0);
    }
    SUBCASE("grace: it runs on for so long") {
        spec.slurm.qos[0].grace = 10min;
        const WorldRunResult r = run(spec, jobs);
        CHECK(r.outcome.runs[3].first_start == Instant(1h + 10min));
        CHECK(r.ledger.booked(Category::lost_work) == GpuNanoseconds{8} * Duration(68min).count());
    }
    SUBCASE("exempt: nothing happens before") {
        spec.slurm.qos[0].exempt = 2h;
        spec.slurm.qos[1].mode = PreemptMode::off;
        const WorldRunResult r = run(spec, jobs);
        CHECK(r.outcome.runs[3].first_start == Instant(2h + 1min));  // the first that may go
        CHECK(r.outcome.preemptions == 1);
    }
}

TEST_CASE("Tree: the leaf that fits best; more than a leaf: as few leaves as will do") {
    WorldSpec spec = world(16);
    for (std::uint32_t n = 0; n < 16; ++n) spec.places.push_back({n / 4, 0});
    spec.slurm.topology = SlurmTopology::tree;
    // One node of leaf 0 is taken and two of leaf 1: two nodes fit leaf 1 best.
    std::map<JobIndex, Allocation> got;
    WorldCluster cluster(spec);
    SlurmPlacement placement(cluster, SlurmTopology::tree);
    cluster.take(0, 100, 8, 0);
    cluster.take(4, 100, 8, 0);
    cluster.take(5, 100, 1, 0);
    const auto leaves = [&](std::int64_t gpus, SlurmTopology topology) {
        SlurmPlacement chosen(cluster, topology);
        std::vector<std::uint32_t> out;
        const NodeSet& all = cluster.members(0);
        if (const auto a = chosen.place(job(1, 0s, gpus, 1h), {all, all})) {
            for (const NodeShare& share : *a) out.push_back(share.node / 4);
        }
        return out;
    };
    using Leaves = std::vector<std::uint32_t>;
    CHECK(leaves(16, SlurmTopology::tree) == Leaves{1, 1});
    CHECK(leaves(24, SlurmTopology::tree) == Leaves{0, 0, 0});
    CHECK(leaves(32, SlurmTopology::tree) == Leaves{2, 2, 2, 2});
    CHECK(leaves(48, SlurmTopology::tree) == Leaves{1, 1, 2, 2, 2, 2});
    CHECK(leaves(16, SlurmTopology::none) == Leaves{0, 0});
    // Blocks: five nodes take two blocks at most, though three would have them too.
    CHECK(leaves(40, SlurmTopology::block).size() == 5);
    for (const NodeIndex n : {8, 9, 12, 13}) cluster.take(n, 101, 8, 0);
    CHECK(leaves(32, SlurmTopology::tree).size() == 4);
    CHECK(leaves(32, SlurmTopology::block).empty());  // no block has four nodes any more
    CHECK(leaves(48, SlurmTopology::block).empty());  // nor have two blocks six
}

TEST_CASE("A job that wants one switch waits for it, but not for ever") {
    WorldSpec spec = world(4);
    for (std::uint32_t n = 0; n < 4; ++n) spec.places.push_back({n / 2, 0});
    spec.slurm.topology = SlurmTopology::tree;
    std::vector<WorldJob> jobs = {job(1, 0s, 8, 1h), job(2, 0s, 8, 3min), job(3, 30s, 16, 1h)};
    jobs[2].switches_max = 1;
    jobs[2].switches_wait = 1h;  // more than is allowed
    jobs[0].work = jobs[0].limit = 10h;
    WorldSpec apart = spec;
    apart.slurm.topology = SlurmTopology::none;
    const WorldRunResult r = run(spec, jobs);
    CHECK(r.outcome.runs[2].first_start == Instant(30s));  // both small jobs are on one leaf
    jobs.insert(jobs.begin() + 2, job(9, 10s, 8, 20h));    // takes half of the other
    const WorldRunResult late = run(spec, jobs);
    CHECK(late.outcome.runs[3].first_start == Instant(30s + 300s));
}

TEST_CASE("nodes with two reservations are under maintenance until the last has ended") {
    WorldSpec spec = world(2);
    spec.reservations = {{0, 2, Instant(1h), 4h, 0s}, {1, 1, Instant(2h), 1h, 0s}};
    const WorldRunResult r = run(spec, {job(1, 6h, 8, 1h, 2h)});
    CHECK(r.ledger.booked(Category::planned_maintenance) ==
          GpuNanoseconds{16} * Duration(4h).count());
}

TEST_CASE("No job starts that would have to end in a maintenance window") {
    WorldSpec spec = world(2);
    spec.reservations = {{0, 2, Instant(5h), 2h, 0s}};
    const WorldRunResult r =
        run(spec, {job(1, 0s, 8, 1h, 4h), job(2, 0s, 8, 1h, 6h), job(3, 90min, 8, 1h, 2h)});
    CHECK(r.outcome.runs[0].first_start == Instant(0s));
    CHECK(r.outcome.runs[1].first_start == Instant(7h));
    CHECK(r.outcome.runs[2].first_start == Instant(90min));  // by backfill
    CHECK(r.ledger.booked(Category::planned_maintenance) ==
          GpuNanoseconds{16} * Duration(2h).count());
}

TEST_CASE("What can never run is refused, and why") {
    WorldSpec spec = world(2);
    spec.partitions[0].limit_max = 10h;
    const WorldRunResult r =
        run(spec, {job(1, 0s, 24, 1h, 1h), job(2, 0s, 8, 1h, 11h), job(3, 0s, 8, 1h, 9h)});
    REQUIRE(r.outcome.refused.size() == 2);
    CHECK(r.outcome.refused[0].reason ==
          "wants 24 GPUs on 3 nodes; partition all has 2 such nodes");
    CHECK(r.outcome.refused[1].reason == "wants 11 h; a job of partition all gets 10 h at most");
    CHECK(r.outcome.runs[2].how == JobEnd::completed);
}

TEST_CASE("Time to failure of jobs by size is what the nodes' rate says") {
    WorldSpec spec = world(64);
    spec.kinds[0].checkpoint_interval = 1h;
    const Rate rate{6.5e-3 / 86400};
    std::vector<WorldJob> jobs;
    for (std::int64_t i = 0; i < 4; ++i) jobs.push_back(job(i + 1, 0s, 128, 100000h, 300000h));
    const WorldRunResult r = run(spec, jobs, {breaks(rate, 0s)}, 20 * 365 * 24h);
    double held = 0;
    double failures = 0;
    for (const WorldJobRun& j : r.outcome.runs) {
        held += seconds(j.held);
        failures += static_cast<double>(j.interruptions);
    }
    const double expected = 86400 / (16 * 6.5e-3);
    REQUIRE(failures > 1500);
    CHECK(held / failures == doctest::Approx(expected).epsilon(4 / std::sqrt(failures)));
}

TEST_CASE("A job alone that fails takes what renewal theory says") {
    // Work between checkpoints W, stall c, rate a, time to be back R: exp(a R)-like restarts are failures of
    // nobody here, since strikes on a job that is down hit its next start's nodes only if they break.
    WorldSpec spec = world(1);
    WorldJobKind& kind = spec.kinds[0];
    kind.checkpoint_interval = 1h;
    kind.own_failure_rate_per_gpu = {1.0 / 7200 / 8};
    const WorldRunResult r = run(spec, {job(1, 0s, 8, 20000h, 900000h)});
    // Each hour of work takes (e^(a W) - 1) / a on average.
    const double a = 1.0 / 7200;
    const double expected = 20000 * (std::exp(a * 3600) - 1) / a;
    CHECK(seconds(r.simulated) == doctest::Approx(expected).epsilon(0.02));
    CHECK(hours_of(r.ledger.booked(Category::productive)) == doctest::Approx(8 * 20000));
}

TEST_CASE("Free GPUs are told apart by what the first of the queue needs") {
    // Two nodes with three and five free: eight on one node are not to be had.
    WorldSpec spec = world(2);
    spec.slurm.backfill_enabled = false;
    std::vector<WorldJob> jobs = {job(1, 0s, 5, 10h), job(2, 0s, 5, 10h), job(3, 1h, 6, 1h),
                                  job(4, 20h, 16, 1h)};
    const WorldRunResult r = run(spec, jobs);
    CHECK(r.outcome.runs[2].first_start == Instant(10h));
    CHECK(r.ledger.booked(Category::fragmentation) == GpuNanoseconds{6} * Duration(9h).count());
    CHECK(r.ledger.booked(Category::gang_wait) == 0);
    jobs[2].gpus = jobs[2].gpus_per_pod = 8;
    const WorldRunResult more = run(spec, jobs);
    CHECK(more.ledger.booked(Category::gang_wait) == GpuNanoseconds{6} * Duration(9h).count());
}

TEST_CASE(
    "Nodes that a blocked partition waits for are not given to others' jobs that would be in its "
    "way") {
    WorldSpec spec = world(2);
    spec.partitions.push_back({.name = "one", .first_node = 1, .nodes = 1});
    WorldJob in_the_way = job(3, 2min, 8, 10min, 2h);
    in_the_way.partition = 1;
    WorldJob harmless = job(4, 3min, 8, 5min, 30min);
    harmless.partition = 1;
    const WorldRunResult r =
        run(spec, {job(1, 0min, 8, 25min, 1h), job(2, 1min, 16, 8min, 1h), in_the_way, harmless});
    const auto start = [&](std::size_t i) {
        return r.outcome.runs[i].first_start.time_since_epoch();
    };
    CHECK(start(1) == 25min);
    CHECK(start(2) == 33min);
    CHECK(start(3) <= 4min);  // backfilled: it ends before the first does by its limit
}

TEST_CASE("A job's size is its share of the nodes and of the GPUs, on average") {
    WorldSpec spec = world(2);
    spec.slurm.priority.job_size = 1000;
    WorldJob spread = job(3, 2min, 6, 10min);
    spread.gpus_per_pod = 3;  // both nodes and 6 of 16 GPUs; the other has one node and 8
    const WorldRunResult r = run(spec, {job(1, 0min, 16, 10min), job(2, 1min, 8, 10min), spread});
    CHECK(r.outcome.runs[2].first_start.time_since_epoch() == 10min);
    CHECK(r.outcome.runs[1].first_start.time_since_epoch() == 20min);
}

TEST_CASE("A job that never fits between two windows that come again is refused") {
    WorldSpec spec = world(2);
    spec.reservations = {{0, 2, Instant(5h), 2h, 12h}};
    const auto refused = [&](const WorldJob& each) {
        const WorldRunResult r = run(spec, {each}, {}, 1000h);
        return r.outcome.refused.size() == 1;
    };
    CHECK(!refused(job(1, 6h, 16, 1h, 10h)));
    CHECK(refused(job(1, 6h, 16, 1h, 11h)));
    CHECK(!refused(job(1, 0s, 16, 1h, 5h)));
    WorldJob endless = job(1, 0s, 16, 1h);
    endless.limit = {};
    CHECK(refused(endless));
    spec.reservations[0].nodes = 1;  // the other node is always its own
    CHECK(refused(job(1, 6h, 16, 1h, 11h)));
    CHECK(!refused(job(1, 6h, 8, 1h, 11h)));
}

TEST_CASE("The last, smaller pod goes to a leaf of the others") {
    WorldSpec spec = world(4);
    for (std::uint32_t n = 0; n < 4; ++n) spec.places.push_back({n / 2, 0});
    spec.slurm.topology = SlurmTopology::tree;
    WorldCluster cluster(spec);
    SlurmPlacement chosen(cluster, SlurmTopology::tree);
    cluster.take(0, 100, 8, 0);
    const NodeSet& all = cluster.members(0);
    WorldJob wants = job(1, 0s, 12, 1h);
    wants.gpus_per_pod = 8;
    // Leaf 0 has the fewest nodes with room for the full pod, and no second node for what is left over.
    const auto nodes = chosen.place(wants, {all, all});
    REQUIRE(nodes);
    CHECK(chosen.leaves_of(*nodes) == 1);
    CHECK(!nodes->has(1));
}

TEST_CASE("A job in its grace time keeps nobody from displacing others elsewhere") {
    WorldSpec spec = world(4);
    spec.partitions = {{.name = "a", .nodes = 2}, {.name = "b", .first_node = 2, .nodes = 2}};
    spec.slurm.qos = {{.name = "patient", .grace = 6h},
                      {.name = "low"},
                      {.name = "high", .priority = 2, .preempts = {0, 1}}};
    std::vector<WorldJob> jobs = {job(1, 0s, 16, 20h), job(2, 0s, 16, 20h), job(3, 1h, 16, 1h),
                                  job(4, 2h, 16, 1h)};
    jobs[1].partition = jobs[3].partition = 1;
    jobs[1].qos = 1;
    jobs[2].qos = jobs[3].qos = 2;
    const WorldRunResult r = run(spec, jobs);
    CHECK(r.outcome.runs[2].first_start == Instant(7h));
    CHECK(r.outcome.runs[3].first_start == Instant(2h));
    CHECK(r.outcome.preemptions == 2);
}

TEST_CASE("Whoever displaces others displaces no more of them while their epilogs run") {
    WorldSpec spec = world(4);
    spec.slurm.qos = {{.name = "low"}, {.name = "high", .priority = 1, .preempts = {0}}};
    spec.slurm.priority.qos = 1000;
    spec.health.epilog_time = 1min;
    std::vector<WorldJob> jobs;
    for (std::int64_t i = 0; i < 4; ++i) jobs.push_back(job(i, 0s, 8, 10h, 20h));
    jobs.push_back(job(4, 1h, 8, 1h));
    jobs.back().qos = 1;
    for (std::int64_t i = 5; i < 60; ++i) jobs.push_back(job(i, 1h + i * 1s, 8, 1h));
    const WorldRunResult r = run(spec, jobs);
    CHECK(r.outcome.preemptions == 1);
    CHECK(r.outcome.runs[4].first_start == Instant(1h + 1min));
}

TEST_CASE("Whoever is displaced for another comes back after it, epilogs or not") {
    WorldSpec spec = world(2);
    spec.slurm.qos = {{.name = "low"},
                      {.name = "patient", .grace = 10min},
                      {.name = "high", .priority = 1, .preempts = {0, 1}}};
    std::vector<WorldJob> jobs = {job(0, 0s, 8, 10h, 20h), job(1, 0s, 8, 10h, 20h),
                                  job(2, 1h, 16, 2h)};
    jobs[2].qos = 2;
    SUBCASE("all at once") {
        spec.health.epilog_time = 1min;
        const WorldRunResult r = run(spec, jobs);
        CHECK(r.outcome.preemptions == 2);
        CHECK(r.outcome.runs[2].first_start == Instant(1h + 1min));
    }
    SUBCASE("one after another") {
        jobs[1].qos = 1;
        const WorldRunResult r = run(spec, jobs);
        CHECK(r.outcome.preemptions == 2);
        CHECK(r.outcome.runs[0].starts == 2);
        CHECK(r.outcome.runs[2].first_start == Instant(1h + 10min));
    }
}

TEST_CASE("Nobody is displaced where that would not help") {
    WorldSpec spec = world(4);
    for (std::uint32_t n = 0; n < 4; ++n) spec.places.push_back({n / 2, n / 2});
    spec.slurm.topology = SlurmTopology::block;
    spec.slurm.priority.qos = 1000;
    spec.slurm.qos = {{.name = "low"}, {.name = "high", .priority = 1, .preempts = {0}}};
    // A block each for one that stays and one that would go: there is no block for the last.
    std::vector<WorldJob> jobs = {job(0, 0s, 8, 10h), job(1, 1s, 8, 20h), job(2, 2s, 8, 10h),
                                  job(3, 3s, 8, 20h), job(4, 1h, 16, 1h)};
    for (const std::size_t i : {0, 2, 4}) jobs[i].qos = 1;
    SUBCASE("with blocks") {
        const WorldRunResult r = run(spec, jobs);
        CHECK(r.outcome.preemptions == 1);  // when those that stay are done
        CHECK(r.outcome.runs[4].first_start == Instant(10h));
    }
    SUBCASE("wherever there is room") {
        spec.slurm.topology = SlurmTopology::none;
        const WorldRunResult r = run(spec, jobs);
        CHECK(r.outcome.preemptions == 2);
        CHECK(r.outcome.runs[4].first_start == Instant(1h));
    }
}

TEST_CASE("A job that is done within its grace time, but for its epilog, is not displaced") {
    WorldSpec spec = world(1);
    spec.slurm.qos = {{.name = "low", .grace = 10min},
                      {.name = "high", .priority = 1, .preempts = {0}}};
    spec.slurm.priority.qos = 1000;
    spec.health.epilog_time = 1min;
    std::vector<WorldJob> jobs = {job(0, 0s, 8, 1h + 9min + 30s, 20h), job(1, 1h, 8, 1h)};
    jobs[1].qos = 1;
    const WorldRunResult r = run(spec, jobs);
    CHECK(r.outcome.preemptions == 0);
    CHECK(r.outcome.runs[0].starts == 1);
    CHECK(r.outcome.runs[0].how == JobEnd::completed);
    CHECK(r.outcome.runs[1].first_start == Instant(1h + 10min + 30s));
}

TEST_CASE("Behind a blocked job a short one starts when the window that kept it out is over") {
    WorldSpec spec = world(2);
    spec.reservations = {{.first_node = 1, .nodes = 1, .start = Instant(10h), .length = 2h}};
    const std::vector<WorldJob> jobs = {job(0, 0s, 8, 30h), job(1, 1s, 16, 1h),
                                        job(2, 9h, 8, 2h, 2h + 1min)};
    CHECK(run(spec, jobs).outcome.runs[2].first_start == Instant(12h));
}

namespace {

// Ten hours of a job on both nodes; another of two hours, after five, suspends it.
struct Suspended {
    WorldSpec spec = world(2);
    std::vector<WorldJob> jobs = {job(1, 0s, 16, 10h, 11h), job(2, 5h, 8, 2h)};

    Suspended() {
        spec.slurm.qos = {{.name = "low", .mode = PreemptMode::suspend},
                          {.name = "high", .priority = 1, .preempts = {0}}};
        spec.health.prolog_time = 1min;
        spec.kinds[0].restart = 20min;
        spec.kinds[0].restore = 10min;
        jobs[1].qos = jobs[1].kind = 1;
        spec.kinds.push_back({.name = "urgent"});
    }
    auto both(Category category) const { return run(spec, jobs).ledger.booked(category) / 16; }
};

}  // namespace

TEST_CASE_FIXTURE(
    Suspended,
    "A suspended job goes on where it was: no launch, no restore, and what is left of its limit") {
    SUBCASE("in the middle of its work") {
        const WorldRunResult r = run(spec, jobs);
        CHECK(r.outcome.runs[1].first_start == Instant(5h));
        CHECK(r.outcome.runs[0].end == Instant(21min + 10h + 2h + 1min));
        CHECK(r.outcome.runs[0].how == JobEnd::completed);
        CHECK(r.outcome.runs[0].starts == 1);
        CHECK(r.outcome.runs[0].held == Duration(21min + 10h));
        CHECK(both(Category::restart) == Duration(20min).count());
        CHECK(both(Category::restore) == 0);
        CHECK(both(Category::lost_work) == 0);
    }
    SUBCASE("in the middle of a step") {
        spec.kinds[0].step = [](const auto&, std::uint32_t, const NetworkNow&) {
            return StepTime{.compute = 7min};
        };
        spec.kinds[0].steps = 60;
        const WorldRunResult r = run(spec, jobs);
        CHECK(r.outcome.runs[0].end == Instant(21min + 7h + 2h + 1min));
        CHECK(r.outcome.runs[0].held == Duration(21min + 7h));
        CHECK(both(Category::productive) > Duration(7h).count());  // and the other job's
        CHECK(both(Category::lost_work) == 0);
    }
    SUBCASE("while it is launched") {
        jobs[1].submit = Instant(10min);
        CHECK(run(spec, jobs).outcome.runs[0].end == Instant(21min + 10h + 2h + 1min));
    }
    SUBCASE("while it saves: the save begins anew") {
        spec.kinds[0].checkpoint_interval = 4h;
        spec.kinds[0].checkpoint_stall = 1h;
        jobs[0].limit = 9h;  // of which 21 min + 4 h + 39 min + 1 h have passed when it has saved
        CHECK(both(Category::lost_work) == Duration(3h).count());
        jobs[0].limit = 20h;
        CHECK(run(spec, jobs).outcome.runs[0].end == Instant(21min + 10h + 2h + 39min + 2h + 1min));
        CHECK(both(Category::lost_work) == 0);
    }
    SUBCASE("until its limit") {
        jobs[0].limit = 6h;
        const WorldRunResult r = run(spec, jobs);
        CHECK(r.outcome.runs[0].how == JobEnd::timeout);
        CHECK(r.outcome.runs[0].end == Instant(6h + 2h + 1min));
    }
    SUBCASE("not into a maintenance window") {
        spec.reservations = {{.first_node = 0, .nodes = 2, .start = Instant(12h), .length = 5h}};
        const WorldRunResult r = run(spec, jobs);
        CHECK(r.outcome.runs[0].end == Instant(17h + 5h + 21min));
    }
}

TEST_CASE("Nobody of its own QOS gets before a suspended job") {
    WorldSpec spec = world(4);
    spec.slurm.qos = {{.name = "low", .mode = PreemptMode::suspend},
                      {.name = "high", .priority = 1, .preempts = {0}}};
    std::vector<WorldJob> jobs = {job(1, 0s, 32, 2h), job(2, 1h, 32, 1h), job(3, 90min, 32, 5h),
                                  job(4, 91min, 32, 5h)};
    jobs[1].qos = 1;
    SUBCASE("on its nodes") {
        const WorldRunResult r = run(spec, jobs);
        CHECK(r.outcome.runs[0].end == Instant(3h));
        CHECK(r.outcome.runs[2].first_start == Instant(3h));
    }
    SUBCASE("of the GPUs of all its QOS") {
        spec.slurm.qos[0].gpus_max = 16;
        for (const std::size_t i : {0, 2, 3}) jobs[i].gpus = 16;
        const WorldRunResult r = run(spec, jobs);
        CHECK(r.outcome.runs[0].end == Instant(3h));
        CHECK(r.outcome.runs[2].first_start == Instant(3h));
        CHECK(r.outcome.runs[3].first_start == Instant(8h));
    }
}
