// Clusters of several kinds of GPUs: who gets which, by what a job asks of them.

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/models/quantities.h"
#include "tests/models/small_world.h"

using namespace railyard;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""h;

namespace {

const GpuAttributes a100{
    .kind = "a100_sxm_40", .memory = gigabytes(40), .nvlink_domain = 8, .compute_capability10 = 80};
const GpuAttributes h100_pcie{
    .kind = "h100_pcie", .memory = gigabytes(80), .nvlink_domain = 2, .compute_capability10 = 90};
const GpuAttributes h100{
    .kind = "h100_sxm", .memory = gigabytes(80), .nvlink_domain = 8, .compute_capability10 = 90};

// Nodes 0 and 1 of A100s, 2 and 3 of H100s on PCIe, 4 and 5 of H100s with NVLink, behind one partition.
WorldSpec mixed(const std::string& scheduler) {
    return world_of({{"old", 2, 8, a100}, {"cards", 2, 8, h100_pcie}, {"new", 2, 8, h100}},
                    scheduler);
}

WorldJob job(std::int64_t id, std::uint32_t kind, std::int64_t gpus, Duration work) {
    WorldJob out = world_job(id, {}, gpus, work, 5000h);
    out.kind = kind;
    return out;
}

class Watcher : public WorldListener {
  public:
    void started(JobIndex job, Instant now, const Allocation& gpus) override {
        at[job] = now;
        nodes[job] = gpus;
    }
    void stopped(JobIndex, Instant) override {}
    void promised(JobIndex, Instant, Instant) override {}
    std::map<JobIndex, Instant> at;
    std::map<JobIndex, Allocation> nodes;
};

WorldRunResult run(const WorldSpec& spec, const std::vector<WorldJob>& jobs, Watcher& watcher,
                   Duration end = {}) {
    const WorldJobs all{jobs};
    const std::vector<FailureCause> none;
    WorldRun world_run{.spec = spec, .jobs = all, .causes = none};
    if (end > Duration{}) world_run.end = Instant(end);
    world_run.events_max = 100'000;
    world_run.listeners = {&watcher};
    return run_world(world_run);
}

std::vector<const char*> schedulers() {
    std::vector<const char*> out;
    for (const WorldSchedulerKind& kind : world_scheduler_kinds()) out.push_back(kind.name);
    return out;
}

}  // namespace

TEST_CASE("GPUs meet a request, or lack so many things of it, and say which") {
    const GpuRequest request{.memory = gigabytes(80), .nvlink_domain = 8};
    CHECK(count_unmet({}, a100) == 0);
    CHECK(count_unmet(request, h100) == 0);
    CHECK(count_unmet(request, h100_pcie) == 1);
    CHECK(count_unmet(request, a100) == 1);
    CHECK(count_unmet({.kind = "h100_sxm", .compute_capability10 = 100}, a100) == 2);
    CHECK(describe(request) == "at least 80 GB of GPU memory and NVLink among 8 GPUs");
    CHECK(describe_unmet(request, h100_pcie) == "NVLink among 2");
    CHECK(describe_unmet({.compute_capability10 = 103}, h100) == "compute capability 9.0");
}

TEST_CASE("Jobs that ask for 80 GB and NVLink get such GPUs alone, and wait for them") {
    for (const char* scheduler : schedulers()) {
        CAPTURE(scheduler);
        WorldSpec spec = mixed(scheduler);
        const std::uint32_t picky =
            kind_that_asks(spec, {.memory = gigabytes(80), .nvlink_domain = 8});
        const std::uint32_t large = kind_that_asks(spec, {.memory = gigabytes(80)});
        Watcher w;
        run(spec,
            {job(1, picky, 8, 2h), job(2, picky, 8, 2h), job(3, picky, 8, 2h),
             job(4, large, 16, 1h)},
            w);
        REQUIRE(w.nodes.size() == 4);
        for (const JobIndex j : {0U, 1U, 2U}) CHECK(w.nodes[j].front().node >= 4);
        for (const NodeShare& share : w.nodes[3]) CHECK(share.node >= 2);
        CHECK(w.at[0] == w.at[1]);
        CHECK(w.at[2] - w.at[0] >= 2h);  // though 16 A100s were free all along
        CHECK(w.at[2] - w.at[0] < 2h + 2s);
    }
}

TEST_CASE("A request that no pool meets is refused, with the nearest") {
    for (const char* scheduler : schedulers()) {
        CAPTURE(scheduler);
        WorldSpec spec = mixed(scheduler);
        spec.partitions = {{.name = "some", .nodes = 4}, {.name = "all", .nodes = 6}};
        const std::uint32_t nowhere =
            kind_that_asks(spec, {.memory = gigabytes(141), .nvlink_domain = 8});
        const std::uint32_t elsewhere = kind_that_asks(spec, {.kind = "h100_sxm"});
        std::vector<WorldJob> jobs = {job(1, nowhere, 8, 1h), job(2, elsewhere, 8, 1h),
                                      job(3, elsewhere, 8, 1h)};
        jobs[0].partition = jobs[2].partition = 1;
        Watcher w;
        const WorldRunResult r = run(spec, jobs, w);
        REQUIRE(r.outcome.refused.size() == 2);
        CHECK(
            r.outcome.refused[0].reason ==
            "requires at least 141 GB of GPU memory and NVLink among 8 GPUs; no node of partition "
            "all has that: nearest is group old, a100_sxm_40 with 40 GB of GPU memory");
        CHECK(r.outcome.refused[1].reason ==
              "requires h100_sxm; no node of partition some has that: nearest is group old, "
              "a100_sxm_40 with a100_sxm_40; group new has it");
        CHECK(w.nodes.size() == 1);
    }
}

TEST_CASE("A job that asks for more GPUs of a kind than there are is refused") {
    for (const char* scheduler : schedulers()) {
        CAPTURE(scheduler);
        WorldSpec spec = mixed(scheduler);
        const std::uint32_t picky = kind_that_asks(spec, {.kind = "h100_sxm"});
        Watcher w;
        const WorldRunResult r = run(spec, {job(1, picky, 24, 1h), job(2, picky, 16, 1h)}, w);
        CHECK(r.outcome.refused.size() == 1);
        CHECK(w.nodes.size() == 1);
    }
}

TEST_CASE("Free GPUs that the first of the queue may not have are not its fragmentation") {
    WorldSpec spec = mixed("slurm");
    const std::uint32_t picky = kind_that_asks(spec, {.kind = "h100_sxm"});
    Watcher w;
    const WorldRunResult r = run(spec, {job(1, picky, 16, 2h), job(2, picky, 8, 1h)}, w);
    CHECK(r.ledger.booked(Category::fragmentation) == 0);
    // 32 others wait with it for 2 h, then 40 are idle for the hour in which it runs.
    CHECK(r.ledger.booked(Category::gang_wait) == GpuNanoseconds{32} * Duration(2h).count());
    CHECK(r.ledger.booked(Category::idle) == GpuNanoseconds{40} * Duration(1h).count());
}
