// What breaks the nodes of a cluster besides chance: domains, age, injected strikes; and who repairs them.

#include <doctest/doctest.h>

#include <cmath>

#include "tests/models/small_world.h"

using namespace railyard;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""h;

namespace {

// Nodes in racks of two, looked at each hour; one cause.
struct Shared : SmallWorld {
    explicit Shared(std::int64_t nodes, DomainKind domain = DomainKind::node)
        : SmallWorld(nodes, 1) {
        spec.health.interval = 1h;
        spec.domains.resize(domain_kind_names.size());
        spec.domains[static_cast<std::size_t>(DomainKind::rack)] = FailureDomains::runs(nodes, 2);
        causes[0].name = "breaks";
        causes[0].domain = domain;
    }
};

}  // namespace

TEST_CASE("a rack that fails takes every job on it, and its nodes are back together") {
    Shared f(6, DomainKind::rack);
    f.causes[0].detection = 10min;
    f.submit(16, 8h);  // rack 0
    f.submit(8, 8h);   // half of rack 1
    f.submit(24, 8h);  // the other half, and rack 2
    f.inject(1h, 1, 0, 4h);
    const WorldRunResult r = f.run(24h);
    CHECK(r.outcome.nodes.domain_failures == 1);
    CHECK(r.outcome.interruptions[0] == 2);
    CHECK(r.outcome.runs[0].end == Instant(8h));
    CHECK(r.outcome.runs[1].end == Instant(1h + 10min + 8h));  // on a node of rack 2 at once
    CHECK(r.outcome.runs[2].end == Instant(5h + 8h));          // it needs three nodes
    CHECK(r.ledger.booked(Category::repair) / 16 == Duration(5h - 1h - 10min).count());
}

TEST_CASE("nodes that nobody used while their rack was down are sound afterwards") {
    Shared f(4, DomainKind::rack);
    f.spec.health = {.prolog = false, .epilog = false};
    f.inject(1h, 1, 0, 2h);
    f.submit(32, 5h, 4h);
    const WorldRunResult r = f.run(24h);
    CHECK(r.outcome.runs[0].interruptions == 0);
    CHECK(r.outcome.runs[0].end == Instant(9h));
}

TEST_CASE("a job that starts while its rack comes back is sent back by its prolog, and done") {
    Shared f(2, DomainKind::rack);
    f.spec.health = {.prolog_time = 2min};
    f.inject(1h, 0, 0, 1min);
    f.submit(16, 5h, Duration(1h) + Duration(30s));
    const WorldRunResult r = f.run(24h);
    CHECK(r.outcome.runs[0].starts == 2);
    CHECK(r.outcome.runs[0].over);
    CHECK(r.outcome.runs[0].end == Instant(Duration(1h) + 30s + 2min + 2min + 5h));
}

TEST_CASE("a node that is mended while its rack is down waits for the rack") {
    Shared f(4, DomainKind::rack);
    FailureCause own = f.causes[0];
    own.name = "own";
    own.domain = DomainKind::node;
    f.causes.push_back(own);
    f.spec.injected.push_back({30min, 1, 0, {}});  // found at 1, mended at 2
    f.inject(1h + 30min, 0, 0, 4h);                // its neighbour is found at 2
    const WorldRunResult r = f.run(24h);
    CHECK(node_hours(r, Category::repair) == 8);  // from 1 and from 2 to half past 5
}

TEST_CASE("two outages of a rack: it is back when both are over") {
    Shared f(2, DomainKind::rack);
    f.spec.health.interval = 30min;
    f.inject(1h, 0, 0, 6h);
    f.inject(2h, 0, 0, 2h);
    const WorldRunResult r = f.run(24h);
    CHECK(r.ledger.booked(Category::repair) / 16 == Duration(5h + 30min).count());
}

TEST_CASE("a rollout goes on to the racks that follow, until there is none") {
    for (const auto& [further, expected] : {std::pair{0, 1}, {2, 3}, {9, 3}}) {
        Shared f(6, DomainKind::rack);
        f.causes[0].staged = {further, 1h};
        f.inject(1h, 0, 0, 30min);
        CHECK(f.run(24h).outcome.nodes.domain_failures == expected);
    }
}

TEST_CASE(
    "a rate per job holds for each running job, however many there are and whatever they share") {
    struct Case {
        std::int64_t jobs, gpus;
    };
    for (const Case& each : {Case{1, 32}, Case{10, 32}, Case{40, 1}}) {
        const auto [jobs, gpus] = each;
        CAPTURE(each.jobs);
        SmallWorld f(40, 1);
        f.causes[0].remedy = Remedy::restart;
        f.causes[0].rate_per_job = {1.0 / 36000};
        for (std::int64_t i = 0; i < jobs; ++i) f.submit(gpus, Duration(100000h), {}, 200000h);
        const WorldRunResult r = f.run(Duration(20000h) / jobs);
        double held = 0;
        double failures = 0;
        for (const WorldJobRun& run : r.outcome.runs) {
            held += seconds(run.held);
            failures += static_cast<double>(run.interruptions);
        }
        REQUIRE(failures > 1000);
        CHECK(held / failures == doctest::Approx(36000).epsilon(4 / std::sqrt(failures)));
        CHECK(r.outcome.interruptions[0] == static_cast<std::int64_t>(failures));
        CHECK(r.outcome.strikes_on_idle == 0);
    }
}

TEST_CASE("a rate per job breaks a node of the job, lemons more often") {
    SmallWorld f(8, 1);
    f.causes[0].rate_per_job = {1.0 / 36000};
    f.spec.lemons = {.fraction = 0.5, .rate_multiplier = 4};
    f.submit(64, Duration(100000h), {}, 200000h);
    const WorldRunResult r = f.run(Duration(10000h));
    CHECK(r.ledger.booked(Category::repair) > 0);
    const WorldJobRun& run = r.outcome.runs[0];
    const double ratio = seconds(run.held) / static_cast<double>(run.interruptions) / 36000;
    CHECK(ratio > 1.0 / 4);
    CHECK(ratio < 1);
}

TEST_CASE("one crew repairs one node after the other, two both at once") {
    for (const std::int64_t crews : {1, 2}) {
        Shared f(4);
        f.causes[0].remedy = Remedy::replace;
        f.causes[0].repair_time = 24h;
        f.spec.repair.crews = crews;
        f.inject(30min, 0);
        f.inject(30min, 2);
        const WorldRunResult r = f.run(100h);  // both found at one o'clock
        CHECK(node_hours(r, Category::repair) == (crews == 1 ? 24 + 48 : 24 + 24));
        CHECK(r.outcome.nodes.repair.repairs == 2);
        CHECK(r.outcome.nodes.repair.waited_s == (crews == 1 ? 24 * 3600 : 0));
    }
}

TEST_CASE("a repair that leaves the fault in costs the next job its start") {
    Shared f(1);
    f.causes[0].remedy = Remedy::replace;
    f.causes[0].repair_time = 2h;
    f.spec.repair.fails_again = 0.999999;
    f.spec.health.interval = {};
    f.submit(8, 10h);
    f.inject(1h, 0);
    const WorldRunResult r = f.run(50h);
    CHECK(r.outcome.runs[0].starts > 10);  // each prolog finds it broken still
    CHECK_FALSE(r.outcome.runs[0].over);
    CHECK(r.outcome.nodes.repair.let_out >= 20);
}

TEST_CASE("a repair that leaves the fault in is found by the next check of an idle node") {
    Shared f(1);
    f.causes[0].remedy = Remedy::replace;
    f.causes[0].repair_time = 90min;
    f.spec.repair.fails_again = 0.999999;
    f.inject(30min, 0);  // found at 1, out at 2.30, found at 3 ...
    const WorldRunResult r = f.run(25h);
    CHECK(r.outcome.nodes.repair.repairs == 12);
    CHECK(node_hours(r, Category::repair) == 18);
}

TEST_CASE("a node that fails too often is locked out, and an inspection brings it back") {
    for (const bool inspected : {false, true}) {
        Shared f(2);
        f.spec.quarantine.failures = 2;
        f.spec.quarantine.within = 24h;
        if (inspected) f.spec.quarantine.inspection = 10h;
        f.inject(30min, 0);       // found at 1, back at 2
        f.inject(5h + 30min, 0);  // found at 6
        const WorldRunResult r = f.run(26h);
        CHECK(r.outcome.nodes.quarantined == 1);
        CHECK(node_hours(r, Category::repair) == 1 + (inspected ? 10 : 20));
    }
}

TEST_CASE("racks fail as often as their rate says, and parts that age live as long as theirs") {
    constexpr double years = 20;
    for (const double shape : {1.0, 3.0}) {
        Shared f(40, shape == 1 ? DomainKind::rack : DomainKind::node);
        f.causes[0].life = {{1.0 / seconds(Duration(200h))}, shape};
        f.causes[0].reset_time = {};
        f.submit(320, Duration(24h) * 3650);
        f.jobs.jobs[0].limit = Duration(24h) * 36500;
        const WorldRunResult r = f.run(from_seconds(years * 365 * 86400));
        const double units = shape == 1 ? 20 : 40;
        const double expected = units * years * 365 * 24 / 200;
        const double found = static_cast<double>(shape == 1 ? r.outcome.nodes.domain_failures
                                                            : r.outcome.interruptions[0] +
                                                                  r.outcome.strikes_on_idle);
        CHECK(std::abs(found - expected) < 4 * std::sqrt(expected));
    }
}

TEST_CASE("of searches after failures, as many blame a sound node as misdiagnosis says") {
    constexpr double wrong = 0.4;
    Shared f(4);
    f.spec.misdiagnosis = wrong;
    f.spec.health = {.prolog = false};  // the next job meets what is broken still
    f.causes[0].reset_time = 1min;
    f.causes[0].rate_per_node = {1 / seconds(Duration(100h))};
    f.submit(32, Duration(24h) * 3650);
    f.jobs.jobs[0].limit = Duration(24h) * 36500;
    f.spec.kinds[0].checkpoint_interval = 1h;
    const WorldRunResult r = f.run(Duration(24h) * 3650);
    const auto stops = static_cast<double>(r.outcome.interruptions[0]);
    const auto blamed = static_cast<double>(r.outcome.nodes_blamed);
    // One failure stops the job 1 / (1 - p) times.
    const double failures = 3650 * 24 * 4 / 100.0;
    CHECK(std::abs(stops - failures / (1 - wrong)) <
          4 * std::sqrt(stops * (1 + wrong) / (1 - wrong)));
    CHECK(std::abs(blamed / stops - wrong) < 4 * std::sqrt(wrong * (1 - wrong) / stops));
}

TEST_CASE("a sound node that is blamed is reset, and the broken one stops the job again") {
    Shared f(3);
    f.spec.misdiagnosis = 0.999;
    f.spec.health = {.prolog_time = 2min};
    f.causes[0].rate_per_node = {1 / seconds(Duration(40h))};
    f.submit(16, 100h);
    f.spec.kinds[0].checkpoint_interval = 1h;
    const WorldRunResult r = f.run(400h);
    CHECK(r.outcome.nodes_blamed > 50);  // the prolog is wrong as often
    CHECK(r.outcome.runs[0].starts > r.outcome.runs[0].interruptions);
    f.jobs.jobs[0].gpus = 8;  // alone on its node nobody else can be blamed
    CHECK(f.run(400h).outcome.nodes_blamed == 0);
}

TEST_CASE("where a heartbeat or a check has found the node nobody else is blamed") {
    for (const bool silences : {true, false}) {
        Shared f(3);
        f.spec.misdiagnosis = 0.999;
        f.spec.health.prolog = false;
        f.spec.health.interval = silences ? Duration{} : Duration(10min);
        f.causes[0].silences = silences;
        f.causes[0].detection = 5h;  // until the job itself would notice
        f.causes[0].rate_per_node = {1 / seconds(Duration(40h))};
        f.submit(16, 1000h);
        f.spec.kinds[0].checkpoint_interval = 1h;
        const WorldRunResult r = f.run(400h);
        CHECK(r.outcome.interruptions[0] > 10);
        CHECK(r.outcome.nodes_blamed == 0);
    }
}

TEST_CASE("a job that has not noticed its failure is ended by its time limit all the same") {
    for (const bool before_it_starts : {false, true}) {
        Shared f(2);
        f.spec.health = {.prolog = false, .epilog = false};
        f.causes[0].detection = 24h;
        f.submit(16, 5h, 1h, 6h);
        f.submit(16, 1h, 2h, 2h);
        f.inject(before_it_starts ? Duration(30min) : Duration(5h), 0);
        const WorldRunResult r = f.run(48h);
        CHECK(r.outcome.runs[0].how == JobEnd::timeout);
        CHECK(r.outcome.runs[0].end == Instant(7h));
        CHECK(r.outcome.runs[0].held == Duration(6h));
        CHECK(r.outcome.runs[1].first_start == Instant(7h));
    }
}

TEST_CASE("what a job has not saved when its time limit ends it is lost") {
    SmallWorld f(2, 0);
    f.submit(16, 10h, {}, 5h);
    const WorldRunResult nothing = f.run(24h);
    CHECK(nothing.outcome.runs[0].how == JobEnd::timeout);
    CHECK(node_hours(nothing, Category::lost_work) == 10);
    CHECK(node_hours(nothing, Category::productive) == 0);
    f.spec.kinds[0].checkpoint_interval = 2h;
    const WorldRunResult saved = f.run(24h);
    CHECK(node_hours(saved, Category::lost_work) == 2);
    CHECK(node_hours(saved, Category::productive) == 8);
    f.jobs.jobs[0].work = 5h;  // exactly what it may take
    const WorldRunResult done = f.run(24h);
    CHECK(done.outcome.runs[0].how == JobEnd::completed);
    CHECK(node_hours(done, Category::productive) == 10);
}

TEST_CASE("a job that is submitted again comes last, and not more often than its kind may") {
    SmallWorld f(1, 0);
    f.spec.kinds[0].resubmit = true;
    f.spec.kinds[0].restarts_max = 2;
    f.submit(8, 3h, {}, 2h);
    f.submit(8, 1h, 30min);
    f.submit(8, 1h, 150min);
    const WorldRunResult r = f.run(24h);
    CHECK(r.outcome.runs[1].first_start == Instant(2h));
    CHECK(r.outcome.runs[2].first_start == Instant(5h));
    CHECK(r.outcome.runs[0].starts == 3);
    CHECK(r.outcome.runs[0].how == JobEnd::timeout);
    CHECK(r.outcome.runs[0].end == Instant(8h));
}

namespace {

// Takes a share of all strikes, as nodes do beside a lemon that is struck ten times as often.
struct Counter : FailureSource::Target {
    explicit Counter(CampaignEngine& counted, double share) : engine(counted), acceptance(share) {}
    bool strike(const Strike& strike) override {
        if (strike.acceptance >= acceptance) return false;
        at.push_back(engine.now());
        return true;
    }
    CampaignEngine& engine;
    double acceptance;
    std::vector<Instant> at;
};

}  // namespace

TEST_CASE("the failures of a burst stay together where lemons are struck more often than others") {
    FailureCause cause;
    cause.name = "pairs";
    cause.rate_per_node = Rate{1 / seconds(Duration(1000h))};
    cause.burst = {.further = 5, .within = 10s};
    for (const double multiplier : {1.0, 10.0}) {
        INFO(multiplier);
        CampaignEngine engine;
        Counter counter(engine, 1 / multiplier);
        FailureSource source(engine, counter, 0, cause, 10, multiplier, 1, 0);
        source.start();
        engine.run(Instant(100'000h));
        std::int64_t bursts = 0;
        for (std::size_t i = 0; i < counter.at.size(); ++i) {
            bursts += i == 0 || counter.at[i] > counter.at[i - 1] + 20s ? 1 : 0;
        }
        CHECK(static_cast<double>(bursts) == doctest::Approx(1000).epsilon(0.1));
        const double each = static_cast<double>(counter.at.size()) / static_cast<double>(bursts);
        CHECK(each == doctest::Approx(6).epsilon(0.1));
    }
}
