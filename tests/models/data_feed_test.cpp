// Prefetched batches on the campaign clock, against the arithmetic of a tank that fills and drains.

#include "models/training/data_feed.h"

#include <doctest/doctest.h>

#include <utility>

#include "tests/models/quantities.h"

using namespace railyard;

namespace {

double at(Instant t) {
    return seconds(t.time_since_epoch());
}

// Eight GPUs that each take a batch of 1 GB a second, two batches ahead, from a store of 10 GB/s.
struct Job : DataFeed::Job, StoreService::Client {
    CampaignEngine engine;
    StoreService stores{engine};
    DataFeedSpec spec;
    std::optional<DataFeed> feed;
    std::vector<std::pair<double, double>> waits;  // when, and what a step waits from then on
    std::size_t other = 0;

    Job() {
        stores.add_store("store", {gb_per_s(10), gb_per_s(10)});
        DataDemand demand;
        demand.sample_bytes = 1e9;
        demand.compute = std::chrono::seconds(1);
        LoaderHosts hosts;
        hosts.gpus_per_node = 8;
        spec.loader = std::make_shared<DataLoader>(demand, LoaderSpec{}, hosts);
        spec.supply.store_bandwidth = 10e9;
        feed.emplace(engine, stores, stores.add_client(gb_per_s(100), gb_per_s(100)), spec, *this);
        other = stores.add_client(gb_per_s(100), gb_per_s(100));
        feed->begin(DataFeed::Use::steps);
    }
    void pace_changed() override {
        waits.emplace_back(at(engine.now()), seconds(feed->extra_wait()));
    }
    void first_batch_there() override {}
    void transfer_done(StoreService::TransferId, const WallTimes&) override {}
    StoreService::TransferId somebody_reads() {
        TransferSpec bulk;
        bulk.direction = Direction::read;
        bulk.bytes = Bytes::of(1'000'000'000'000'000);
        bulk.cap = gb_per_s(100);
        return stores.start(other, bulk, *this);
    }
    void run_until(std::int64_t t) { engine.run(Instant(std::chrono::seconds(t))); }
};

}  // namespace

TEST_CASE("a queue of batches hides a slow store until it is empty, and fills up again") {
    Job job;
    job.run_until(10);
    const auto bulk = job.somebody_reads();  // half of 10 GB/s is left, and steps take 8
    job.run_until(20);
    job.stores.cancel(bulk);
    job.run_until(40);
    REQUIRE(job.waits.size() == 2);
    CHECK(job.waits[0].first == doctest::Approx(10 + 16.0 / (8 - 5)));
    CHECK(job.waits[0].second == doctest::Approx(8.0 / 5 - 1));
    CHECK(job.waits[1] == std::pair(20.0, 0.0));
    CHECK(seconds(job.feed->starved()) == doctest::Approx(20 - 10 - 16.0 / 3));
    // It has been full again since 20 + 16 / (10 - 8) = 28 s: as much is hidden as before.
    job.somebody_reads();
    job.run_until(60);
    REQUIRE(job.waits.size() == 3);
    CHECK(job.waits[2].first == doctest::Approx(40 + 16.0 / 3));
}

TEST_CASE("a job that stands still lets its queue fill, and a dead one loses it") {
    Job job;
    job.run_until(10);
    const auto bulk = job.somebody_reads();
    job.run_until(15);  // 1 GB is left
    job.feed->change(DataFeed::Use::loaders_only);
    job.run_until(16);  // 6 GB: half of the store for a second
    job.feed->change(DataFeed::Use::steps);
    job.run_until(17);
    CHECK(job.waits.empty());
    job.run_until(20);
    REQUIRE(job.waits.size() == 1);
    CHECK(job.waits[0].first == doctest::Approx(16 + 6.0 / 3));
    job.feed->change(DataFeed::Use::no_loaders);
    job.stores.cancel(bulk);
    job.run_until(30);
    job.feed->change(DataFeed::Use::steps);  // nothing is there yet
    CHECK(job.feed->extra_wait() > std::chrono::hours(1));
    job.run_until(31);
    CHECK(job.waits.back().first == doctest::Approx(30));
    CHECK(job.waits.back().second == 0.0);
}

TEST_CASE("a first epoch reads everything, later ones what the caches don't have") {
    Job job;
    job.spec.cold = job.spec.supply;
    job.spec.supply.local_share = 0.75;
    job.spec.cold.store_bandwidth = 4e9;  // half of what the steps would take
    job.spec.supply.store_bandwidth = 4e9;
    job.spec.cold_steps = 10;
    job.stores.change_supply(0, {gb_per_s(4), gb_per_s(4)});
    job.feed->change(DataFeed::Use::no_loaders);
    job.feed.emplace(job.engine, job.stores, job.stores.add_client(gb_per_s(100), gb_per_s(100)),
                     job.spec, job);
    job.feed->begin(DataFeed::Use::steps);
    job.run_until(20);
    CHECK(job.feed->steps_ahead(9) == 1);
    CHECK(seconds(job.feed->extra_wait()) == doctest::Approx(1));  // 2 s a step
    job.feed->look_at_caches(10);
    job.run_until(30);
    CHECK(job.feed->extra_wait() == Duration{});  // 2 of 4 GB/s
    CHECK(job.feed->starved() == Duration{});
}

TEST_CASE("a store that is out stops the steps once the queue is empty") {
    Job job;
    job.run_until(10);
    job.stores.set_outage(0, true);
    job.run_until(20);
    REQUIRE(job.waits.size() == 1);
    CHECK(job.waits[0].first == 12.0);  // 16 GB at 8 GB/s
    job.stores.set_outage(0, false);
    job.run_until(30);
    CHECK(job.waits.back() == std::pair(20.0, 0.0));
    CHECK(seconds(job.feed->starved()) == 8);
}
