// One job, struck by hand: where its time goes, to the second.

#include "models/training/job.h"

#include <doctest/doctest.h>

using namespace railyard;

namespace {

using std::chrono_literals::operator""s;

constexpr Bandwidth gigabyte_per_s = Bandwidth::bits_per_second(8'000'000'000);

// One GPU that steps for 10 s. Each step is followed by a synchronous checkpoint of 100 s to the place given,
// which is read back as long.
struct Site {
    enum Cause : std::size_t { crash, storm };
    CampaignEngine engine;
    StoreService stores{engine};
    JobSpec spec;
    std::vector<FailureCause> causes{2};
    Ledger ledger;
    NodePool::Spec nodes;
    std::optional<NodePool> pool;
    std::optional<TrainingJob> job;

    explicit Site(Place place) {
        stores.add_store("storage", {gigabyte_per_s, gigabyte_per_s});
        causes[storm].storm = {50s, false, true};
        spec.nodes = spec.gpus_per_node = 1;
        nodes.nodes = nodes.job_nodes = nodes.gpus_per_node = 1;
        spec.step.compute = 10s;
        spec.network = {gigabyte_per_s * std::int64_t{10}, gigabyte_per_s * std::int64_t{10}};
        spec.checkpoint.interval_steps = 1;
        spec.checkpoint.size = Bytes::of(100'000'000'000);
        spec.checkpoint.snapshot = 1s;
        TierSpec& tier = spec.checkpoint.tiers.emplace_back();
        tier.place = place;
        tier.write_time = tier.read_time = 100s;
        tier.read.direction = Direction::read;
        tier.write.cap = tier.read.cap = spec.network.read;
    }
    void begin() {
        pool.emplace(engine, nodes, causes, ledger, 1, 0);
        job.emplace(engine, spec, causes, *pool, stores, ledger, nullptr);
        job->begin();
    }
    void strike_at(std::int64_t t, Cause cause) {
        run_until(t);
        job->strike({cause});
    }
    void run_until(std::int64_t t) { engine.run(Instant(std::chrono::seconds(t))); }
    double booked(Category category) const {
        return static_cast<double>(ledger.booked(category)) * 1e-9;
    }
};

}  // namespace

TEST_CASE("of open steps the oldest are kept and the newest are lost, in runs that are alike") {
    StepTime quick;
    quick.compute = 1s;
    StepTime slow = quick;
    slow.degraded = 2s;
    OpenSteps<int> open;
    open.add(3, 8, quick);
    open.add(2, 8, quick);
    open.add(4, 8, slow);
    open.add(1, 4, slow);
    Duration kept{};
    open.take_oldest(6, [&](const OpenSteps<int>::Done& done) { kept += done.time(); });
    CHECK(kept == 5 * 1s + 1 * 3s);
    std::vector<std::int64_t> lost;
    open.take_newest(2, [&](const OpenSteps<int>::Done& done) {
        lost.push_back(done.steps);
        CHECK(done.by == (lost.size() == 1 ? 4 : 8));
    });
    CHECK(lost == std::vector<std::int64_t>{1, 1});
    CHECK(open.count() == 2);
}

TEST_CASE(
    "a storm on the stores' network holds up what goes there, and not what stays in the node") {
    Site store(Place::storage);
    store.begin();
    store.strike_at(60, Site::storm);  // half of the checkpoint is written
    store.run_until(500);
    store.job->end();
    // Three cycles of 110 s and the storm's 50 s end at 380 s.
    CHECK(store.booked(Category::storm_stall) == 50);
    CHECK(store.booked(Category::checkpoint_stall) == 300 + 100);
    CHECK(store.job->outcome().storms == 1);

    Site drives(Place::local_nvme);
    drives.begin();
    drives.strike_at(60, Site::storm);
    drives.run_until(440);
    drives.job->end();
    CHECK(drives.booked(Category::storm_stall) == 0);
    CHECK(drives.booked(Category::checkpoint_stall) == 400);
    CHECK(drives.job->outcome().storms == 0);
}

TEST_CASE("an upload slows the steps beside it for as long as it lasts, and not a moment longer") {
    Site store(Place::storage);
    store.spec.checkpoint.mode = CheckpointMode::async;
    store.spec.checkpoint.interval_steps = 4;
    store.spec.checkpoint.size = Bytes::of(25'000'000'000);
    store.spec.checkpoint.upload_step_penalty = 10s;
    store.begin();
    // Four steps, a snapshot of 1 s, an upload from 41 to 66 s at half speed: one step and a quarter of the
    // next, whose rest takes 7.5 s.
    store.run_until(93);
    store.job->end();
    CHECK(store.job->outcome().steps_kept == 7);
    CHECK(store.booked(Category::checkpoint_stall) == doctest::Approx(1 + 10 + 2.5));
    CHECK(store.booked(Category::productive) == doctest::Approx(7 * 10 + 9.5));
}

TEST_CASE("a state that comes back from the node's own drives does not wait for the network") {
    for (const Place place : {Place::storage, Place::local_nvme}) {
        Site site(place);
        site.begin();
        site.strike_at(150, Site::crash);  // one step is saved
        site.strike_at(200, Site::storm);  // half is read
        site.run_until(600);
        site.job->end();
        const bool waits = place == Place::storage;
        CHECK(site.booked(Category::restore) == 100);
        CHECK(site.booked(Category::storm_stall) == (waits ? 50 : 0));
        CHECK(site.ledger.total() == GpuNanoseconds{600} * 1'000'000'000);
    }
}

TEST_CASE("work that only a lost store held is lost when the job fails, or if it is down already") {
    Site runs(Place::storage);
    runs.begin();
    runs.run_until(225);  // two steps are saved
    runs.job->data_lost(0, 1, StorePart::drive);
    CHECK(runs.job->outcome().lost_work == Duration{});  // the state is in GPU memory
    runs.strike_at(225, Site::crash);
    CHECK(runs.job->outcome().steps_lost == 2);
    CHECK(runs.job->outcome().lost_work == 25s);

    Site down(Place::storage);
    down.begin();
    down.strike_at(225, Site::crash);
    CHECK(down.job->outcome().lost_work == 5s);
    down.run_until(300);  // reading for 75 of 100 s
    down.job->data_lost(0, 1, StorePart::drive);
    CHECK(down.job->outcome().steps_lost == 2);
    CHECK(down.job->outcome().lost_work == 25s);
    down.run_until(410);
    down.job->end();
    CHECK(down.booked(Category::restore) == 75 + 100);  // from the start
    CHECK(down.booked(Category::productive) == 10);
}
