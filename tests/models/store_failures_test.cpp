// What breaks in a store, against closed forms and against Markov chains; and how a scenario asks for it.

#include "models/storage/store_failures.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <Eigen/Dense>
#include <cmath>
#include <functional>

#include "sim/statistics.h"
#include "unsupported/Eigen/MatrixFunctions"

using namespace railyard;

namespace {

using std::chrono::hours;
using std::chrono::minutes;

// Notes what it is told, and stops the engine at the first loss of data if it is to.
struct Witness : StoreListener {
    bool stands_still(const StoreState&) const override { return false; }
    explicit Witness(CampaignEngine& e) : engine(e) {}
    void store_changed() override {
        servers_down_time[static_cast<std::size_t>(last.servers_down)] += engine.now() - since;
        since = engine.now();
        last = failures->state();
        possible = possible && last.drives_down >= 0 && last.servers_down >= 0 &&
                   last.rebuilds >= 0 &&
                   (last.rebuilds > 0) == (failures->rebuild_traffic().write > Bandwidth{});
        if (logging)
            note(fmt::format("{}/{}/{}/{}", last.drives_down, last.servers_down, last.boxes_down,
                             last.rebuilds));
    }
    void outage_begins() override { note("out"); }
    void outage_ends() override { note("in"); }
    void data_lost(double fraction, StorePart) override {
        note(fmt::format("lost {:.6g}", fraction));
        lost.push_back(fraction);
        lost_at.push_back(seconds(engine.now().time_since_epoch()));
        if (stop_at_loss) engine.stop();
    }
    void note(const std::string& what) {
        log += fmt::format("{} {}\n", seconds(engine.now().time_since_epoch()), what);
    }

    CampaignEngine& engine;
    const StoreFailures* failures = nullptr;
    bool stop_at_loss = false;
    bool logging = false;
    bool possible = true;  // every state so far
    StoreState last;
    Instant since{};
    std::array<Duration, 65> servers_down_time{};
    std::vector<double> lost;
    std::vector<double> lost_at;
    std::string log;
};

struct Run {
    Run(const StoreFailureSpec& spec, const Protection& protection, std::uint64_t seed = 1)
        : witness(engine), failures(engine, spec, protection, witness, seed, 0) {
        witness.failures = &failures;
    }
    void to(Duration end) {
        if (!started) failures.start();
        started = true;
        engine.run(Instant(end));
        failures.end();
        witness.store_changed();
        CHECK(witness.possible);
    }
    CampaignEngine engine;
    Witness witness;
    StoreFailures failures;
    bool started = false;
};

// RAID-6, 8 + 2: a lost drive is rebuilt in ten hours.
Protection raid6() {
    Protection p;
    p.servers = 2;
    p.failover_servers = 2;
    p.servers_lost_max = 1;
    p.groups = 1;
    p.group_drives = 10;
    p.drives_lost_max = 2;
    p.drive_capacity = Bytes::of(3'600'000'000'000);
    p.rebuild = Bandwidth::bits_per_second(800'000'000);
    p.rebuild_reads = 8;
    return p;
}

StoreStrike drive_at(Duration at, std::int64_t index) {
    return {at, StorePart::drive, index, hours(24), false};
}
StoreStrike server_at(Duration at, std::int64_t index, Duration down_for, bool takes_data = false) {
    return {at, StorePart::server, index, down_for, takes_data};
}

// The chain of a group that rebuilds one drive at a time, each in `stages` exponential stages: for many
// stages that is a fixed time. State 0: all well; then (lost drives 1 .. survived) x (stage of the rebuild
// under way). From every state but the first a loss moves on to the same stage with one drive more.
Eigen::MatrixXd raid_chain(int drives, int survived, double failures_per_h, double rebuild_h,
                           int stages) {
    const int n = 1 + survived * stages;
    Eigen::MatrixXd q =
        Eigen::MatrixXd::Zero(n, n);  // transient states: rows lose what ends in data loss
    const auto state = [&](int lost, int stage) { return 1 + (lost - 1) * stages + stage; };
    q(0, state(1, 0)) = drives * failures_per_h;
    q(0, 0) = -drives * failures_per_h;
    const double step = stages / rebuild_h;
    for (int lost = 1; lost <= survived; ++lost) {
        for (int stage = 0; stage < stages; ++stage) {
            const int from = state(lost, stage);
            const int next = stage + 1 < stages ? state(lost, stage + 1)
                             : lost > 1         ? state(lost - 1, 0)
                                                : 0;
            const double loss = (drives - lost) * failures_per_h;
            q(from, next) += step;
            if (lost < survived) q(from, state(lost + 1, stage)) += loss;
            q(from, from) -= step + loss;
        }
    }
    return q;
}

double mean_time_to_loss(const Eigen::MatrixXd& q) {
    const Eigen::VectorXd ones = Eigen::VectorXd::Ones(q.rows());
    return (-q).partialPivLu().solve(ones)(0);
}

double probability_of_loss(const Eigen::MatrixXd& q, double time) {
    const Eigen::MatrixXd p = (q * time).exp();
    return 1 - p.row(0).sum();
}

// What a fixed rebuild time gives: the error of `stages` stages goes with their inverse.
double fixed_time(const std::function<double(int)>& with_stages) {
    return 2 * with_stages(100) - with_stages(50);
}

// A hundred drives in one group, stripes of 8 + 2 over them; a lost one is rebuilt in one hour by all.
Protection declustered() {
    Protection p = raid6();
    p.group_drives = 100;
    p.stripe_drives = 10;
    p.rebuild_over_all = true;
    p.rebuild = Bandwidth::bits_per_second(8'000'000'000);
    return p;
}

// Eight servers with ten drives each, stripes of 4 + 2 over them and spare space for one.
Protection eight_servers() {
    Protection p;
    p.servers = 8;
    p.servers_lost_max = 2;
    p.servers_hold_data = true;
    p.groups = 1;
    p.group_drives = 80;
    p.stripe_drives = 6;
    p.drives_lost_max = 2;
    p.drive_capacity = Bytes::of(1'000'000'000'000);
    p.spare_drives = 10;
    p.rebuild = Bandwidth::bits_per_second(64'000'000'000);
    p.rebuild_reads = 4;
    p.rebuild_over_all = true;
    return p;
}

// [storage.failures] as written, for a store of this protection.
struct Reading {
    Reading(const std::string& text, const Protection& protection) {
        const Document document = parse_document(text, "test", diagnostics);
        ValueReader reader(diagnostics, "test");
        Catalogue catalogue(reader, ValueChoice::corrected, nullptr);
        Section storage(reader, document.root.find("storage"), "storage", {});
        spec = read_store_failures(storage, catalogue, protection);
        storage.finish();
        estimates = reader.estimates().size();
    }
    // What it says first.
    std::string first() const {
        if (!diagnostics.ok()) return diagnostics.errors()[0].message;
        return diagnostics.warnings().empty() ? "" : diagnostics.warnings()[0].message;
    }
    Diagnostics diagnostics;
    std::optional<StoreFailureSpec> spec;
    std::size_t estimates = 0;
};

}  // namespace

TEST_CASE(
    "a lost drive is rebuilt in its capacity over the rebuild rate, and reads eight for one") {
    StoreFailureSpec spec;
    spec.strikes = {drive_at(hours(1), 3)};
    const Protection p = raid6();
    Run r(spec, p);
    r.to(hours(2));
    CHECK(r.failures.state().drives_down == 1);
    CHECK(r.failures.rebuild_traffic().write == p.rebuild);
    CHECK(r.failures.rebuild_traffic().read == p.rebuild * std::int64_t{8});
    r.to(hours(11) - Duration(1));
    CHECK(r.failures.state().rebuilds == 1);
    r.to(hours(11));
    CHECK(r.failures.state() == StoreState{});
    CHECK(r.failures.rebuild_traffic() == RebuildTraffic{});
    CHECK(r.failures.counts().rebuilds == 1);
}

TEST_CASE("RAID-6 loses what had not been rebuilt of the first drive when the third goes") {
    StoreFailureSpec spec;
    spec.strikes = {drive_at(hours(0), 0), drive_at(hours(4), 1), drive_at(hours(7), 2)};
    const Protection p = raid6();
    Run r(spec, p);
    r.witness.logging = true;
    r.to(hours(100));
    REQUIRE(r.witness.lost.size() == 1);
    CHECK(r.witness.lost[0] == doctest::Approx(0.3).epsilon(1e-9));
    CHECK(r.failures.state() == StoreState{});
    // Two blocks are left to rebuild in 0.7 of the stripes.
    CHECK(r.witness.log.find("75600 0/0/0/0") != std::string::npos);  // 7 h + 14 h

    spec.strikes[2].at = hours(10);  // the first is whole again
    Run later(spec, p);
    later.to(hours(100));
    CHECK(later.witness.lost.empty());
    CHECK(later.failures.counts().rebuilds == 3);
}

TEST_CASE("without a spare a drive is rebuilt once it is replaced") {
    StoreFailureSpec spec;
    spec.strikes = {drive_at(hours(0), 0)};
    Protection p = raid6();
    p.spare_drives = 0;
    Run r(spec, p);
    r.to(hours(23));
    CHECK(r.failures.state().drives_down == 1);
    CHECK(r.failures.state().rebuilds == 0);
    r.to(hours(34) - Duration(1));
    CHECK(r.failures.state().rebuilds == 1);
    r.to(hours(34));
    CHECK(r.failures.state() == StoreState{});
}

TEST_CASE("RAID-6 loses data as often as its Markov chain") {
    // Far too many failures, so that losses are common: 10 drives, each failing once in 200 h.
    const double rate = 1.0 / 200;
    StoreFailureSpec spec;
    spec.drive.rate = {rate / 3600};
    const Protection p = raid6();
    const double mean = fixed_time(
        [&](int stages) { return mean_time_to_loss(raid_chain(10, 2, rate, 10, stages)); });
    const double by_100h = fixed_time(
        [&](int stages) { return probability_of_loss(raid_chain(10, 2, rate, 10, stages), 100); });

    std::vector<double> times;
    double early = 0;
    for (std::uint64_t seed = 1; seed <= 5000; ++seed) {
        Run r(spec, p, seed);
        r.witness.stop_at_loss = true;
        r.to(hours(1'000'000));
        REQUIRE(r.witness.lost.size() == 1);
        times.push_back(r.witness.lost_at[0] / 3600);
        early += times.back() <= 100 ? 1 : 0;
    }
    const double n = static_cast<double>(times.size());
    const Summary s = summarise(times);
    INFO("MTTDL ", mean, " h, found ", s.mean, "; by 100 h ", by_100h, ", found ", early / n);
    CHECK(std::abs(s.mean - mean) < 3 * s.deviation / std::sqrt(n));
    CHECK(std::abs(early / n - by_100h) < 3 * std::sqrt(by_100h * (1 - by_100h) / n));
}

TEST_CASE(
    "a declustered group is open to a third loss only while its doubly degraded stripes last") {
    const Protection p = declustered();
    const double n = 100;
    const double w = 10;
    // The second drive goes when half of the first is rebuilt, with 99 drives' rate: at 50 / 99 of 1 h.
    const Duration second = from_seconds(0.5 * 3600 * 100 / 99);
    const double critical = 0.5 * (w - 1) / (n - 1);  // of a drive
    const double window_s = critical * 3600 / 0.98;   // 98 drives are left
    const auto lost_after = [&](double window_share) {
        StoreFailureSpec spec;
        spec.strikes = {drive_at({}, 7), drive_at(second, 50),
                        drive_at(second + from_seconds(window_s * window_share), 99)};
        Run r(spec, p);
        r.to(hours(100));
        CHECK(r.failures.state() == StoreState{});
        return r.witness.lost.empty() ? 0.0 : r.witness.lost[0];
    };
    const double all = 0.5 * w * (w - 1) * (w - 2) / (n * (n - 1) * (n - 2));
    CHECK(lost_after(0) == doctest::Approx(all).epsilon(1e-6));
    CHECK(lost_after(0.75) == doctest::Approx(0.25 * all).epsilon(1e-6));
    CHECK(lost_after(1.0001) == 0);
}

TEST_CASE(
    "at one rebuild time, declustering loses data more seldom by how few stripes meet twice") {
    // Rare losses: a third comes within half a rebuild and the share of it that is critical, so there are
    // n (n-1) (n-2) rate^3 time^2 / 2 of them per time for RAID, and (w-1) / (n-1) of that declustered.
    const double rate = 1.0 / 400;
    const double run_hours = 2e6;
    constexpr int runs = 4;
    const auto losses = [&](const Protection& p) {
        StoreFailureSpec spec;
        spec.drive.rate = {rate / 3600};
        double sum = 0;
        for (std::uint64_t seed = 1; seed <= runs; ++seed) {
            Run r(spec, p, seed);
            r.to(from_seconds(run_hours * 3600));
            sum += static_cast<double>(r.failures.counts().data_losses);
        }
        return sum;
    };
    Protection spread = declustered();
    spread.group_drives = 20;
    Protection raid = raid6();
    raid.group_drives = 20;
    raid.rebuild = raid.rebuild * std::int64_t{10};  // an hour, as the other
    const double expected = 20 * 19 * 18 * std::pow(rate, 3) / 2 * run_hours * runs;
    const double expected_spread = expected * 9 / 19;
    const double n_raid = losses(raid);
    const double n_spread = losses(spread);
    INFO(expected, " ", n_raid, " ", expected_spread, " ", n_spread);
    // Besides the noise, higher orders: one of twenty drives fails in each twenty rebuild times.
    CHECK(n_raid == doctest::Approx(expected).epsilon(0.07 + 3 / std::sqrt(expected)));
    CHECK(n_spread ==
          doctest::Approx(expected_spread).epsilon(0.07 + 3 / std::sqrt(expected_spread)));
}

TEST_CASE("with too many servers gone clients wait, and nothing is lost that comes back") {
    StoreFailureSpec spec;
    spec.strikes = {server_at(hours(0), 0, minutes(30)), server_at(minutes(1), 1, hours(2)),
                    server_at(minutes(2), 2, hours(2))};
    const Protection p = eight_servers();
    Run r(spec, p);
    r.to(minutes(10));
    CHECK(r.failures.state().servers_down == 3);
    CHECK(r.failures.unserved() > 0);
    CHECK(r.failures.rebuild_traffic() == RebuildTraffic{});
    r.to(hours(100));
    CHECK(r.failures.unserved() == 0);
    CHECK(r.failures.counts().outages == 1);
    CHECK(r.failures.counts().outage_time == minutes(28));
    CHECK(r.witness.lost.empty());
    CHECK(r.failures.state() == StoreState{});
}

TEST_CASE("servers that come back empty are data lost, as far as a stripe lay on all three") {
    StoreFailureSpec spec;
    for (int s = 0; s < 3; ++s) spec.strikes.push_back(server_at({}, s, hours(2), true));
    const Protection p = eight_servers();
    Run r(spec, p);
    r.to(hours(100));
    REQUIRE(r.witness.lost.size() == 1);
    CHECK(r.witness.lost[0] == doctest::Approx(6.0 * 5 * 4 / (8 * 7 * 6)));  // stripes of 4 + 2
    CHECK(r.failures.counts().outages == 0);
    CHECK(r.failures.state() == StoreState{});
}

TEST_CASE("with a server's data in spare space the store survives as many again") {
    const Protection p = eight_servers();
    StoreFailureSpec spec;
    // Ten drives of 1 TB: a fraction 7/8 of 8 GB/s rebuilds them in 1429 s.
    spec.strikes = {server_at({}, 0, hours(12)), server_at(minutes(24), 1, hours(12)),
                    server_at(minutes(25), 2, hours(12))};
    Run in_time(spec, p);
    in_time.to(hours(11));
    CHECK(in_time.failures.counts().outages == 0);
    // The spare space is taken: the two others stay out.
    CHECK(in_time.failures.state().rebuilds == 0);
    CHECK(in_time.failures.counts().rebuilds == 1);

    spec.strikes[1].at = minutes(23);
    spec.strikes[2].at = minutes(23);
    Run too_soon(spec, p);
    too_soon.to(hours(11));
    CHECK(too_soon.failures.counts().outages == 1);
    CHECK(too_soon.witness.lost.empty());
}

TEST_CASE("a server that is back before it is given up is not rebuilt") {
    Protection p = eight_servers();
    p.rebuild_after = minutes(10);
    const auto traffic_at_15_min = [&](Duration down_for) {
        StoreFailureSpec spec;
        spec.strikes = {server_at({}, 0, down_for)};
        Run r(spec, p);
        r.to(minutes(15));
        return r.failures.rebuild_traffic().write;
    };
    CHECK(traffic_at_15_min(minutes(9)) == Bandwidth{});
    CHECK(traffic_at_15_min(hours(1)) == p.rebuild * 0.875);
}

TEST_CASE("clients wait for a failover, for a whole pair, or for the only server") {
    Protection p = raid6();
    p.servers = 4;
    p.failover = minutes(3);
    StoreFailureSpec spec;
    spec.strikes = {server_at({}, 0, hours(1)), server_at(minutes(30), 1, minutes(10)),
                    server_at(minutes(120), 2, hours(1)), server_at(minutes(150), 1, hours(1))};
    Run r(spec, p);
    r.to(minutes(1));
    CHECK(r.failures.unserved() == 0.25);
    r.to(minutes(35));
    CHECK(r.failures.unserved() == 0.5);  // both of the first pair
    r.to(hours(100));
    CHECK(r.failures.counts().outage_time == minutes(3 + 10 + 3 + 3));

    p.servers = 1;
    p.failover_servers = 0;
    p.servers_lost_max = 0;
    p.waits_for_server = true;
    spec.strikes = {server_at({}, 0, hours(1))};
    Run nfs(spec, p);
    nfs.to(hours(2));
    CHECK(nfs.failures.counts().outage_time == hours(1));
    CHECK(nfs.witness.lost.empty());
}

TEST_CASE("boxes are survived up to so many, then clients wait") {
    Protection p = raid6();
    p.boxes = 15;
    p.boxes_lost_max = 1;
    StoreFailureSpec spec;
    spec.strikes = {{hours(0), StorePart::box, 3, hours(5), false},
                    {hours(1), StorePart::box, 4, hours(1), false}};
    Run r(spec, p);
    r.to(hours(1));
    CHECK(r.failures.state().boxes_down == 2);
    CHECK(r.failures.unserved() == 2.0 / 15);
    r.to(hours(10));
    CHECK(r.failures.counts().outage_time == hours(1));
}

TEST_CASE("an HA pair is out for the square of one server's unavailability") {
    const Protection p = raid6();
    StoreFailureSpec spec;
    spec.server = {{1.0 / (90 * 3600)}, hours(10)};  // 0.1 of the time each
    spec.repair_sigma = 0.8;
    std::vector<double> out;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        Run r(spec, p, seed);
        r.to(hours(20'000));
        out.push_back(seconds(r.failures.counts().outage_time) / 3600 / 20'000);
    }
    const Summary s = summarise(out);
    INFO(s.mean, " ", s.ci95.half_width());
    CHECK(std::abs(s.mean - 0.01) < 3 * s.deviation / std::sqrt(200));
}

TEST_CASE("how many of sixty-four servers are down is binomial") {
    Protection p = raid6();
    p.servers = 64;
    StoreFailureSpec spec;
    spec.server = {{1.0 / (970 * 3600)}, hours(30)};  // 0.03 of the time each
    spec.repair_sigma = 0.8;
    Run r(spec, p);
    const double total_h = 2'000'000;
    r.to(from_seconds(total_h * 3600));
    double binomial = std::pow(0.97, 64);
    double mean = 0;
    for (int k = 0; k <= 8; ++k) {
        const double found =
            seconds(r.witness.servers_down_time[static_cast<std::size_t>(k)]) / 3600 / total_h;
        // Independent looks at it: one repair time apart.
        const double error = std::sqrt(binomial * (1 - binomial) / (total_h / 60));
        CHECK(std::abs(found - binomial) < 4 * error);
        mean += k * found;
        binomial *= (64.0 - k) / (k + 1) * 0.03 / 0.97;
    }
    CHECK(mean == doctest::Approx(64 * 0.03).epsilon(0.01));
}

TEST_CASE("the same seed gives the same bytes, and more drives leave the servers where they were") {
    Protection p = raid6();
    p.groups = 20;
    StoreFailureSpec spec;
    spec.drive = {{1.0 / (2000 * 3600)}, hours(24)};
    spec.server = {{1.0 / (500 * 3600)}, hours(30)};
    spec.repair_sigma = 0.8;
    const auto log = [&](const Protection& protection, std::uint64_t seed) {
        Run r(spec, protection, seed);
        r.witness.logging = true;
        r.to(hours(3000));
        return r.witness.log;
    };
    CHECK(log(p, 1) == log(p, 1));
    CHECK(log(p, 1) != log(p, 2));
    Protection more = p;
    more.groups = 40;
    CHECK(log(more, 1) != log(p, 1));
    const auto server_times = [&](const Protection& protection) {
        Run r(spec, protection, 1);
        r.to(hours(3000));
        return r.witness.servers_down_time;
    };
    CHECK(server_times(more) == server_times(p));
}

TEST_CASE("another store beside it leaves a store's failures where they were") {
    const Protection p = raid6();
    StoreFailureSpec spec;
    spec.store = "hot";
    spec.drive = {{1.0 / (200 * 3600)}, hours(24)};
    spec.server = {{1.0 / (500 * 3600)}, hours(30)};
    Run alone(spec, p);
    alone.witness.logging = true;
    alone.to(hours(1000));

    StoreFailureSpec cold_spec = spec;
    cold_spec.store = "cold";
    Run both(spec, p);
    both.witness.logging = true;
    Witness cold_witness(both.engine);
    StoreFailures cold(both.engine, cold_spec, p, cold_witness, 1, 0);
    cold_witness.failures = &cold;
    cold_witness.logging = true;
    cold.start();
    both.to(hours(1000));
    CHECK(both.witness.log == alone.witness.log);
    CHECK(cold_witness.log != alone.witness.log);
}

TEST_CASE(
    "whatever strikes whatever store, in the end every rebuild has ended and nothing is out") {
    RandomStream random(1, 0, "torture");
    const auto up_to = [&](std::int64_t n) {
        return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(n) + 1));
    };
    for (int round = 0; round < 500; ++round) {
        Protection p;
        p.servers = 1 + up_to(9);
        p.failover_servers = up_to(3);
        p.servers_lost_max = up_to(3);
        p.servers_hold_data = random.chance(0.5);
        p.boxes = up_to(4);
        p.groups = p.servers_hold_data ? 1 : 1 + up_to(3);
        p.group_drives = p.servers_hold_data ? p.servers * (1 + up_to(4)) : 2 + up_to(18);
        p.stripe_drives = 1 + up_to(p.group_drives - 1);
        p.drives_lost_max = up_to(std::min<std::int64_t>(p.stripe_drives - 1, 4));
        p.drive_capacity = Bytes::of(1 + up_to(4'000'000'000'000));
        if (random.chance(0.5)) p.spare_drives = up_to(5);
        p.rebuild = Bandwidth::bits_per_second(1'000'000'007 * (1 + up_to(8)));
        p.rebuild_over_all = p.stripe_drives < p.group_drives || random.chance(0.3);
        p.rebuild_after = minutes(up_to(10));
        p.failover = minutes(up_to(5));
        p.waits_for_server = random.chance(0.2);
        p.lost_with_group = 1.0 / static_cast<double>(p.groups);

        StoreFailureSpec spec;
        for (int i = 0; i < 40; ++i) {
            const std::int64_t counts[] = {p.groups * p.group_drives, p.servers, p.boxes};
            const std::int64_t part = up_to(p.boxes > 0 ? 2 : 1);
            spec.strikes.push_back({minutes(up_to(600)), static_cast<StorePart>(part),
                                    up_to(counts[part] - 1), minutes(up_to(300)),
                                    random.chance(0.3)});
        }
        Run r(spec, p);
        r.to(hours(10'000));
        CHECK(r.failures.state() == StoreState{});
        CHECK(r.failures.unserved() == 0);
        CHECK(r.failures.counts().data_lost <=
              static_cast<double>(r.failures.counts().data_losses));
    }
}

TEST_CASE("a month of a thousand drives is a handful of events") {
    Protection p = raid6();
    p.groups = 100;
    p.servers = 20;
    StoreFailureSpec spec;
    spec.drive = {{0.008 / (8760 * 3600)}, hours(24)};
    spec.server = {{0.06 / (8760 * 3600)}, hours(12)};
    Run r(spec, p);
    r.to(hours(30 * 24));
    CHECK(r.engine.events() < 20);
}

TEST_CASE(
    "a store fails only if its scenario says so, at the catalogue's rates or at those given") {
    const Protection p = eight_servers();
    const Reading none("[storage]\n", p);
    CHECK(!none.spec);
    CHECK(none.estimates == 0);

    const Reading plain("[storage.failures]\n", p);
    REQUIRE(plain.spec);
    CHECK(plain.first() == "");
    CHECK(plain.spec->drive.rate.per_second ==
          doctest::Approx(0.008 / (365 * 86400)).epsilon(0.01));
    CHECK(plain.spec->server.repair == hours(12));
    CHECK(plain.spec->box.rate.per_second == 0);  // it has none
    CHECK(plain.estimates == 6);

    const Reading given(R"(
[storage.failures]
drive_failure_rate = "0.1 /year"
server_repair = "3 h"
server_takes_data = 0.5
repair_sigma = 0
[[storage.failures.inject]]
at = "1 day"
part = "server"
index = 7
takes_data = true
)",
                        p);
    REQUIRE(given.spec);
    CHECK(given.first() == "");
    CHECK(given.spec->drive.rate.per_second == doctest::Approx(0.1 / (365 * 86400)).epsilon(0.01));
    CHECK(given.spec->server_takes_data == 0.5);
    CHECK(given.spec->repair_sigma == 0);
    REQUIRE(given.spec->strikes.size() == 1);
    CHECK(given.spec->strikes[0].down_for == hours(3));

    const Reading exact("[storage.failures]\nrandom = false\n", p);
    REQUIRE(exact.spec);
    CHECK(exact.spec->drive.rate.per_second == 0);
    CHECK(exact.spec->server.rate.per_second == 0);
}

TEST_CASE("failures that a store can't have are said to be so") {
    const auto inject = [](const std::string& keys, const Protection& p) {
        return Reading("[[storage.failures.inject]]\nat = \"1 h\"\n" + keys, p).first();
    };
    CHECK(inject("part = \"server\"\nindex = 8", eight_servers()) == "this store has no server 8");
    CHECK(inject("part = \"box\"", eight_servers()) == "this store has no boxes");
    CHECK(inject("part = \"server\"\ntakes_data = true", raid6()) ==
          "only a server whose drives no other server reaches takes data");
    CHECK(Reading("[storage.failures]\ndrive_failure_rate = \"100000 /s\"", raid6()).first() ==
          "the store's 10 drives would fail 1e+06 times a second");
    CHECK(Reading("[storage.failures]\nbox_repair = \"1 h\"", raid6()).first() ==
          "has no effect: this store has no boxes");
    CHECK(Reading("[storage.failures]\nrandom = false\nserver_failure_rate = \"1 /year\"", raid6())
              .first() == "has no effect with random = false");
    CHECK(Reading("[storage.failures]\nserver_takes_data = 0.1", raid6()).first() ==
          "has no effect: others reach the drives of a lost server");
}
