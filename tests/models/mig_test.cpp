// GPUs cut into slices: what fits, what is stranded, and that no slice is in two instances.

#include "models/scheduler/mig.h"

#include <doctest/doctest.h>

#include <map>

#include "tests/models/small_world.h"

using namespace railyard;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""h;

namespace {

// Places in mig_profiles().
constexpr ProfileIndex one = 0, one_with_two = 1, two = 2, three = 3, four = 4, seven = 5;
const MigSpec as_they_come{};
const MigSpec first_place{.placement = MigPlacement::first};
constexpr Bytes memory_80 = Bytes::of(80'000'000'000);

WorldSpec cut_world(std::int64_t nodes, std::int64_t gpus, const MigSpec& mig) {
    WorldSpec spec = world_of(
        {{"cut", nodes, gpus, {.kind = "h100_sxm", .memory = memory_80}, mig}}, "kubernetes");
    for (const std::string& name : mig_names(memory_80)) {
        kind_that_asks(spec, {.slice = name}, name);
    }
    spec.groups[0].list_slices();
    return spec;
}

WorldJob job(std::int64_t id, ProfileIndex profile, Duration submit, Duration work) {
    WorldJob out = world_job(id, submit, 1, work, 5000h);
    out.kind = profile;
    return out;
}

WorldRunResult run(const WorldSpec& spec, const std::vector<WorldJob>& jobs,
                   const std::vector<FailureCause>& causes = {}, Duration end = {}) {
    const WorldJobs all{jobs};
    WorldRun world_run{.spec = spec, .jobs = all, .causes = causes};
    if (end > Duration{}) world_run.end = Instant(end);
    world_run.events_max = 1'000'000;
    const WorldRunResult result = run_world(world_run);
    CHECK(result.ended != CampaignEngine::Outcome::limit);
    return result;
}

GpuNanoseconds sevenths(std::int64_t slices, Duration time) {
    return GpuNanoseconds{slices} * time.count();
}

}  // namespace

TEST_CASE("Profiles have the names that NVIDIA gives them") {
    using Names = std::vector<std::string>;
    const auto of = [](std::int64_t gigabytes) {
        return mig_names(Bytes::of(gigabytes * 1'000'000'000));
    };
    CHECK(of(40) == Names{"1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"});
    CHECK(of(80) == Names{"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"});
    CHECK(of(141) == Names{"1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"});
    CHECK(mig_compute_of("3g.40gb") == 3);
}

TEST_CASE("The layouts of NVIDIA's table fit, and others do not") {
    const auto fits = [](const std::vector<ProfileIndex>& profiles) {
        return mig_layout(profiles).has_value();
    };
    CHECK(fits({seven}));
    CHECK(fits({four, three}));
    CHECK(fits({four, two, one}));
    CHECK(fits({four, one, one, one}));
    CHECK(fits({three, three}));
    CHECK(fits({three, two, one}));
    CHECK(fits({three, one, one, one}));
    CHECK(fits({two, two, two, one}));
    CHECK(fits({two, two, three}));
    CHECK(fits({one, one, one, one, one, one, one}));
    CHECK(fits({one_with_two, one_with_two, one_with_two, one_with_two}));
    CHECK_FALSE(fits({four, four}));
    CHECK_FALSE(fits({four, two, two}));
    CHECK_FALSE(fits({three, three, one}));
    CHECK_FALSE(fits({two, two, two, two}));
    CHECK_FALSE(fits({seven, one}));
    CHECK_FALSE(fits(std::vector<ProfileIndex>(8, one)));
}

TEST_CASE(
    "A 3g at the first place keeps a 4g out and strands a slice; at the best it does neither") {
    MigGpus first(1, first_place);
    first.take(three, 1);
    CHECK(first.room(four) == 0);
    CHECK(first.stranded() == 1);
    CHECK(first.free() == 3);
    MigGpus best(1, as_they_come);
    best.take(three, 1);
    CHECK(best.room(four) == 1);
    CHECK(best.stranded() == 0);
    best.take(four, 2);
    CHECK(best.free() == 0);
    best.give_back(1);
    CHECK(best.room(three) == 1);
    CHECK(best.room(one) == 3);
    CHECK(best.room(two) == 1);
}

TEST_CASE("A GPU takes 4g and three 1g without waste, two 3g with a slice of it") {
    MigGpus gpu(1, as_they_come);
    gpu.take(four, 1);
    for (const std::uint32_t owner : {2U, 3U, 4U}) gpu.take(one, owner);
    CHECK(gpu.free() == 0);
    CHECK(gpu.stranded() == 0);
    MigGpus pair(1, as_they_come);
    pair.take(three, 1);
    pair.take(three, 2);
    CHECK(pair.free() == 0);
    CHECK(pair.stranded() == 1);
    for (ProfileIndex p = one; p <= seven; ++p) CHECK(pair.room(p) == 0);
}

TEST_CASE("Held, stranded and free slices are seven a GPU, and memory is in one instance at most") {
    for (const MigSpec& spec :
         {as_they_come, first_place, MigSpec{.layout = *mig_layout({three, two, one})}}) {
        MigGpus gpus(4, spec);
        RandomStream random(7, 0, "mig");
        std::map<std::uint32_t, ProfileIndex> held;
        for (std::uint32_t step = 0; step < 2000; ++step) {
            const auto profile = static_cast<ProfileIndex>(random.uniform() * 6);
            if (random.uniform() < 0.6 && gpus.room(profile) > 0) {
                gpus.take(profile, step);
                held[step] = profile;
            } else if (!held.empty()) {
                gpus.give_back(held.begin()->first);
                held.erase(held.begin());
            }
            std::int64_t compute = 0;
            std::int64_t memory = 0;
            for (const auto& [owner, p] : held) {
                compute += mig_profiles()[p].compute;
                memory += mig_profiles()[p].memory;
            }
            REQUIRE(memory <= 4 * mig_memory_slices);
            REQUIRE(compute + gpus.stranded() + gpus.free() == 4 * mig_compute_slices);
            // Whatever is free and not cut is within reach of the smallest.
            if (spec.layout.empty()) REQUIRE(gpus.room(one) == gpus.free());
        }
    }
}

TEST_CASE("The ledger books what slices do, in sevenths, and what they strand as fragmentation") {
    const WorldSpec spec = cut_world(1, 1, as_they_come);
    const WorldRunResult r = run(spec, {job(1, three, 0s, 2h), job(2, three, 0s, 2h)});
    CHECK(r.simulated == 2h);
    CHECK(r.ledger.total() == sevenths(7, 2h));
    CHECK(r.ledger.booked(Category::productive) == sevenths(6, 2h));
    CHECK(r.ledger.booked(Category::fragmentation) == sevenths(1, 2h));
    CHECK(r.outcome.stranded == sevenths(1, 2h));
}

TEST_CASE("Free slices of the wrong shape are the fragmentation of a job that waits for its own") {
    // Cut in 4g, 2g and 1g beforehand: the second 4g waits for the first, beside three free slices.
    WorldSpec spec = cut_world(1, 1, {.layout = *mig_layout({four, two, one})});
    const WorldRunResult few = run(spec, {job(1, four, 0s, 1h), job(2, four, 0s, 1h)});
    CHECK(few.simulated == 2h);
    CHECK(few.ledger.booked(Category::gang_wait) == sevenths(3, 1h));
    CHECK(few.ledger.booked(Category::idle) == sevenths(3, 1h));
    CHECK(few.outcome.stranded == 0);
    // Two GPUs: six free slices would do for a 4g, in two pieces.
    spec = cut_world(1, 2, {.layout = *mig_layout({four, two, one})});
    const WorldRunResult enough =
        run(spec, {job(1, four, 0s, 1h), job(2, four, 0s, 1h), job(3, four, 0s, 1h)});
    CHECK(enough.ledger.booked(Category::fragmentation) == sevenths(6, 1h));
}

TEST_CASE("A layout strands what it leaves out; jobs get just their profile, or are refused") {
    const WorldSpec spec = cut_world(1, 2, {.layout = *mig_layout({three, two})});
    const WorldRunResult r =
        run(spec, {job(1, two, 0s, 3h), job(2, four, 0s, 1h), job(3, one, 0s, 1h)});
    CHECK(r.outcome.stranded == sevenths(4, 3h));
    WorldJob pair = job(4, two, 0s, 1h);
    pair.gpus = 2;
    CHECK(run(spec, {pair}).outcome.refused[0].reason == "wants 2 slices; a job has one");
    REQUIRE(r.outcome.refused.size() == 2);
    CHECK(r.outcome.refused[0].reason ==
          "requires a slice 4g.40gb; no node of partition all has that: nearest is group cut, "
          "h100_sxm with slices 3g.40gb, 2g.20gb");
}

TEST_CASE(
    "Where 3g comes before 4g, the best place runs both at once, the first one after another") {
    for (const bool best : {true, false}) {
        const WorldSpec spec = cut_world(1, 1, best ? as_they_come : first_place);
        const WorldRunResult r = run(spec, {job(1, three, 0s, 1h), job(2, four, 0s, 1h)});
        CHECK(r.simulated == (best ? 1h : 2h));
    }
}

TEST_CASE("Cut nodes that fail give back each slice once, whoever held them") {
    WorldSpec spec = cut_world(6, 4, as_they_come);
    spec.kube.backoff_limit = 1000;
    for (WorldJobKind& kind : spec.kinds) kind.checkpoint_interval = 600s;
    FailureCause dies;
    dies.name = "host";
    dies.rate_per_node = Rate{1.0 / seconds(Duration(30h))};
    dies.detection = 60s;
    dies.remedy = Remedy::reset;
    dies.reset_time = 2h;
    dies.silences = true;
    RandomStream random(3, 0, "stream");
    std::vector<WorldJob> jobs;
    Duration at{};
    for (std::int64_t i = 0; i < 1500; ++i) {
        at += from_seconds(random.uniform() * 200);
        const auto profile = static_cast<ProfileIndex>(random.uniform() * 6);
        jobs.push_back(job(i + 1, profile, at, from_seconds(600 + random.uniform() * 14400)));
    }
    const WorldRunResult r = run(spec, jobs, {dies}, 300h);  // the ledger's sum is checked in it
    for (const WorldJobRun& one_run : r.outcome.runs) CHECK(one_run.over);
    CHECK(r.outcome.interruptions[0] > 50);
    CHECK(r.outcome.stranded > 0);
}
