// What a job's transfers feel of a store's failures, second for second.

#include "models/storage/failing_store.h"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/statistics.h"

using namespace railyard;

namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr Bandwidth one_server = Bandwidth::bits_per_second(8'000'000'000);  // 1 GB/s

// Four servers of 1 GB/s each, and one drive's worth of it less while a rebuild is under way.
struct FourServers : StorageSystem {
    explicit FourServers(const Protection& p) : protected_by(p) {}
    StoreLimits limits(const StoreState& state) const override {
        StoreLimits out;
        const Bandwidth up = one_server * (4 - state.servers_down);
        out.read = {{"drives", one_server * std::int64_t{100}}, {"servers", up}};
        out.write = {{"servers", up * (state.rebuilds > 0 ? 0.5 : 1.0)}};
        return out;
    }
    StoreCapacity capacity() const override { return {}; }
    Protection protection() const override { return protected_by; }
    Protection protected_by;
};

Protection pairs() {
    Protection p;
    p.servers = 4;
    p.failover_servers = 2;
    p.servers_lost_max = 1;
    p.failover = minutes(3);
    p.groups = 1;
    p.group_drives = 10;
    p.drives_lost_max = 2;
    p.drive_capacity = Bytes::of(3'600'000'000'000);
    p.rebuild = one_server;
    p.lost_with_group = 0.25;
    return p;
}

struct Writer : StoreService::Client, FailingStore::DataOwner {
    explicit Writer(CampaignEngine& e) : engine(e) {}
    void transfer_done(StoreService::TransferId, const WallTimes& w) override {
        done_at = engine.now();
        walls = w;
    }
    void supply_changed(StoreService::TransferId, Bandwidth rate) override {
        delivered += given.bytes_per_second() * seconds(engine.now() - since);
        since = engine.now();
        given = rate;
    }
    void data_lost(std::size_t, double fraction, StorePart) override { lost += fraction; }

    CampaignEngine& engine;
    Instant done_at{};
    WallTimes walls;
    Instant since{};
    Bandwidth given;
    double delivered = 0;
    double lost = 0;
};

struct Site {
    Site(const Protection& p, const StoreFailureSpec& failing, std::uint64_t seed = 1)
        : system(p), spec(failing), service(engine), writer(engine) {
        service.add_store("store", supply_of(system.limits({})));
        client =
            service.add_client(one_server * std::int64_t{1000}, one_server * std::int64_t{1000});
        store.emplace(engine, service, 0, system, spec, writer, seed, 0);
        store->start();
    }
    TransferSpec moves(Direction direction, Bytes bytes) const {
        TransferSpec out;
        out.direction = direction;
        out.bytes = bytes;
        out.cap = one_server * std::int64_t{1000};
        return out;
    }
    CampaignEngine engine;
    FourServers system;
    StoreFailureSpec spec;
    StoreService service;
    Writer writer;
    std::size_t client = 0;
    std::optional<FailingStore> store;
};

// An hour's worth of writing, from the start.
Duration writing_takes(const Protection& p, std::vector<StoreStrike> strikes,
                       WallTimes* walls = {}) {
    StoreFailureSpec spec;
    spec.strikes = std::move(strikes);
    Site site(p, spec);
    site.service.start(site.client, site.moves(Direction::write, Bytes::of(4 * 3'600'000'000'000)),
                       site.writer);
    site.engine.run(Instant(hours(1000)));
    if (walls != nullptr) *walls = site.writer.walls;
    return site.writer.done_at.time_since_epoch();
}

}  // namespace

TEST_CASE("a write waits for the failover, and then goes on with three servers of four") {
    CHECK(writing_takes(pairs(), {}) == hours(1));
    WallTimes walls;
    // Half is written; 3 min nothing; 30 min at 3/4 are 22.5; 7.5 min are left.
    CHECK(writing_takes(pairs(), {{minutes(30), StorePart::server, 0, minutes(33), false}},
                        &walls) == minutes(30 + 33) + std::chrono::seconds(450));
    CHECK(walls[Wall::outage] == minutes(3));
}

TEST_CASE("with nobody to stand in, a write waits as long as the server is gone") {
    Protection p = pairs();
    p.waits_for_server = true;
    WallTimes walls;
    CHECK(writing_takes(p, {{minutes(30), StorePart::server, 2, minutes(50), false}}, &walls) ==
          minutes(110));
    CHECK(walls[Wall::outage] == minutes(50));
}

TEST_CASE("a rebuild takes its part for as long as it lasts") {
    // Half the bandwidth for the drive's hour: half an hour's worth is left.
    CHECK(writing_takes(pairs(), {{{}, StorePart::drive, 3, hours(24), false}}) == minutes(90));
}

TEST_CASE("what is lost is told to whom it belongs to, as the group's share of the store") {
    StoreFailureSpec spec;
    for (int d = 0; d < 3; ++d) spec.strikes.push_back({{}, StorePart::drive, d, hours(1), false});
    Site site(pairs(), spec);
    site.engine.run(Instant(hours(10)));
    CHECK(site.writer.lost == 0.25);
    CHECK(site.store->counts().data_losses == 1);
}

TEST_CASE("a store without a server is out until one is back, with or without its data") {
    Protection p = pairs();
    p.failover = {};
    p.servers_hold_data = true;
    p.group_drives = 8;
    for (const bool takes_data : {false, true}) {
        StoreFailureSpec spec;
        for (int s = 0; s < 4; ++s)
            spec.strikes.push_back({hours(1), StorePart::server, s, hours(5), takes_data});
        Site site(p, spec);
        site.engine.run(Instant(hours(10)));
        site.store->end();
        INFO(takes_data);
        CHECK(site.store->counts().outage_time == hours(5));
        CHECK(site.store->counts().outages == 1);
    }
}

TEST_CASE("servers that fail on their own cost their share of the time they are gone") {
    // Mean bandwidth of a binomial number of servers: 4 (1 - q), less what pairs and failovers take.
    Protection p = pairs();
    p.failover_servers = 0;
    p.servers_lost_max = 3;
    p.failover = {};
    StoreFailureSpec spec;
    spec.server = {{1.0 / (90 * 3600)}, hours(10)};  // q = 0.1
    spec.repair_sigma = 0.8;
    std::vector<double> servers;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        Site site(p, spec, seed);
        site.service.open_stream(site.client, site.moves(Direction::read, {}), site.writer);
        const double run_s = 2000 * 3600;
        site.engine.run(Instant(from_seconds(run_s)));
        site.writer.supply_changed({}, {});
        servers.push_back(site.writer.delivered / run_s / one_server.bytes_per_second());
    }
    const Summary s = summarise(servers);
    INFO(s.mean, " +- ", s.ci95.half_width());
    CHECK(std::abs(s.mean - 3.6) < 3 * s.deviation / 10);
}
