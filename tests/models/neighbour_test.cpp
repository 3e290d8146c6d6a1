// Another job on the same store, against the arithmetic of two that share.

#include "models/storage/neighbour.h"

#include <doctest/doctest.h>

#include "tests/models/quantities.h"

using namespace railyard;

namespace {

struct Store : StoreService::Client {
    CampaignEngine engine;
    StoreService stores{engine};
    NeighbourSpec spec;
    double ended = 0;
    WallTimes walls;

    Store() {
        stores.add_store("store", {gb_per_s(10), gb_per_s(10)});
        spec.name = "other";
        spec.checkpoint = Bytes::of(100'000'000'000);
        spec.every = std::chrono::seconds(60);
        spec.start = std::chrono::seconds(10);
        spec.network_read = spec.network_write = gb_per_s(1000);
    }
    void transfer_done(StoreService::TransferId, const WallTimes& waited) override {
        ended = seconds(engine.now().time_since_epoch());
        walls = waited;
    }
    void write(std::int64_t gigabytes, std::int64_t weight) {
        TransferSpec mine;
        mine.bytes = Bytes::of(gigabytes * 1'000'000'000);
        mine.cap = gb_per_s(1000);
        mine.weight = weight;
        const std::size_t client = stores.add_client(gb_per_s(1000), gb_per_s(1000));
        stores.start(client, mine, *this);
    }
    void run_until(std::int64_t t) { engine.run(Instant(std::chrono::seconds(t))); }
};

}  // namespace

TEST_CASE(
    "a neighbour's checkpoint takes its share for as long as it runs, and the wait is named") {
    Store s;
    Neighbour other(s.engine, s.stores, s.spec, 1, 0);
    other.start();
    s.write(200, 1);
    s.run_until(60);
    // 10 s alone, then half: 100 GB of the other's take 20 s, and 0 is left of mine at 30 s.
    CHECK(s.ended == doctest::Approx(30));
    CHECK(s.walls[Wall::store] == std::chrono::seconds(10));
    CHECK(s.walls[Wall::neighbours] == std::chrono::seconds(20));
    CHECK(other.outcome().written == 1);
    CHECK(seconds(other.outcome().writing) == doctest::Approx(20));
}

TEST_CASE("a job with more nodes has more of a store that serves nodes alike") {
    Store s;
    s.spec.start = std::chrono::seconds(0);
    s.spec.weight = 1;
    Neighbour other(s.engine, s.stores, s.spec, 1, 0);
    other.start();
    s.write(75, 3);  // three quarters of 10 GB/s
    s.run_until(60);
    CHECK(s.ended == doctest::Approx(10));
    CHECK(seconds(other.outcome().writing) == doctest::Approx(10 + 75.0 / 10));
}

TEST_CASE("a neighbour leaves out a checkpoint while the one before is not out yet") {
    Store s;
    s.spec.every = std::chrono::seconds(8);  // and each takes 10 s
    s.spec.start = std::chrono::seconds(0);
    Neighbour other(s.engine, s.stores, s.spec, 1, 0);
    other.start();
    s.run_until(159);
    CHECK(other.outcome().written == 10);  // one every 16 s
    CHECK(other.outcome().left_out == 10);
}

TEST_CASE("a neighbour's reads and its checkpoints share the time of the servers") {
    Store s;
    s.spec.reads = gb_per_s(6);
    s.spec.start = std::chrono::seconds(0);
    s.spec.every = std::chrono::seconds(1000);
    Neighbour other(s.engine, s.stores, s.spec, 1, 0);
    other.start();
    s.run_until(100);
    // Both rise to 5 GB/s; 100 GB are out after 20 s; then the reads have all they ask for.
    CHECK(seconds(other.outcome().writing) == doctest::Approx(20));
    CHECK(other.outcome().asked == doctest::Approx(600e9));
    CHECK(other.outcome().read == doctest::Approx((20 * 5 + 80 * 6) * 1e9));
}

TEST_CASE("the first checkpoint of a neighbour falls anywhere within its interval") {
    double sum = 0;
    constexpr int draws = 200;
    for (int i = 0; i < draws; ++i) {
        Store s;
        s.spec.start.reset();
        Neighbour other(s.engine, s.stores, s.spec, 1, static_cast<std::uint64_t>(i));
        other.start();
        s.run_until(1000);
        sum += static_cast<double>(other.outcome().written);
    }
    // In 1,000 s, 60 s apart and 10 s long: 16.5 fit on average, +- 0.05 by draws.
    CHECK(sum / draws == doctest::Approx(16.5).epsilon(0.01));
}
