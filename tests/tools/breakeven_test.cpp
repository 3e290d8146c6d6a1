// Where the better of two designs becomes the worse, against closed forms.

#include "tools/study/breakeven.h"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/rng.h"
#include "tests/tools/stalls.h"

using namespace railyard;

namespace {

// Two designs whose replicas differ by f(x), with noise of its own for each replica, the same at every x.
template <class Function>
BreakevenResult search(const KeyRange& range, double noise, const Function& f,
                       std::size_t points = 9) {
    return find_breakeven(range, points, Better::higher, [&](double x) {
        std::vector<double> a;
        std::vector<double> b;
        for (std::uint64_t r = 0; r < 20; ++r) {
            RandomStream random(1, r, "noise");
            a.push_back(random.normal());
            b.push_back(a.back() + f(x) + noise * random.normal());
        }
        return std::optional(compare_paired(a, b, Better::higher));
    });
}

const KeyRange zero_to_ten("key", "0.0", "10.0", false, "key");

}  // namespace

TEST_CASE("a crossing without noise is found to the search's tolerance") {
    const auto check = [](auto f, double root, Verdict below) {
        const BreakevenResult r = search(zero_to_ten, 0, f);
        REQUIRE(r.crossings.size() == 1);
        CHECK(std::abs(r.crossings[0].x - root) < 2e-3);
        CHECK(r.crossings[0].below == below);
        CHECK(r.evaluations < 40);
    };
    check([](double x) { return x - 3.21; }, 3.21, Verdict::first);
    check([](double x) { return 1 - std::exp(x - 7.77); }, 7.77, Verdict::second);
    check([](double x) { return x < 6.6 ? -1.0 : 100.0; }, 6.6, Verdict::first);  // a jump
    check([](double x) { return std::pow(x - 2.5, 3); }, 2.5, Verdict::first);
}

TEST_CASE("no flip in the range is said, and what never differs has none either") {
    CHECK(search(zero_to_ten, 0.1, [](double x) { return x + 1; }).crossings.empty());
    CHECK(search(zero_to_ten, 0, [](double) { return 0.0; }).crossings.empty());
}

TEST_CASE("each of several flips is found, also where a scanned point lies on one") {
    const auto sine = [](double x) { return std::sin(x); };  // at pi, 2 pi, 3 pi
    const BreakevenResult r = search(KeyRange("key", "1.0", "10.0", false, "key"), 0, sine);
    REQUIRE(r.crossings.size() == 3);
    for (int i = 0; i < 3; ++i) {
        CHECK(std::abs(r.crossings[static_cast<std::size_t>(i)].x - (i + 1) * 3.14159265) < 2e-3);
    }
    // 5 is the middle of the scan, and the difference there exactly zero.
    const BreakevenResult exact = search(zero_to_ten, 0, [](double x) { return x - 5; });
    REQUIRE(exact.crossings.size() == 1);
    CHECK(std::abs(exact.crossings[0].x - 5) < 2e-3);
}

TEST_CASE("whole numbers: the last on one side, the first on the other") {
    const KeyRange range("key", "1", "1000", true, "key");
    const BreakevenResult r = search(range, 0, [](double x) { return x - 42.5; });
    REQUIRE(r.crossings.size() == 1);
    CHECK(r.crossings[0].before == 42);
    CHECK(r.crossings[0].x == 43);
}

TEST_CASE("the open interval is where the interval of the difference holds zero") {
    // Differences have one spread at every x, so the interval of the crossing is that of a mean.
    const double noise = 0.5;
    const BreakevenResult r = search(zero_to_ten, noise, [](double x) { return x - 4; });
    REQUIRE(r.crossings.size() == 1);
    REQUIRE(r.crossings[0].low);
    REQUIRE(r.crossings[0].high);
    const PairedComparison& p = r.scan[0].pairs;
    const double half = p.interval.half_width();
    CHECK(std::abs(*r.crossings[0].high - *r.crossings[0].low - 2 * half) < 2e-2);
    CHECK(*r.crossings[0].low < r.crossings[0].x);
    CHECK(r.crossings[0].x < *r.crossings[0].high);
}

TEST_CASE("two flips that the interval can't tell apart are open over one and the same range") {
    // The far side is well below zero at the lower end, and reaches just above it between two roots.
    const auto hill = [](double x) { return 0.09 - 0.05 * (x - 7) * (x - 7); };
    const BreakevenResult r = search(zero_to_ten, 0.3, hill, 17);
    REQUIRE(r.crossings.size() == 2);
    REQUIRE(r.crossings[0].low);
    REQUIRE(r.crossings[1].low);
    CHECK(*r.crossings[0].low > 3);
    CHECK(std::abs(*r.crossings[0].low - *r.crossings[1].low) < 0.02);
    REQUIRE(r.crossings[0].high);
    REQUIRE(r.crossings[1].high);
    CHECK(*r.crossings[1].high < 10);
    CHECK(std::abs(*r.crossings[0].high - *r.crossings[1].high) < 0.02);
}

TEST_CASE("the crossing's interval covers the truth 95 % of the time") {
    int covered = 0;
    constexpr int trials = 400;
    for (int t = 0; t < trials; ++t) {
        const BreakevenResult r = find_breakeven(zero_to_ten, 2, Better::higher, [&](double x) {
            RandomStream random(17, static_cast<std::uint64_t>(t), "noise");
            std::vector<double> a(10, 0.0);
            std::vector<double> b;
            for (int i = 0; i < 10; ++i) b.push_back(x - 4.2 + random.normal());
            return std::optional(compare_paired(a, b, Better::higher));
        });
        const Crossing& c = r.crossings.at(0);
        covered += c.low && c.high && *c.low <= 4.2 && 4.2 <= *c.high ? 1 : 0;
    }
    CHECK(std::abs(covered / double{trials} - 0.95) < 4 * std::sqrt(0.95 * 0.05 / trials));
}

TEST_CASE("a store's break-even bandwidth is the one of the closed form") {
    // A stalls C = 1 TB / 10 GB/s = 100 s in 1,000 s of training: goodput 1000/1100. B saves every 2,000 s
    // through a store of w: 2000/(2000 + 1 TB / w). Equal at w = 5 GB/s.
    const auto goodput = [](const std::vector<std::string>& settings) {
        TrialOptions options = options_of(stalls);
        options.metrics = {"goodput"};
        ScenarioChanges changes;
        changes.settings = settings;
        return run_trials(options, {changes})[0]->values[0];
    };
    const std::vector<double> a = goodput({});
    const KeyRange range("storage.server_write_bandwidth", "1 GB/s", "20000 MB/s", true, "key");
    const BreakevenResult r = find_breakeven(range, 7, Better::higher, [&](double x) {
        const std::vector<double> b = goodput({"job.checkpoint.interval=2000 s", range.setting(x)});
        return std::optional(compare_paired(a, b, Better::higher));
    });
    REQUIRE(r.crossings.size() == 1);
    CHECK(r.crossings[0].x == doctest::Approx(5).epsilon(0.005));
    CHECK(r.crossings[0].below == Verdict::first);
}

TEST_CASE("ranges have units, whole numbers and logarithms") {
    const KeyRange time("t", "30 s", "2 min", false, "t");
    CHECK(time.high() == doctest::Approx(120));
    CHECK(time.setting(time.at(0.5)) == "t=75 s");
    const KeyRange octaves("n", "1", "64", true, "n");
    CHECK(octaves.whole());
    CHECK(octaves.value(octaves.at(0.5)) == "8");
    const KeyRange real("r", "0.5", "2", false, "r");
    CHECK_FALSE(real.whole());
    CHECK(real.value(real.at(1.0 / 3)) == "1");
    const KeyRange parsed = KeyRange::parse("a.b=5 min:1 h", false, "--over");
    CHECK(parsed.key() == "a.b");
    CHECK(parsed.high() == doctest::Approx(60));
}

TEST_CASE("ranges that are none are refused") {
    CHECK_THROWS_AS(KeyRange("k", "2", "1", false, "k"), ScenarioError);
    CHECK_THROWS_AS(KeyRange("k", "2 s", "2000 ms", false, "k"), ScenarioError);
    CHECK_THROWS_AS(KeyRange("k", "1 s", "2 GB", false, "k"), ScenarioError);
    CHECK_THROWS_AS(KeyRange("k", "0", "2", true, "k"), ScenarioError);
    CHECK_THROWS_AS(KeyRange("k", "fast", "2", false, "k"), ScenarioError);
    CHECK_THROWS_AS(KeyRange::parse("k=1", false, "--over"), ScenarioError);
}
