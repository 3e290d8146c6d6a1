// Lives of parts and the queue for repair, against renewal theory, Markov chains and queueing theory.

#include <doctest/doctest.h>

#include <Eigen/Dense>
#include <cmath>

#include "models/failure/failure.h"
#include "sim/statistics.h"

using namespace railyard;

namespace {

using std::chrono::hours;

Rate once_in_hours(double h) {
    return {1 / (h * 3600)};
}
double in_hours(Duration d) {
    return seconds(d) / 3600;
}

// Counts what fails.
struct Counter : Renewals::Target {
    explicit Counter(std::int64_t units) : by_unit(static_cast<std::size_t>(units)) {}
    void failed(const Strike& strike) override {
        ++by_unit[static_cast<std::size_t>(strike.slot)];
        ++all;
    }
    std::vector<std::int64_t> by_unit;
    std::int64_t all = 0;
};

Counter count_failures(const Hazard& hazard, std::int64_t units, Duration time, std::uint64_t seed,
                       Duration age = {}) {
    CampaignEngine engine;
    Counter counter(units);
    Renewals lives(engine, counter, 0, "part", hazard, units, age, seed, 0);
    lives.start();
    engine.run(Instant(time));
    return counter;
}

// Units that fail while they work, and a shop that repairs them in exponential times.
struct WorldView : Renewals::Target, RepairShop::Customer {
    WorldView(std::int64_t units, double life_h, double repair_h, std::int64_t crews,
              std::uint64_t seed)
        : shop_spec{.crews = crews},
          lives(engine, *this, 0, "unit", {once_in_hours(life_h)}, units, {}, seed, 0),
          shop(engine, shop_spec, *this, seed, 0),
          works(seed, 0, "works"),
          mean_h(repair_h),
          down(static_cast<std::size_t>(units)),
          time_with(static_cast<std::size_t>(units) + 1) {
        lives.start();
    }
    void failed(const Strike& strike) override {
        if (down[static_cast<std::size_t>(strike.slot)]) return;
        count();
        down[static_cast<std::size_t>(strike.slot)] = true;
        ++are_down;
        shop.admit(strike.slot, {from_seconds(works.exponential() * mean_h * 3600)});
    }
    void repaired(std::int64_t item, bool sound) override {
        CHECK(sound);
        count();
        down[static_cast<std::size_t>(item)] = false;
        --are_down;
    }
    void count() {
        time_with[static_cast<std::size_t>(are_down)] += in_hours(engine.now() - since);
        since = engine.now();
    }

    CampaignEngine engine;
    RepairShopSpec shop_spec;
    Renewals lives;
    RepairShop shop;
    RandomStream works;
    double mean_h;
    std::vector<bool> down;
    std::vector<double> time_with;  // so many down
    std::int64_t are_down = 0;
    Instant since{};
};

// n units and c crews: the shares of time with 0 .. n down, from the balance of the chain.
Eigen::VectorXd shares_of_time(int n, double life, double repair, int crews) {
    Eigen::MatrixXd q = Eigen::MatrixXd::Zero(n + 1, n + 1);
    for (int down = 0; down <= n; ++down) {
        if (down < n) q(down, down + 1) = (n - down) / life;
        if (down > 0) q(down, down - 1) = std::min(down, crews) / repair;
        q(down, down) = -q.row(down).sum();
    }
    Eigen::MatrixXd balance = q.transpose();
    balance.row(0).setOnes();  // the shares sum to one
    Eigen::VectorXd right = Eigen::VectorXd::Zero(n + 1);
    right(0) = 1;
    return balance.partialPivLu().solve(right);
}

// Renewals expected by `time`: m(t) = F(t) + integral of m(t - u) dF(u), on a grid.
double renewals_by(double time, double shape, double mean) {
    const double scale = mean / std::tgamma(1 + 1 / shape);
    const int n = 2000;
    std::vector<double> lived;
    for (int i = 0; i <= n; ++i) {
        lived.push_back(1 - std::exp(-std::pow(i * time / n / scale, shape)));
    }
    std::vector<double> m(1);
    for (std::size_t i = 1; i <= n; ++i) {
        double sum = lived[i];
        for (std::size_t j = 1; j <= i; ++j) {
            // In the middle of each piece, where m is the mean of its ends.
            const double earlier = m[i - j];
            const double later = j == 1 ? earlier : m[i - j + 1];
            sum += (lived[j] - lived[j - 1]) * (earlier + later) / 2;
        }
        m.push_back(sum);
    }
    return m.back();
}

// Orders that arrive at random.
struct Arrivals : CampaignEngine::Component, RepairShop::Customer {
    Arrivals(const RepairShopSpec s, double every_h, double work_h, bool takes_part)
        : spec(s),
          id(engine.add(*this, "arrivals")),
          shop(engine, spec, *this, 1, 0),
          random(7, 0, "arrivals"),
          rate(once_in_hours(every_h)),
          mean_h(work_h),
          part(takes_part) {
        engine.schedule(Instant(random.interarrival(rate)), id, 0);
    }
    void handle(std::uint32_t) override {
        shop.admit(next++ % 1'000'000, {from_seconds(random.exponential() * mean_h * 3600), part});
        engine.schedule(engine.now() + random.interarrival(rate), id, 0);
    }
    void repaired(std::int64_t, bool) override {}

    CampaignEngine engine;
    RepairShopSpec spec;
    CampaignEngine::ComponentId id;
    RepairShop shop;
    RandomStream random;
    Rate rate;
    double mean_h;
    bool part;
    std::int64_t next = 0;
};

double erlang_c(double offered, int servers) {
    double term = 1;
    double sum = 0;
    for (int i = 0; i < servers; ++i) {
        sum += term;
        term *= offered / (i + 1);
    }
    const double waiting = term / (1 - offered / servers);
    return waiting / (sum + waiting);
}

}  // namespace

TEST_CASE("k of n with c crews work as much of the time as the Markov chain says") {
    for (const int crews : {1, 3}) {
        const Eigen::VectorXd shares = shares_of_time(12, 100, 20, crews);
        const double eight_work = shares.head(5).sum();
        std::vector<double> seen;
        std::vector<double> seen_all;
        for (std::uint64_t seed = 1; seed <= 40; ++seed) {
            WorldView world(12, 100, 20, crews, seed);
            world.engine.run(Instant(hours(2'000)));  // forget the start
            world.count();
            std::fill(world.time_with.begin(), world.time_with.end(), 0);
            world.engine.run(Instant(hours(22'000)));
            world.count();
            double up = 0;
            for (std::size_t k = 0; k <= 4; ++k) up += world.time_with[k];
            seen.push_back(up / 20'000);
            seen_all.push_back(world.time_with[0] / 20'000);
        }
        const Summary some = summarise(seen);
        const Summary all = summarise(seen_all);
        INFO(crews, " crews: 8 of 12 work ", eight_work, ", found ", some.mean, "; all ", shares(0),
             ", found ", all.mean);
        CHECK(std::abs(some.mean - eight_work) < 1.7 * some.ci95.half_width());
        CHECK(std::abs(all.mean - shares(0)) < 1.7 * all.ci95.half_width());
    }
}

TEST_CASE("units that fail at random fail together as one Poisson stream of the summed rate") {
    std::vector<double> counts;
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
        const Counter c = count_failures({once_in_hours(500)}, 50, hours(1000), seed);
        counts.push_back(static_cast<double>(c.all));
    }
    const Summary s = summarise(counts);
    CHECK(std::abs(s.mean - 100) < 1.7 * s.ci95.half_width());
    CHECK(s.deviation * s.deviation / s.mean ==
          doctest::Approx(1).epsilon(3.5 * std::sqrt(2.0 / 399)));
}

TEST_CASE("parts of any shape are renewed as often as the renewal equation says") {
    for (const double shape : {0.7, 1.0, 2.0, 4.0}) {
        for (const double by : {500.0, 2500.0}) {
            const double expected = renewals_by(by, shape, 1000);
            const Hazard hazard{once_in_hours(1000), shape};
            const Counter c = count_failures(hazard, 10'000, from_seconds(by * 3600), 3);
            std::vector<double> counts(c.by_unit.begin(), c.by_unit.end());
            const Summary s = summarise(counts);
            CAPTURE(shape);
            INFO("by ", by, " h: ", expected, " renewals, found ", s.mean);
            // The grid's error is below a thousandth.
            CHECK(std::abs(s.mean - expected) < 1.7 * s.ci95.half_width() + 1e-3 * expected);
        }
    }
}

TEST_CASE("what is left to an old part is what its survival says") {
    // P(fails within t | age a) = 1 - S(a + t) / S(a).
    const double scale = 1000 / std::tgamma(1.5);
    const double expected = 1 - std::exp(std::pow(1500 / scale, 2) - std::pow(1700 / scale, 2));
    const Counter c = count_failures({once_in_hours(1000), 2}, 50'000, hours(200), 5, hours(1500));
    double failed = 0;
    for (const std::int64_t n : c.by_unit) failed += n > 0 ? 1 : 0;
    CHECK(failed / 50'000 ==
          doctest::Approx(expected).epsilon(4 * std::sqrt((1 - expected) / expected / 50'000)));
}

TEST_CASE("more units move nobody's failures") {
    const Counter few = count_failures({once_in_hours(1000), 0.7}, 20, hours(5000), 1);
    const Counter many = count_failures({once_in_hours(1000), 0.7}, 30, hours(5000), 1);
    CHECK(std::equal(few.by_unit.begin(), few.by_unit.end(), many.by_unit.begin()));
    CHECK(many.all > few.all);
}

TEST_CASE("the queue for repair is M/M/c: Erlang's wait") {
    for (const int crews : {1, 2, 5}) {
        const double offered = 0.8 * crews;
        Arrivals a({.crews = crews}, 10 / offered, 10, false);
        a.engine.run(Instant(hours(1'500'000)));
        const double wait = erlang_c(offered, crews) * 10 / (crews - offered);
        const double found =
            a.shop.outcome().waited_s / 3600 / static_cast<double>(a.shop.outcome().repairs);
        INFO(crews, " crews: ", wait, " h, found ", found);
        CHECK(found == doctest::Approx(wait).epsilon(0.03));
    }
}

TEST_CASE("parts of a base stock are waited for as Poisson orders on their way say") {
    // Orders under way: Poisson of rate x lead time. Backorders over the rate: the wait, by Little.
    const double under_way = 240.0 / 50;
    for (const int stock : {0, 4, 8}) {
        Arrivals a({.parts = stock, .lead_time = hours(240)}, 50, 1, true);
        a.engine.run(Instant(hours(2'000'000)));
        double backorders = 0;
        double p = std::exp(-under_way);
        for (int n = 0; n < 60; p *= under_way / ++n) backorders += p * std::max(0, n - stock);
        const double found =
            a.shop.outcome().waited_s / 3600 / static_cast<double>(a.shop.outcome().repairs);
        INFO(stock, " parts: ", backorders * 50, " h, found ", found);
        CHECK(found == doctest::Approx(backorders * 50).epsilon(0.05));
        CHECK(a.shop.outcome().waited_for_part_s == a.shop.outcome().waited_s);
    }
}

TEST_CASE("a repair that may fail is done again as often as burn-in finds it, and once more") {
    // p leaves the fault in, f of these are found: 1 / (1 - p f) visits, of each p (1 - f) let out.
    Arrivals a({.fails_again = 0.3, .burn_in = hours(1), .burn_in_finds = 0.8}, 1, 1, false);
    a.engine.run(Instant(hours(200'000)));
    const RepairShopOutcome& o = a.shop.outcome();
    CHECK(static_cast<double>(o.repairs) / 200'000 ==
          doctest::Approx(1 / (1 - 0.3 * 0.8)).epsilon(0.02));
    CHECK(static_cast<double>(o.let_out) / static_cast<double>(o.repairs) ==
          doctest::Approx(0.3 * 0.2).epsilon(0.03));
}
