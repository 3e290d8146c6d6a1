// Stores that several clients use at once, against closed forms.

#include <doctest/doctest.h>

#include <map>

#include "models/storage/storage.h"
#include "tests/models/quantities.h"

using namespace railyard;

namespace {

constexpr Bandwidth unlimited = Bandwidth::bits_per_second(INT64_MAX / 2);

struct Clients : StoreService::Client {
    CampaignEngine engine;
    StoreService service{engine};
    std::map<StoreService::TransferId, double> ended;  // seconds
    std::map<StoreService::TransferId, WallTimes> walls;
    std::map<StoreService::TransferId, std::vector<double>> supplies;  // GB/s

    void transfer_done(StoreService::TransferId id, const WallTimes& waited) override {
        ended[id] = seconds(engine.now().time_since_epoch());
        walls[id] = waited;
    }
    void supply_changed(StoreService::TransferId id, Bandwidth rate) override {
        supplies[id].push_back(rate.bytes_per_second() * 1e-9);
    }
    void run() { engine.run(Instant::max()); }
    void run_until(Duration end) { engine.run(Instant(end)); }
    TransferSpec write(Bytes bytes, std::int64_t weight = 1) {
        TransferSpec spec;
        spec.bytes = bytes;
        spec.weight = weight;
        spec.cap = unlimited;
        return spec;
    }
    TransferSpec read(Bytes bytes) {
        TransferSpec spec = write(bytes);
        spec.direction = Direction::read;
        return spec;
    }
};

TEST_CASE("a transfer alone ends exactly when bytes over the least limit says") {
    Clients c;
    c.service.add_store("store", {gb_per_s(10), gb_per_s(4)});
    const auto job = c.service.add_client(unlimited, gb_per_s(50));
    const auto id = c.service.start(job, c.write(gigabytes(2800)), c);
    c.run();
    CHECK(c.ended[id] == 700.0);
    CHECK(c.walls[id][Wall::store] == std::chrono::seconds(700));
    CHECK(c.walls[id].total() == std::chrono::seconds(700));
}

TEST_CASE("what a client moves at one store is bounded there, whatever it moves at another") {
    Clients c;
    c.service.add_store("slow client", {unlimited, unlimited});
    c.service.add_store("fast client", {unlimited, unlimited});
    const auto job = c.service.add_client(gb_per_s(12), gb_per_s(12));
    c.service.limit_path(job, 0, gb_per_s(2), gb_per_s(2));
    TransferSpec elsewhere = c.read(gigabytes(80));
    elsewhere.store = 1;
    const auto fast = c.service.start(job, elsewhere, c);
    const auto image = c.service.start(job, c.read(gigabytes(8)), c);
    const auto state = c.service.start(job, c.read(gigabytes(8)), c);
    c.run();
    CHECK(c.ended[image] == 8.0);  // two transfers share 2 GB/s
    CHECK(c.ended[state] == 8.0);
    CHECK(c.ended[fast] == 8.0);  // and leave 10 of 12 to the third
    CHECK(c.walls[image].largest() == Wall::client);
    const auto alone = c.service.start(job, c.read(gigabytes(8)), c);
    c.run();
    CHECK(c.ended[alone] == 12.0);
}

TEST_CASE("each cap has its name among the walls") {
    Clients c;
    c.service.add_store("store", {gb_per_s(10), gb_per_s(10)});
    const auto job = c.service.add_client(gb_per_s(5), gb_per_s(2));
    TransferSpec own = c.write(gigabytes(10));
    own.cap = gb_per_s(1);
    own.cap_wall = Wall::serialisation;
    const auto serial = c.service.start(job, own, c);
    c.run();
    CHECK(c.ended[serial] == 10.0);
    CHECK(c.walls[serial].largest() == Wall::serialisation);
    const auto network = c.service.start(job, c.write(gigabytes(10)), c);
    c.run();
    CHECK(c.walls[network].largest() == Wall::client);
}

TEST_CASE(
    "M clients get one M-th each, by weight where they have weights, and what leaves is shared "
    "again") {
    Clients c;
    c.service.add_store("store", {gb_per_s(12), gb_per_s(12)});
    std::vector<StoreService::TransferId> ids;
    for (int m = 0; m < 4; ++m) {
        const auto job = c.service.add_client(unlimited, unlimited);
        ids.push_back(c.service.start(job, c.write(gigabytes(m == 3 ? 6 : 12)), c));
    }
    c.run();
    // 3 GB/s each until the short one has its 6 GB at 2 s, then 4 GB/s for the 6 GB that are left.
    CHECK(c.ended[ids[3]] == 2.0);
    for (int m = 0; m < 3; ++m) CHECK(c.ended[ids[static_cast<std::size_t>(m)]] == 3.5);
    CHECK(c.walls[ids[0]].largest() == Wall::neighbours);

    const double now = seconds(c.engine.now().time_since_epoch());
    const auto a = c.service.start(0, c.write(gigabytes(9), 3), c);
    const auto b = c.service.start(1, c.write(gigabytes(3), 1), c);
    c.run();
    CHECK(c.ended[a] == now + 1.0);
    CHECK(c.ended[b] == now + 1.0);
}

TEST_CASE("of M clients alike each has exactly one M-th, whatever M") {
    for (const std::int64_t m : {1, 2, 3, 5, 8, 48, 64, 512}) {
        CAPTURE(m);
        Clients c;
        c.service.add_store("store", {gb_per_s(12), gb_per_s(12)});
        for (std::int64_t i = 0; i < m; ++i) {
            c.service.start(c.service.add_client(unlimited, unlimited), c.read(gigabytes(12)), c);
        }
        c.run();
        REQUIRE(c.ended.size() == static_cast<std::size_t>(m));
        for (const auto& [id, end] : c.ended) CHECK(end == static_cast<double>(m));
    }
}

TEST_CASE("what a capped client leaves is shared by the others, by their weights") {
    Clients c;
    c.service.add_store("store", {gb_per_s(12), gb_per_s(12)});
    const auto capped = c.service.add_client(gb_per_s(3), unlimited);
    const auto one = c.service.add_client(unlimited, unlimited);
    const auto two = c.service.add_client(unlimited, unlimited);
    // By weight 6, 2 and 4 GB/s; the first's nodes carry 3, which leaves 9: 3 and 6.
    TransferSpec heavy = c.read(gigabytes(30));
    heavy.weight = 3;
    TransferSpec middle = c.read(gigabytes(60));
    middle.weight = 2;
    const auto a = c.service.start(capped, heavy, c);
    const auto b = c.service.start(one, c.read(gigabytes(30)), c);
    const auto d = c.service.start(two, middle, c);
    c.run();
    for (const auto id : {a, b, d}) CHECK(c.ended[id] == 10.0);
    CHECK(c.walls[a].largest() == Wall::client);
    CHECK(c.walls[b].largest() == Wall::neighbours);
}

TEST_CASE("16,384 ranks' four files each take N f / rate to the nanosecond, and that is metadata") {
    Clients c;
    c.service.add_store("store", {gb_per_s(10), gb_per_s(10), 32'768, 0});
    const auto job = c.service.add_client(unlimited, unlimited);
    TransferSpec storm = c.write(gigabytes(5));
    storm.files = 16'384 * 4;
    const auto id = c.service.start(job, storm, c);
    c.run();
    CHECK(c.ended[id] == 2.0);
    CHECK(c.walls[id][Wall::store] == std::chrono::milliseconds(500));
    CHECK(c.walls[id][Wall::metadata] == std::chrono::milliseconds(1500));
    // Two such storms at once take as long as one of twice the files.
    const double before = seconds(c.engine.now().time_since_epoch());
    storm.bytes = Bytes::of(1);
    const auto first = c.service.start(job, storm, c);
    const auto second = c.service.start(c.service.add_client(unlimited, unlimited), storm, c);
    c.run();
    CHECK(c.ended[first] - before == 4.0);
    CHECK(c.ended[second] - before == 4.0);
}

TEST_CASE("a neighbour's checkpoint slows reads, though reads alone would have all the servers") {
    Clients c;
    c.service.add_store("store", {gb_per_s(20), gb_per_s(10)});
    const auto reader = c.service.add_client(unlimited, unlimited);
    const auto writer = c.service.add_client(unlimited, unlimited);
    const auto read = c.service.start(reader, c.read(gigabytes(1000)), c);
    const auto write = c.service.start(writer, c.write(gigabytes(20)), c);
    c.run();
    // r / 20 + r / 10 = 1: both at 20/3 GB/s until the write is out after 3 s, then the read at 20.
    CHECK(c.ended[write] == doctest::Approx(3.0).epsilon(1e-8));
    CHECK(c.ended[read] == doctest::Approx(3 + (1000 - 20) / 20.0).epsilon(1e-8));
}

TEST_CASE(
    "files are created at the store's rate: N ranks with f files take N f / rate when bytes are "
    "few") {
    Clients c;
    c.service.add_store("store", {gb_per_s(10), gb_per_s(10), 28'000, 540'000});
    const auto job = c.service.add_client(unlimited, unlimited);
    TransferSpec spec = c.write(gigabytes(1));
    spec.files = 16'384 * 4;
    const auto id = c.service.start(job, spec, c);
    c.run();
    CHECK(c.ended[id] == doctest::Approx(65'536 / 28'000.0).epsilon(1e-9));
    CHECK(c.walls[id].largest() == Wall::metadata);
    // One thread's latency bounds it lower: 13,019 files at 83.5 a second.
    const double before = seconds(c.engine.now().time_since_epoch());
    spec.files = 13'019;
    spec.files_per_s = 83.5;
    spec.bytes = Bytes::of(1);
    const auto one = c.service.start(job, spec, c);
    c.run();
    CHECK(c.ended[one] - before == doctest::Approx(13'019 / 83.5).epsilon(1e-9));
}

TEST_CASE("an outage and a held network stop the bytes, not the clock") {
    Clients c;
    c.service.add_store("store", {gb_per_s(1), gb_per_s(1)});
    const auto job = c.service.add_client(unlimited, unlimited);
    const auto id = c.service.start(job, c.write(gigabytes(10)), c);
    c.run_until(std::chrono::seconds(4));
    c.service.set_outage(0, true);
    c.run_until(std::chrono::seconds(9));
    CHECK(c.service.progress(id).moved == gigabytes(4));
    c.service.set_outage(0, false);
    c.run_until(std::chrono::seconds(12));
    c.service.set_held(job, true);
    c.run_until(std::chrono::seconds(13));
    c.service.set_held(job, false);
    c.run();
    CHECK(c.ended[id] == 16.0);
    CHECK(c.walls[id][Wall::outage] == std::chrono::seconds(5));
    CHECK(c.walls[id].total() == std::chrono::seconds(15));
}

TEST_CASE("what a broken network leaves is what is moved under way, until it is mended") {
    const auto at = [](int s) { return Duration(std::chrono::seconds(s)); };
    Clients c;
    c.service.add_store("store", {gb_per_s(100), gb_per_s(100)});
    const auto job = c.service.add_client(gb_per_s(10), gb_per_s(10));
    const auto save = c.service.start(job, c.write(gigabytes(100)), c);
    SUBCASE("half of it for 6 s: 40, then 30, then 30 GB") {
        c.run_until(at(4));
        c.service.limit_way(job, 0, gb_per_s(5), gb_per_s(5));
        c.run_until(at(10));
        CHECK(c.service.progress(save).moved == gigabytes(70));
        c.service.limit_way(job, 0, unlimited, unlimited);
        c.run();
        CHECK(c.ended[save] == 13.0);
        CHECK(c.walls[save][Wall::network] == at(6));
        CHECK(c.walls[save][Wall::client] == at(7));
    }
    SUBCASE("nothing for 6 s") {
        c.run_until(at(4));
        c.service.limit_way(job, 0, Bandwidth{}, Bandwidth{});
        c.run_until(at(10));
        CHECK(c.service.progress(save).moved == gigabytes(40));
        c.service.limit_way(job, 0, unlimited, unlimited);
        c.run();
        CHECK(c.ended[save] == 16.0);
        CHECK(c.walls[save][Wall::network] == at(6));
    }
    SUBCASE("more than the path carries: nothing changes") {
        c.run_until(at(4));
        c.service.limit_way(job, 0, gb_per_s(10), gb_per_s(20));
        c.run();
        CHECK(c.ended[save] == 10.0);
        CHECK(c.walls[save][Wall::network] == Duration{});
    }
    SUBCASE("two that move in one direction share what is left, and others have theirs") {
        const auto other = c.service.add_client(gb_per_s(10), gb_per_s(10));
        const auto stream = c.service.open_stream(job, c.read(Bytes{}), c);
        const auto second = c.service.start(job, c.write(gigabytes(100)), c);
        const auto others = c.service.start(other, c.write(gigabytes(100)), c);
        c.service.limit_way(job, 0, Bandwidth{}, gb_per_s(4));
        c.run();
        CHECK(c.ended[save] == 50.0);
        CHECK(c.ended[second] == 50.0);
        CHECK(c.ended[others] == 10.0);
        CHECK(c.walls[save].largest() == Wall::network);
        CHECK(c.supplies[stream] == std::vector<double>{0});
    }
}

TEST_CASE("a write buffer takes what comes until it is full, and drains while nobody writes") {
    Clients c;
    StoreSupply supply{gb_per_s(10), gb_per_s(10)};
    supply.write_buffer = gigabytes(60);
    supply.drain = gb_per_s(4);
    c.service.add_store("store", supply);
    const auto job = c.service.add_client(unlimited, unlimited);
    // Full after 60 / (10 - 4) = 10 s; of 140 GB 100 are in, the rest comes in at 4 GB/s.
    const auto first = c.service.start(job, c.write(gigabytes(140)), c);
    c.run_until(std::chrono::seconds(25));
    CHECK(c.ended[first] == 20.0);
    // 5 s have drained 20 GB: full again after 20 / 6 s.
    const auto second = c.service.start(job, c.write(gigabytes(40)), c);
    c.run();
    CHECK(c.ended[second] == doctest::Approx(25 + 20 / 6.0 + (40 - 200 / 6.0) / 4));
    // With another writer half of what drains is each one's.
    c.run_until(std::chrono::seconds(1000));
    const auto other = c.service.add_client(unlimited, unlimited);
    const auto third = c.service.start(job, c.write(gigabytes(70)), c);
    c.service.start(other, c.write(gigabytes(200)), c);
    c.run();
    CHECK(c.ended[third] == doctest::Approx(1000 + 10 + (70 - 50) / 2.0));
}

TEST_CASE("a full buffer shared by three whose rates don't divide its drain lets time pass") {
    Clients c;
    StoreSupply supply{gb_per_s(10), gb_per_s(10)};
    supply.write_buffer = gigabytes(60);
    supply.drain = Bandwidth::bits_per_second(16'000'000'001);
    c.service.add_store("store", supply);
    std::vector<StoreService::TransferId> writes;
    for (int i = 0; i < 3; ++i) {
        const auto job = c.service.add_client(unlimited, unlimited);
        writes.push_back(c.service.start(job, c.write(gigabytes(100)), c));
    }
    CHECK(c.engine.run(Instant(std::chrono::hours(1)), 1000) != CampaignEngine::Outcome::limit);
    // Full after 60 / 8 s, when each has 25 GB in; then 2 GB/s for all.
    CHECK(c.ended[writes[2]] == doctest::Approx(7.5 + 225 / 2.0));
}

TEST_CASE("a job that moves three things at once has no more of a store than one that moves one") {
    Clients c;
    c.service.add_store("store", {gb_per_s(8), gb_per_s(8)});
    const auto mine = c.service.add_client(unlimited, unlimited);
    const auto other = c.service.add_client(unlimited, unlimited);
    std::vector<StoreService::TransferId> parts;
    for (int i = 0; i < 3; ++i) parts.push_back(c.service.start(mine, c.read(gigabytes(40)), c));
    const auto whole = c.service.start(other, c.read(gigabytes(120)), c);
    c.run();
    CHECK(c.ended[whole] == doctest::Approx(30));
    for (const auto part : parts) CHECK(c.ended[part] == doctest::Approx(30));
}

TEST_CASE(
    "a stream is told what it gets whenever that changes, and a cancelled transfer what it moved") {
    Clients c;
    c.service.add_store("store", {gb_per_s(10), gb_per_s(10)});
    const auto reader = c.service.add_client(unlimited, unlimited);
    const auto other = c.service.add_client(unlimited, unlimited);
    TransferSpec demand = c.read(Bytes{});
    demand.cap = gb_per_s(8);
    const auto stream = c.service.open_stream(reader, demand, c);
    c.run_until(std::chrono::seconds(1));
    const auto bulk = c.service.start(other, c.read(gigabytes(1000)), c);
    c.run_until(std::chrono::seconds(3));
    CHECK(c.service.cancel(bulk).moved == gigabytes(10));  // at half of 10 GB/s
    c.run_until(std::chrono::seconds(4));
    CHECK(c.supplies[stream] == std::vector<double>{8, 5, 8});
    c.service.change_cap(stream, gb_per_s(2), Wall::network);
    c.run_until(std::chrono::seconds(5));
    CHECK(c.supplies[stream].back() == 2);
    CHECK(c.ended.empty());
}

}  // namespace
