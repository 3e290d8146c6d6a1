// Clusters under Kubernetes, Volcano and Kueue: gangs, deadlocks, back-offs, shares, quota and topology.

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "models/scheduler/kueue_topology.h"
#include "models/scheduler/scheduler.h"
#include "models/scheduler/volcano_shares.h"
#include "tests/models/gpu_audit.h"
#include "tests/models/small_world.h"

using namespace railyard;
using std::chrono_literals::operator""ns;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""h;

namespace {

// Nodes of 8 GPUs behind one partition, one queue; pods are made at once, nodes are not checked before a
// start.
WorldSpec world(const std::string& scheduler, std::int64_t nodes) {
    WorldSpec spec = world_of({{"all", nodes, 8}}, scheduler);
    spec.slurm.qos = {{.name = "normal"}, {.name = "high", .priority = 10}};
    spec.kube.queues = {{.name = "default"}};
    spec.kinds = {{.name = "job"}};
    return spec;
}

WorldJob job(std::int64_t id, Duration submit, std::int64_t gpus, Duration work,
             std::uint32_t queue = 0) {
    WorldJob out = world_job(id, submit, gpus, work, 5000h);
    out.queue = queue;
    return out;
}

FailureCause host_dies(Duration detection) {
    FailureCause cause;
    cause.name = "host";
    cause.rate_per_node = Rate{1.0 / seconds(Duration(100h))};
    cause.detection = detection;
    cause.remedy = Remedy::reset;
    cause.reset_time = 1000h;
    cause.silences = true;
    return cause;
}

struct Outcome {
    WorldRunResult result;
    std::map<JobIndex, std::vector<Instant>> starts;
    std::map<JobIndex, Allocation> nodes;
    std::vector<CampaignEvent> events;

    std::vector<Instant> times(const std::string& kind) const {
        std::vector<Instant> out;
        for (const CampaignEvent& e : events) {
            if (e.kind == kind) out.push_back(e.at);
        }
        return out;
    }
    Duration booked(Category category) const {  // GPU time
        return Duration(static_cast<std::int64_t>(result.ledger.booked(category)));
    }
    const WorldJobRun& job(JobIndex index) const { return result.outcome.runs[index]; }
};

Outcome run(const WorldSpec& spec, std::vector<WorldJob> jobs,
            const std::vector<FailureCause>& causes = {}, Duration end = {},
            std::uint64_t seed = 1) {
    std::stable_sort(jobs.begin(), jobs.end(),
                     [](const WorldJob& a, const WorldJob& b) { return a.submit < b.submit; });
    const WorldJobs all{std::move(jobs)};
    GpuAudit auditor(spec);
    Outcome out;
    WorldRun world_run{.spec = spec, .jobs = all, .causes = causes, .seed = seed};
    if (end > Duration{}) world_run.end = Instant(end);
    world_run.events_max = 200'000;
    world_run.listeners = {&auditor};
    world_run.events = &out.events;
    out.result = run_world(world_run);
    CHECK(out.result.ended != CampaignEngine::Outcome::limit);
    out.starts = auditor.starts;
    out.nodes = auditor.nodes;
    return out;
}

// A job on four nodes, with the first seed of which one node of the job dies and no other.
Outcome run_with_one_death(const WorldSpec& spec, const FailureCause& cause) {
    for (std::uint64_t seed = 1; seed < 1000; ++seed) {
        Outcome out = run(spec, {job(1, 0s, 32, 10h)}, {cause}, 1200h, seed);
        const std::vector<Instant> not_ready = out.times("not_ready");
        const std::vector<Instant> deaths = out.times("interruption");
        if (deaths.size() != 1 || out.job(0).how != JobEnd::completed || !out.job(0).over) continue;
        if (not_ready.empty() || not_ready[0] == deaths[0] + 40s) return out;
    }
    FAIL("no seed with one death");
    return {};
}

Duration gpu_time(std::int64_t gpus, Duration time) {
    return Duration(gpus * time.count());
}

std::vector<WorldJob> whole_nodes(std::int64_t count, Duration apart, Duration work) {
    std::vector<WorldJob> out;
    for (std::int64_t i = 0; i < count; ++i) out.push_back(job(i + 1, i * apart, 8, work));
    return out;
}

}  // namespace

// ---- Kubernetes ----

TEST_CASE("Kubernetes evicts a dead host's pod after 340 s, and its peers burn to their timeout") {
    const Outcome r = run_with_one_death(world("kubernetes", 6), host_dies(600s));
    const Instant death = r.times("interruption")[0];
    CHECK(r.times("evicted") == std::vector{death + 340s});
    REQUIRE(r.starts.at(0).size() == 2);
    CHECK(r.starts.at(0)[1] == death + 600s);
    CHECK(r.job(0).end == death + 600s + 10h);
    // The pod that takes its place is there from 350 s on, and waits with the peers.
    CHECK(r.booked(Category::lost_work) == gpu_time(32, death.time_since_epoch()));
    CHECK(r.booked(Category::partial_hold) == 0s);
    CHECK(gpu_time(24, 600s) + gpu_time(8, 340s + 250s) <= r.booked(Category::detection));
}

TEST_CASE("Peers that notice before Kubernetes does hold their GPUs until the pod is back") {
    const Outcome r = run_with_one_death(world("kubernetes", 6), host_dies(30s));
    const Instant death = r.times("interruption")[0];
    REQUIRE(r.starts.at(0).size() == 2);
    CHECK(r.starts.at(0)[1] == death + 350s);
    CHECK(r.booked(Category::partial_hold) == gpu_time(32, 310s) + gpu_time(24, 10s));
}

TEST_CASE("Without a spare node a job under Kubernetes holds what it has until the repair") {
    FailureCause cause = host_dies(600s);
    cause.reset_time = 2h;
    const Outcome r = run_with_one_death(world("kubernetes", 4), cause);
    const Instant death = r.times("interruption")[0];
    REQUIRE(r.starts.at(0).size() == 2);
    CHECK(r.starts.at(0)[1] == death + 340s + 2h);
    CHECK(r.booked(Category::partial_hold) == gpu_time(24, 340s + 2h - 600s));
}

TEST_CASE("What a node's death costs under each scheduler follows from its time-outs") {
    // Slurm: SlurmdTimeout 300 s ends all of it; Volcano: eviction, then the next look; Kueue: as Kubernetes.
    const std::pair<const char*, Duration> stalls[] = {
        {"slurm", 300s}, {"kubernetes", 600s}, {"volcano", 340s}, {"kueue", 600s}};
    for (const auto& each : stalls) {
        const auto [name, stall] = each;
        CAPTURE(each.first);
        const Outcome r = run_with_one_death(world(name, 6), host_dies(600s));
        const Instant death = r.times("interruption")[0];
        REQUIRE(r.starts.at(0).size() == 2);
        const Duration gap = r.starts.at(0)[1] - (death + stall);
        CHECK(gap >= 0s);
        CHECK(gap < 1s);
        CHECK(r.booked(Category::lost_work) == gpu_time(32, death.time_since_epoch()));
    }
}

TEST_CASE(
    "Two jobs that get half of their pods each wait for ever under Kubernetes, and are named") {
    const std::vector<WorldJob> jobs = {job(1, 0s, 32, 1h), job(2, 0s, 32, 1h)};
    const Outcome k = run(world("kubernetes", 6), jobs);
    CHECK(k.starts.empty());
    CHECK(k.result.ended == CampaignEngine::Outcome::drained);
    CHECK(k.result.outcome.stuck ==
          "deadlock: job 1 waits for job 2 waits for job 1\n"
          "job 1 holds 24 GPUs (nodes 0,2,4) and waits for 8 more\n"
          "job 2 holds 24 GPUs (nodes 1,3,5) and waits for 8 more");
    CHECK(k.times("deadlock") == std::vector{Instant(0s), Instant(0s)});
    for (const char* scheduler : {"volcano", "kueue"}) {
        const Outcome r = run(world(scheduler, 6), jobs);
        CHECK(r.starts.at(0) == std::vector{Instant(0s)});
        CHECK(r.starts.at(1) == std::vector{Instant(1h)});
        CHECK(r.booked(Category::partial_hold) == 0s);
        CHECK(r.result.outcome.stuck.empty());
    }
}

TEST_CASE("What deadlocked jobs hold is booked until the campaign ends") {
    const Outcome r =
        run(world("kubernetes", 6), {job(1, 0s, 32, 1h), job(2, 0s, 32, 1h)}, {}, 100h);
    CHECK(r.booked(Category::partial_hold) == gpu_time(48, 100h));
}

TEST_CASE("Jobs that hold some GPUs while others run are not in a deadlock") {
    const Outcome r =
        run(world("kubernetes", 6), {job(1, 0s, 8, 1h), job(2, 0s, 24, 1h), job(3, 0s, 32, 1h)});
    CHECK(r.booked(Category::partial_hold) > 0s);
    CHECK(r.times("deadlock").empty());
    CHECK(r.job(2).over);
}

TEST_CASE("A pod that keeps failing is made anew after 10 s, 20 s, 40 s, and given up in the end") {
    FailureCause cause;
    cause.name = "software";
    cause.rate_per_node = Rate{1.0 / seconds(Duration(1h))};
    cause.remedy = Remedy::restart;
    const Outcome r = run(world("kubernetes", 1), {job(1, 0s, 8, 1000h)}, {cause});
    const std::vector<Instant> failures = r.times("interruption");
    const std::vector<Instant>& starts = r.starts.at(0);
    REQUIRE(failures.size() == 7);
    REQUIRE(starts.size() == 7);
    const Duration waits[] = {10s, 20s, 40s, 80s, 160s, 320s};
    for (std::size_t i = 0; i < 6; ++i) CHECK(starts[i + 1] - failures[i] == waits[i]);
    CHECK(r.job(0).how == JobEnd::failed);
    CHECK(r.job(0).end == failures[6]);
    WorldSpec patient = world("kubernetes", 1);
    patient.kube.backoff_limit = 8;
    const Outcome p = run(patient, {job(1, 0s, 8, 1000h)}, {cause});
    CHECK(p.starts.at(0)[7] - p.times("interruption")[6] == 360s);
}

TEST_CASE("The pods that an outage of a rack takes together are one failure of their job") {
    for (const std::string scheduler : {"kubernetes", "kueue"}) {
        for (const bool silences : {false, true}) {
            WorldSpec spec = world(scheduler, 24);
            spec.kube.queues[0].quota = {{192, {}}};
            spec.domains.resize(domain_kind_names.size());
            spec.domains[static_cast<std::size_t>(DomainKind::rack)] = FailureDomains::runs(24, 8);
            FailureCause cause = host_dies(10min);
            cause.rate_per_node = {};
            cause.domain = DomainKind::rack;
            cause.reset_time = 2h;
            cause.silences = silences;
            spec.injected = {{Duration(210min), 0, 0, {}}};
            const Outcome r = run(spec, {job(1, 0s, 128, 10h)}, {cause});
            CHECK(r.job(0).how == JobEnd::completed);
            CHECK(r.times("pod_failed").size() == 8);
            CHECK(r.starts.at(0).size() == 2);
            CHECK(r.starts.at(0)[1] == Instant(210min + 10min + (silences ? 0s : 10s)));
        }
    }
}

TEST_CASE("A later job's pods get in between because a controller makes them one by one") {
    WorldSpec spec = world("kubernetes", 6);
    spec.kube.pod_interval = 50ms;
    const Outcome late = run(spec, {job(1, 0s, 32, 1h), job(2, 200ms, 32, 1h)});
    CHECK(late.starts.at(0) == std::vector{Instant(150ms)});
    const Outcome between = run(spec, {job(1, 0s, 40, 1h), job(2, 50ms, 40, 1h)});
    CHECK(between.starts.empty());
    CHECK(!between.result.outcome.stuck.empty());
}

TEST_CASE("Pods spread over the emptiest nodes or fill the fullest") {
    WorldSpec spec = world("kubernetes", 2);
    const std::vector<WorldJob> jobs = {job(1, 0s, 2, 1h), job(2, 1s, 2, 1h), job(3, 2s, 8, 1h)};
    CHECK(run(spec, jobs).starts.at(2)[0] == Instant(1h));
    spec.kube.scoring = PodScoring::most_allocated;
    CHECK(run(spec, jobs).starts.at(2)[0] == Instant(2s));
}

// ---- Volcano ----

TEST_CASE(
    "Volcano starts a job again as a whole once a pod is evicted, and holds nothing till then") {
    const Outcome r = run_with_one_death(world("volcano", 6), host_dies(600s));
    const Duration evicted = (r.times("interruption")[0] + 340s).time_since_epoch();
    REQUIRE(r.starts.at(0).size() == 2);
    CHECK(r.starts.at(0)[1] == Instant((evicted + 1s - 1ns) / Duration(1s) * Duration(1s)));
    CHECK(r.booked(Category::partial_hold) == 0s);
}

TEST_CASE("Queues deserve GPUs in proportion to their weights, and what others leave") {
    using Shares = std::vector<std::int64_t>;
    CHECK(deserved_shares(64, {{3, 1000}, {1, 1000}}) == Shares{48000, 16000});
    CHECK(deserved_shares(64, {{3, 8}, {1, 1000}}) == Shares{8000, 56000});
    CHECK(deserved_shares(64, {{3, 1000, 32}, {1, 8}}) == Shares{32000, 8000});
    CHECK(deserved_shares(64, {{1, 10}, {1, 100}, {2, 100}}) == Shares{10000, 18000, 36000});
    CHECK(deserved_shares(64, {{0, 10}, {1, 100}}) == Shares{0, 64000});
    CHECK(deserved_shares(64, {{1, 99}, {1, 99}, {1, 99}}) == Shares{21334, 21333, 21333});
}

TEST_CASE("Volcano's queues converge to their weights while both want more than they get") {
    WorldSpec spec = world("volcano", 8);
    spec.kube.queues = {{.name = "a", .weight = 3}, {.name = "b", .weight = 1}};
    std::vector<WorldJob> jobs = whole_nodes(600, 0s, 1h);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        jobs[i].queue = i % 2;
        jobs[i].work += (i % 7) * Duration(1min);
    }
    const Outcome r = run(spec, jobs, {}, 24h);
    Duration held[2] = {};
    for (std::size_t i = 0; i < jobs.size(); ++i) held[i % 2] += r.result.outcome.runs[i].held;
    CHECK(seconds(held[0]) / seconds(held[1]) == doctest::Approx(3.0).epsilon(0.05));
}

TEST_CASE("A queue of Volcano's takes back what it deserves, unless reclaim is off") {
    WorldSpec spec = world("volcano", 10);
    spec.kube.queues = {{.name = "a"}, {.name = "b"}};
    std::vector<WorldJob> jobs = whole_nodes(10, 0s, 10h);
    jobs.push_back(job(11, 1h, 16, 1h, 1));
    const Outcome r = run(spec, jobs);
    CHECK(r.starts.at(10)[0] == Instant(1h));
    CHECK(r.times("reclaimed") == std::vector{Instant(1h), Instant(1h)});
    spec.kube.volcano.reclaim = false;
    CHECK(run(spec, jobs).starts.at(10)[0] == Instant(10h));
    spec.kube.volcano.reclaim = true;
    spec.kube.queues[0].reclaimable = false;
    CHECK(run(spec, jobs).starts.at(10)[0] == Instant(10h));
}

TEST_CASE("In its queue a job of higher priority displaces the latest of the lower ones") {
    WorldSpec spec = world("volcano", 10);
    std::vector<WorldJob> jobs = whole_nodes(10, 1min, 10h);
    jobs.push_back(job(11, 1h, 16, 1h));
    jobs.back().qos = 1;
    const Outcome r = run(spec, jobs);
    CHECK(r.starts.at(10)[0] == Instant(1h));
    CHECK(r.starts.at(9).size() == 2);
    CHECK(r.starts.at(8).size() == 2);
    CHECK(r.starts.at(7).size() == 1);
    spec.kube.volcano.preempt = false;
    CHECK(run(spec, jobs).starts.at(10)[0] == Instant(10h + 1min));
}

TEST_CASE("Volcano displaces on one node, and nobody whose end makes no room") {
    WorldSpec spec = world("volcano", 4);
    std::vector<WorldJob> jobs;
    for (std::int64_t i = 1; i <= 8; ++i) jobs.push_back(job(i, 0s, 4, 10h));
    jobs.push_back(job(9, 1h, 8, 1h));
    spec.kube.volcano.overcommit_percent = 200;
    jobs.back().qos = 1;
    const Outcome r = run(spec, jobs);
    CHECK(r.starts.at(8)[0] == Instant(1h));
    CHECK(r.times("preempted").size() == 2);
    // Half of it is enough for a queue that has less than it deserves.
    spec.kube.queues = {{.name = "a"}, {.name = "b"}};
    jobs.back().qos = 0;
    jobs.back().queue = 1;
    const Outcome reclaimed = run(spec, jobs);
    CHECK(reclaimed.starts.at(8)[0] == Instant(1h));
    CHECK(reclaimed.times("reclaimed").size() == 2);
}

TEST_CASE("Kueue leaves those be whose quota is not needed after all") {
    WorldSpec spec = world("kueue", 2);
    std::vector<WorldJob> jobs = {job(1, 0s, 12, 10h), job(2, 1min, 4, 10h), job(3, 1h, 12, 1h)};
    for (WorldJob& each : jobs) each.gpus_per_pod = 4;
    jobs[2].qos = 1;
    const Outcome r = run(spec, jobs);
    CHECK(r.times("preempted") == std::vector{Instant(1h)});
    CHECK(r.starts.at(1).size() == 1);
}

TEST_CASE("A job larger than what the cluster is overcommitted by isn't let in while others run") {
    WorldSpec spec = world("volcano", 10);
    spec.kube.queues = {{.name = "a"}, {.name = "b"}};
    std::vector<WorldJob> jobs = whole_nodes(10, 0s, 10h);
    jobs.push_back(job(11, 1h, 32, 1h, 1));
    CHECK(run(spec, jobs).starts.at(10)[0] == Instant(10h));
    spec.kube.volcano.overcommit_percent = 140;
    CHECK(run(spec, jobs).starts.at(10)[0] == Instant(1h));
}

TEST_CASE("With minMember below its pods a gang of Volcano's holds GPUs without running") {
    WorldSpec spec = world("volcano", 6);
    const std::vector<WorldJob> jobs = {job(1, 0s, 24, 1h), job(2, 0s, 32, 1h)};
    CHECK(run(spec, jobs).booked(Category::partial_hold) == 0s);
    spec.kube.volcano.overcommit_percent = 200;
    spec.kube.queues = {{.name = "a"}};
    spec.kinds[0].kube.min_member = 2;
    const std::vector<WorldJob> both = {job(1, 0s, 40, 1h), job(2, 0s, 40, 1h)};
    CHECK(run(spec, both).job(1).over);  // one at a time: its queue deserves no more than there is
}

// ---- Kueue ----

TEST_CASE("A cluster queue borrows what its cohort leaves, and gives it back") {
    WorldSpec spec = world("kueue", 4);
    spec.kube.queues = {{.name = "a", .cohort = "c", .quota = {{16, {}}}},
                        {.name = "b", .cohort = "c", .quota = {{16, {}}}}};
    std::vector<WorldJob> jobs = whole_nodes(4, 1min, 10h);
    jobs.push_back(job(5, 1h, 16, 1h, 1));
    const Outcome r = run(spec, jobs);
    for (JobIndex i = 0; i < 4; ++i) CHECK(r.starts.at(i)[0] == Instant(i * Duration(1min)));
    CHECK(r.starts.at(4)[0] == Instant(1h));
    CHECK(r.times("reclaimed") == std::vector{Instant(1h), Instant(1h)});
    CHECK(r.starts.at(1).size() == 1);
    REQUIRE(r.starts.at(2).size() == 2);
    CHECK(r.starts.at(2)[1] == Instant(2h));  // borrowed again

    spec.kube.kueue.reclaim_within_cohort = KueuePreemption::never;
    CHECK(run(spec, jobs).starts.at(4)[0] == Instant(10h + 1min));
    spec.kube.queues[0].quota[0].borrowing_limit = 8;
    CHECK(run(spec, jobs).starts.at(2)[0] == Instant(2min));
    CHECK(run(spec, jobs).starts.at(3)[0] == Instant(10h + 1min));  // after the other's own
    spec.kube.queues[0].cohort.clear();
    CHECK(run(spec, jobs).starts.at(2)[0] == Instant(10h));
}

TEST_CASE("Free GPUs that quotas keep from all who wait are idle") {
    for (const char* scheduler : {"volcano", "kueue"}) {
        WorldSpec spec = world(scheduler, 4);
        spec.kube.queues = {{.name = "a", .capability = 16, .quota = {{16, {}}}},
                            {.name = "b", .capability = 24, .quota = {{24, {}}}}};
        std::vector<WorldJob> jobs = {job(1, 0s, 16, 10h), job(2, 0s, 8, 1h)};
        const Outcome held = run(spec, jobs, {}, 10h);
        CHECK(held.booked(Category::gang_wait) + held.booked(Category::fragmentation) == 0s);
        CHECK(held.booked(Category::idle) == gpu_time(16, 10h));
        jobs.push_back(job(3, 0s, 24, 1h, 1));  // of a queue that may have as many
        const Outcome waits = run(spec, jobs, {}, 10h);
        CHECK(waits.booked(Category::idle) <
              gpu_time(16, 6h));  // late ones are evicted for a while
    }
}

TEST_CASE("A workload that its own queue displaces keeps its place, one that is late does not") {
    WorldSpec spec = world("kueue", 4);
    std::vector<WorldJob> jobs = {job(1, 0s, 32, 10h), job(2, 1h, 32, 5h), job(3, 2h, 32, 1h)};
    jobs[2].qos = 1;
    const Outcome r = run(spec, jobs);
    CHECK(r.starts.at(0) == std::vector{Instant(0h), Instant(3h)});
    CHECK(r.starts.at(1) == std::vector{Instant(13h)});
    CHECK(r.starts.at(2) == std::vector{Instant(2h)});

    spec.kube.queues = {{.name = "a", .quota = {{40, {}}}}};  // more than there is
    spec.kube.kueue.requeue_backoff = 0s;
    const Outcome late = run(spec, {job(1, 0s, 8, 1h), job(2, 0s, 32, 1h), job(3, 1min, 32, 1h)});
    CHECK(late.starts.at(2) == std::vector{Instant(1h)});
    CHECK(late.starts.at(1) == std::vector{Instant(2h)});
}

TEST_CASE("Kueue without block_admission admits two that deadlock, until a time-out evicts one") {
    WorldSpec spec = world("kueue", 6);
    spec.kube.queues = {{.name = "a", .quota = {{64, {}}}}};  // more than there is
    spec.kube.pod_interval = 2s;
    spec.kube.kueue.block_admission = false;
    const std::vector<WorldJob> jobs = {job(1, 0s, 32, 1h), job(2, 1s, 32, 1h)};
    const Outcome r = run(spec, jobs);
    CHECK(r.times("workload_evicted")[0] == Instant(30min));
    CHECK(r.starts.at(1)[0] == Instant(30min));
    // The first comes back after a minute, is evicted again while the second runs, and comes back after two.
    const std::vector<Instant> admitted = r.times("admitted");
    REQUIRE(admitted.size() == 4);
    CHECK(admitted[2] == Instant(31min));
    CHECK(admitted[3] == Instant(63min));
    CHECK(r.starts.at(0)[0] == Instant(90min));

    spec.kube.kueue.wait_for_pods_ready = false;
    CHECK(!run(spec, jobs).result.outcome.stuck.empty());
    spec.kube.kueue.wait_for_pods_ready = true;
    spec.kube.kueue.block_admission = true;
    const Outcome b = run(spec, jobs);
    CHECK(b.starts.at(0)[0] == Instant(6s));
    CHECK(b.booked(Category::partial_hold) < r.booked(Category::partial_hold));
}

TEST_CASE("A workload that is evicted gets no pods while its epilog runs") {
    WorldSpec spec = world("kueue", 4);
    spec.kube.queues = {{.name = "a", .quota = {{40, {}}}}};  // more than there is
    spec.kube.pod_interval = 2s;
    spec.kube.kueue.block_admission = false;
    spec.health.epilog_time = 10min;
    const Outcome r = run(spec, {job(1, 0s, 8, 22min), job(2, 0s, 32, 1h)});
    // The second lacks one pod of four until then; the node for it is free at 32 minutes.
    CHECK(r.times("workload_evicted") == std::vector{Instant(30min)});
    CHECK(r.starts.at(1)[0] == Instant(40min + 6s));
}

TEST_CASE("A workload that isn't whole half an hour after a pod was lost is evicted") {
    FailureCause cause = host_dies(600s);
    cause.reset_time = 2h;
    const Outcome r = run_with_one_death(world("kueue", 4), cause);
    const Instant death = r.times("interruption")[0];
    CHECK(r.times("evicted") == std::vector{death + 340s});
    CHECK(r.times("workload_evicted")[0] == death + 340s + 30min);
}

TEST_CASE("Pods that are required to be in one leaf are, wait for it, or are refused") {
    WorldSpec spec = world("kueue", 6);  // leaves of 2, blocks of 4
    for (std::uint32_t n = 0; n < 6; ++n) spec.places.push_back({n / 2, n / 4});
    spec.kinds[0].kube.topology = TopologyRequest::required;
    const std::vector<WorldJob> jobs = {job(1, 0s, 8, 1h), job(2, 1s, 16, 5h), job(3, 2s, 16, 4h),
                                        job(4, 3s, 16, 1h), job(5, 3s, 24, 1h)};
    const Outcome r = run(spec, jobs);
    for (JobIndex i = 1; i < 4; ++i) {
        const Allocation& nodes = r.nodes.at(i);
        REQUIRE(nodes.size() == 2);
        CHECK(nodes[0].node / 2 == nodes[1].node / 2);
    }
    CHECK(r.starts.at(3)[0] == Instant(1h));
    REQUIRE(r.result.outcome.refused.size() == 1);
    CHECK(r.result.outcome.refused[0].job == 4);
    spec.kinds[0].kube.topology_level = TopologyLevel::block;
    CHECK(run(spec, jobs).result.outcome.refused.empty());
}

TEST_CASE("Preferred pods go to one leaf if there is one, else to as few as the largest allow") {
    WorldSpec spec = world("kueue", 8);  // leaves of 2, blocks of 4
    for (std::uint32_t n = 0; n < 8; ++n) spec.places.push_back({n / 2, n / 4});
    WorldCluster cluster(spec);
    for (const NodeIndex busy : {0u, 2u, 4u}) cluster.take(busy, 0, 8, 0);
    KubeJobKind kind{.topology = TopologyRequest::preferred};
    const auto nodes = [&](std::int64_t pods) {
        std::vector<NodeIndex> out;
        const auto found =
            place_in_topology(cluster, {.size = 8, .pods = pods}, free_gpus(cluster), kind);
        if (found) {
            for (const NodeShare& share : *found) out.push_back(share.node);
        }
        std::sort(out.begin(), out.end());
        return out;
    };
    using Nodes = std::vector<NodeIndex>;
    CHECK(nodes(2) == Nodes{6, 7});
    CHECK(nodes(3) == Nodes{5, 6, 7});
    CHECK(nodes(5) == Nodes{1, 3, 5, 6, 7});
    CHECK(nodes(6).empty());
    kind.topology = TopologyRequest::required;
    CHECK(nodes(2) == Nodes{6, 7});
    CHECK(nodes(3).empty());
    kind.topology_level = TopologyLevel::block;
    CHECK(nodes(2) == Nodes{1, 3});  // the block with the least room
    CHECK(nodes(3) == Nodes{5, 6, 7});
    CHECK(nodes(4).empty());
}

TEST_CASE("Kueue replaces a dead node in the leaf that was required, or evicts the workload") {
    for (const std::uint32_t leaf : {5u, 4u}) {
        WorldSpec spec = world("kueue", 8);
        for (std::uint32_t n = 0; n < 8; ++n) spec.places.push_back({n / leaf, 0});
        spec.kinds[0].kube.topology = TopologyRequest::required;
        const Outcome r = run_with_one_death(spec, host_dies(600s));
        const Instant death = r.times("interruption")[0];
        REQUIRE(r.starts.at(0).size() == 2);
        if (leaf == 5) {
            CHECK(r.times("node_replaced") == std::vector{death + 40s});
            CHECK(r.starts.at(0)[1] == death + 600s);
        } else {
            CHECK(r.times("workload_evicted") == std::vector{death + 40s});
            CHECK(r.starts.at(0)[1] == death + 40s + 60s);
        }
    }
}

// ---- all ----

TEST_CASE("No GPU is ever in two jobs, and all jobs come to an end, under whatever scheduler") {
    for (const WorldSchedulerKind& kind : world_scheduler_kinds()) {
        for (std::uint64_t seed = 1; seed <= 4; ++seed) {
            CAPTURE(kind.name);
            CAPTURE(seed);
            WorldSpec spec = world(kind.name, 12);
            spec.health.prolog = seed % 2 == 0;
            spec.health.prolog_time = seed % 2 == 0 ? 20s : 0s;
            spec.health.epilog_time = seed % 3 == 0 ? 30s : 0s;
            spec.kube.pod_interval = seed % 2 == 0 ? 50ms : 0s;
            spec.kube.backoff_limit = 1000;
            for (std::uint32_t n = 0; n < 12; ++n) spec.places.push_back({n / 3, n / 6});
            spec.kube.queues = {{.name = "a", .weight = 2, .cohort = "c", .quota = {{64, {}}}},
                                {.name = "b", .cohort = "c", .quota = {{32, {}}}}};
            spec.kinds.push_back({.name = "near"});
            spec.kinds[1].kube.topology =
                seed % 2 == 0 ? TopologyRequest::preferred : TopologyRequest::required;
            spec.kinds[0].checkpoint_interval = spec.kinds[1].checkpoint_interval = 10min;
            RandomStream random(seed, 0, "stream");
            std::vector<WorldJob> jobs;
            Duration at{};
            for (std::int64_t i = 0; i < 200; ++i) {
                at += from_seconds(random.uniform() * 600);
                const auto gpus = static_cast<std::int64_t>(1 + random.uniform() * 23);
                jobs.push_back(
                    job(i + 1, at, gpus, from_seconds(60 + random.uniform() * 7200), i % 2));
                jobs.back().kind = i % 3 == 0 ? 1 : 0;
                jobs.back().qos = i % 5 == 0 ? 1 : 0;
                jobs.back().gpus_per_pod = std::min<std::int64_t>(gpus, i % 4 == 0 ? 2 : 8);
            }
            FailureCause dies = host_dies(300s);
            dies.reset_time = 2h;
            FailureCause breaks = dies;
            breaks.name = "gpu";
            breaks.silences = false;
            breaks.detection = 30s;
            const Outcome r = run(spec, jobs, {dies, breaks}, 300h, seed);
            CHECK(r.starts.size() > 100);
            if (kind.name == std::string("kubernetes")) continue;  // whose jobs may wait for ever
            for (const WorldJobRun& one : r.result.outcome.runs) CHECK(one.over);
        }
    }
}

TEST_CASE("A job that can never run is refused with the reason, whatever is asked") {
    for (const char* name : {"kubernetes", "volcano", "kueue"}) {
        CAPTURE(name);
        WorldJob wide = job(2, 0s, 16, 1h);
        wide.gpus_per_pod = 16;
        const Outcome r = run(world(name, 4), {job(1, 0s, 40, 1h), wide, job(3, 0s, 32, 1h)});
        REQUIRE(r.result.outcome.refused.size() == 2);
        CHECK(r.result.outcome.refused[0].reason ==
              "wants 40 GPUs in pods of 8; partition all has no room for them even when empty");
        CHECK(r.result.outcome.refused[1].reason ==
              "wants 16 GPUs on a node; the nodes of partition all have 8");
        CHECK(r.job(2).over);
    }
    const auto reason = [](const WorldSpec& spec) {
        const Outcome r = run(spec, {job(1, 0s, 24, 1h)});
        REQUIRE(r.result.outcome.refused.size() == 1);
        return r.result.outcome.refused[0].reason;
    };
    WorldSpec spec = world("kueue", 4);
    spec.kube.queues[0].quota = {{16, {}}};
    CHECK(reason(spec) ==
          "wants 24 GPUs; a workload of cluster queue default gets 16 at most, with what it may "
          "borrow");
    spec = world("volcano", 4);
    spec.kube.queues[0].capability = 16;
    CHECK(reason(spec) == "wants 24 GPUs; all jobs of queue default together get 16 at most");
    spec.kube.queues[0].capability = 0;
    spec.kinds[0].kube.min_member = 4;
    CHECK(reason(spec) == "has 3 pods, and wants 4 of them together (min_member)");
}
