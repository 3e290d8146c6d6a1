// Slices under every scheduler: each profile is a resource of its own, counted, shared out and lent alone.

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "tests/models/small_world.h"

using namespace railyard;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""h;

namespace {

constexpr std::uint32_t one = 0, two = 2, three = 3, four = 4, whole = 6;  // kinds of jobs
constexpr ProfileIndex g1 = 0, g2 = 2, g3 = 3, g4 = 4;                     // of mig_profiles()
const std::vector<std::string> kinds_of_scheduler = {"slurm", "kubernetes", "volcano", "kueue"};

MigSpec cut(const std::vector<ProfileIndex>& profiles) {
    return {.layout = *mig_layout(profiles)};
}

// `nodes` of 8 GPUs that are cut, and one whose GPUs are whole.
WorldSpec world(const std::string& scheduler, const MigSpec& mig, std::int64_t nodes = 1,
                std::int64_t gpus = 8) {
    const Bytes memory = Bytes::of(80'000'000'000);
    WorldSpec spec = world_of({{"cut", nodes, gpus, {.kind = "h100_sxm", .memory = memory}, mig},
                               {"whole", 1, 8, {.kind = "h100_sxm", .memory = memory}}},
                              scheduler);
    spec.groups[0].list_slices();
    spec.slurm.qos = {{.name = "normal"}, {.name = "high", .priority = 5, .preempts = {0}}};
    spec.slurm.priority.qos = 1;
    for (const std::string& name : mig_names(memory)) {
        kind_that_asks(spec, {.slice = name}, name);
    }
    spec.kinds.push_back({.name = "whole"});
    return spec;
}

WorldJob job(std::int64_t id, std::uint32_t kind, Duration submit, Duration work,
             std::uint32_t queue = 0) {
    WorldJob out = world_job(id, submit, 1, work, work);
    out.kind = kind;
    out.queue = queue;
    return out;
}

// Counts, at every start, what runs of each profile.
class Counter : public WorldListener {
  public:
    explicit Counter(const std::vector<WorldJob>& jobs) : jobs_(jobs) {}
    void started(JobIndex job, Instant now, const Allocation&) override {
        starts[job].push_back(now);
        std::int64_t& count = running_[jobs_[job].kind];
        most[jobs_[job].kind] = std::max(most[jobs_[job].kind], ++count);
    }
    void stopped(JobIndex job, Instant) override { --running_[jobs_[job].kind]; }
    void promised(JobIndex, Instant, Instant) override {}

    std::map<JobIndex, std::vector<Instant>> starts;
    std::map<std::uint32_t, std::int64_t> most;  // at once, by kind

  private:
    const std::vector<WorldJob>& jobs_;
    std::map<std::uint32_t, std::int64_t> running_;
};

struct Outcome {
    WorldRunResult result;
    Counter counter;
    Duration start(JobIndex job) const { return counter.starts.at(job)[0].time_since_epoch(); }
    std::size_t starts(JobIndex job) const { return counter.starts.at(job).size(); }
};

Outcome run(const WorldSpec& spec, const std::vector<WorldJob>& jobs, Duration end = {},
            const std::vector<FailureCause>& causes = {}) {
    const WorldJobs all{jobs};
    Outcome out{{}, Counter(all.jobs)};
    WorldRun world_run{.spec = spec, .jobs = all, .causes = causes};
    if (end > Duration{}) world_run.end = Instant(end);
    world_run.events_max = 1'000'000;
    world_run.listeners = {&out.counter};
    out.result = run_world(world_run);
    CHECK(out.result.ended != CampaignEngine::Outcome::limit);
    return {std::move(out.result), out.counter};
}

}  // namespace

TEST_CASE(
    "A job waits for its own profile alone, whatever is free of others, and keeps nobody else") {
    for (const std::string& scheduler : kinds_of_scheduler) {
        CAPTURE(scheduler);
        // Two of 4g, 2g and 1g each. Under Slurm who stands behind the third 4g waits for backfill.
        const WorldSpec spec = world(scheduler, cut({g4, g2, g1}), 1, 2);
        const Outcome r =
            run(spec, {job(1, four, 0s, 1h), job(2, four, 0s, 2h), job(3, four, 0s, 1h),
                       job(4, two, 0s, 5h), job(5, one, 0s, 5h), job(6, one, 0s, 6h),
                       job(7, one, 0s, 1h), job(8, whole, 0s, 1h)});
        const Duration behind = scheduler == "slurm" ? 30s : 0s;
        CHECK(r.start(0) == 0s);
        CHECK(r.start(1) == 0s);
        CHECK(r.start(2) == 1h);
        CHECK(r.start(3) <= behind);
        CHECK(r.start(4) <= behind);
        CHECK(r.start(5) <= behind);
        CHECK(r.start(6) >= 5h);
        CHECK(r.start(6) <= 5h + 1min);
        CHECK(r.start(7) <= behind);
        CHECK(r.counter.most ==
              std::map<std::uint32_t, std::int64_t>{{one, 2}, {two, 1}, {four, 2}, {whole, 1}});
    }
}

TEST_CASE("Every scheduler books what a layout strands alike") {
    for (const std::string& scheduler : kinds_of_scheduler) {
        CAPTURE(scheduler);
        const WorldSpec spec = world(scheduler, cut({g3, g2}), 1, 2);
        const Outcome r = run(spec, {job(1, two, 0s, 3h), job(2, three, 0s, 2h)}, 3h);
        CHECK(r.result.outcome.stranded == GpuNanoseconds{4} * Duration(3h).count());
        CHECK(r.result.ledger.booked(Category::productive) ==
              GpuNanoseconds{2 * 3 + 3 * 2} * Duration(1h).count());
        CHECK(r.result.ledger.booked(Category::fragmentation) ==
              GpuNanoseconds{4} * Duration(3h).count());
    }
}

TEST_CASE("As jobs come, 3g and 4g share a GPU under Volcano and Kueue as under Kubernetes") {
    for (const std::string& scheduler : kinds_of_scheduler) {
        if (scheduler == "slurm") continue;  // takes what is cut beforehand
        CAPTURE(scheduler);
        for (const MigPlacement placement : {MigPlacement::best, MigPlacement::first}) {
            const WorldSpec spec = world(scheduler, {.placement = placement}, 1, 1);
            const Outcome r = run(spec, {job(1, three, 0s, 1h), job(2, four, 0s, 1h)});
            CHECK(r.start(1) == (placement == MigPlacement::best ? 0s : 1h));
            CHECK(r.result.outcome.stranded ==
                  (placement == MigPlacement::best ? 0 : GpuNanoseconds{1} * Duration(1h).count()));
        }
    }
}

TEST_CASE(
    "Slurm plans each profile by itself: who waits for one is delayed by nobody with another") {
    // One 3g, which is taken for two hours; the next wants it then. 1g and 2g that run for longer are
    // backfilled, a 3g is not.
    const WorldSpec spec = world("slurm", cut({g3, g2, g1}), 1, 1);
    const Outcome r = run(spec, {job(1, three, 0s, 2h), job(2, three, 1s, 1h), job(3, one, 2s, 9h),
                                 job(4, three, 3s, 1h), job(5, two, 4s, 9h)});
    CHECK(r.start(1) == 2h);
    CHECK(r.start(2) == 30s);
    CHECK(r.start(3) == 3h);
    CHECK(r.start(4) == 30s);
}

TEST_CASE("Who displaces somebody for a slice displaces one of the same profile") {
    for (const std::string scheduler : {"slurm", "volcano", "kueue"}) {
        CAPTURE(scheduler);
        WorldSpec spec = world(scheduler, cut({g4, g2, g1}), 1, 1);
        spec.kube.volcano.overcommit_percent =
            200;  // else a second job isn't let in beside the one slice
        std::vector<WorldJob> jobs = {job(1, four, 0s, 9h), job(2, two, 1min, 9h),
                                      job(3, one, 2min, 9h), job(4, two, 1h, 1h)};
        jobs.back().qos = 1;
        const Outcome r = run(spec, jobs, 20h);
        CHECK(r.start(3) == 1h);
        CHECK(r.starts(0) == 1);
        CHECK(r.starts(1) == 2);
        CHECK(r.starts(2) == 1);
    }
}

TEST_CASE("Volcano's queues have parts of slices by weight, and of whole GPUs besides") {
    // 56 slices and 8 GPUs: of the slices both want more than there are, of the GPUs only b.
    WorldSpec spec = world("volcano", cut({g1, g1, g1, g1, g1, g1, g1}));
    spec.kube.queues = {{.name = "a", .weight = 3}, {.name = "b", .weight = 1}};
    std::vector<WorldJob> jobs;
    for (std::int64_t i = 0; i < 3000; ++i) {
        const auto queue = static_cast<std::uint32_t>(i % 2);
        jobs.push_back(job(i + 1, one, 0s, 1h + (i % 7) * Duration(1min), queue));
    }
    for (std::int64_t i = 0; i < 200; ++i) jobs.push_back(job(4000 + i, whole, 0s, 1h, 1));
    const Outcome r = run(spec, jobs, 20h);
    double held[3] = {};
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        held[jobs[i].kind == whole ? 2 : jobs[i].queue] +=
            seconds(r.result.outcome.runs[i].held) / 3600;
    }
    CHECK(held[0] / held[1] == doctest::Approx(3.0).epsilon(0.05));
    CHECK(held[0] + held[1] == doctest::Approx(56 * 20).epsilon(0.02));
    CHECK(held[2] == doctest::Approx(8 * 20).epsilon(0.01));
}

TEST_CASE("A queue's capability in slices bounds these, and nothing else") {
    WorldSpec spec = world("volcano", cut({g4, g1, g1, g1}));
    spec.kube.queues = {{.name = "a", .capability = 2, .slice_capability = {{"1g.10gb", 5}}}};
    std::vector<WorldJob> jobs;
    for (std::int64_t i = 0; i < 30; ++i) {
        for (const std::uint32_t kind : {one, four, whole}) {
            jobs.push_back(job(3 * i + kind, kind, 0s, 1h));
        }
    }
    const Outcome r = run(spec, jobs, 10h);
    CHECK(r.counter.most == std::map<std::uint32_t, std::int64_t>{{one, 5}, {four, 8}, {whole, 2}});
}

TEST_CASE("A cluster queue borrows slices of one profile, and gives these back") {
    WorldSpec spec = world("kueue", cut({g4, g1, g1, g1}), 1, 2);  // two 4g, six 1g
    KubeQueue queue{.name = "a", .cohort = "c"};
    queue.quota = {{0, {}}, {4, {}}};
    queue.slices = {{"1g.10gb", {{3, {}}, {}}}, {"4g.40gb", {{1, {}}, {}}}};
    spec.kube.queues = {queue, queue};
    spec.kube.queues[1].name = "b";
    std::vector<WorldJob> jobs;
    for (std::int64_t i = 0; i < 6; ++i) jobs.push_back(job(i + 1, one, i * Duration(1min), 9h));
    jobs.push_back(job(7, four, 10min, 9h));
    jobs.push_back(job(8, one, 1h, 1h, 1));
    jobs.push_back(job(9, one, 1h, 1h, 1));
    jobs.push_back(job(10, two, 1h, 1h, 1));
    const Outcome r = run(spec, jobs, 30h);
    for (JobIndex i = 0; i < 6; ++i) CHECK(r.start(i) == i * Duration(1min));
    CHECK(r.start(7) == 1h);
    CHECK(r.start(8) == 1h);
    for (JobIndex i = 0; i < 4; ++i) CHECK(r.starts(i) == 1);
    CHECK(r.starts(4) == 2);  // the last two that were borrowed for
    CHECK(r.starts(5) == 2);
    CHECK(r.starts(6) == 1);
    REQUIRE(r.result.outcome.refused.size() == 1);
    CHECK(r.result.outcome.refused[0].job == 9);

    spec.kube.queues[0].slices[0].quota[0].borrowing_limit = 1;
    CHECK(run(spec, jobs, 30h).counter.starts.at(4)[0] >= Instant(9h));
    jobs.resize(7);
    jobs.push_back(job(8, two, 1h, 1h, 1));
    spec.groups[0].mig = cut({g4, g2, g1});
    spec.groups[0].list_slices();
    CHECK(run(spec, jobs, 30h).result.outcome.refused[0].reason ==
          "wants a slice 2g.20gb; a workload of cluster queue b gets 0 at most, with what it may "
          "borrow");
}

TEST_CASE("No scheduler gives out more slices than there are, on nodes that die") {
    FailureCause dies;
    dies.name = "host";
    dies.rate_per_node = Rate{1.0 / seconds(Duration(40h))};
    dies.detection = 60s;
    dies.remedy = Remedy::reset;
    dies.reset_time = 2h;
    dies.silences = true;
    for (const std::string& scheduler : kinds_of_scheduler) {
        for (const bool beforehand : {true, false}) {
            if (scheduler == "slurm" && !beforehand) continue;
            CAPTURE(scheduler);
            CAPTURE(beforehand);
            // Each GPU is cut into 4g, 2g, 1g.
            WorldSpec spec = world(scheduler, beforehand ? cut({g4, g2, g1}) : MigSpec{}, 5, 4);
            spec.kube.backoff_limit = 1000;
            for (WorldJobKind& kind : spec.kinds) kind.checkpoint_interval = 600s;
            RandomStream random(5, 0, "stream");
            std::vector<WorldJob> jobs;
            Duration at{};
            for (std::int64_t i = 0; i < 1200; ++i) {
                at += from_seconds(random.uniform() * 300);
                const std::uint32_t kinds[] = {one, two, four, whole};
                const auto kind = kinds[static_cast<std::size_t>(random.uniform() * 4)];
                jobs.push_back(job(i + 1, kind, at, from_seconds(600 + random.uniform() * 14400)));
                jobs.back().limit = 5000h;
                jobs.back().qos = random.uniform() < 0.1 ? 1 : 0;
            }
            const Outcome r = run(spec, jobs, 400h, {dies});  // the ledger's sum is checked in it
            for (const WorldJobRun& one_run : r.result.outcome.runs) CHECK(one_run.over);
            CHECK(r.result.outcome.interruptions[0] > 20);
            CHECK(r.counter.most.at(whole) <= 8);
            if (!beforehand) continue;
            CHECK(r.result.outcome.stranded == 0);
            for (const std::uint32_t kind : {one, two, four}) CHECK(r.counter.most.at(kind) == 20);
        }
    }
}
