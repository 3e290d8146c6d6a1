// Which inputs decide a scenario's answer, where the answer has a closed form; keys that change nothing; what
// the next change would return.

#include "tools/study/sensitivity.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/tools/stalls.h"
#include "tools/study/dead_knobs.h"
#include "tools/study/upgrades.h"

using namespace railyard;

namespace {

Sensitivity study(std::int64_t trajectories, std::int64_t samples) {
    const Scenario s = load_scenario(stalls, "test.toml");
    std::vector<UncertainInput> inputs = {
        UncertainInput(KeyRange("job.checkpoint.size", "0.5 TB", "1.5 TB", false, "size")),
        UncertainInput(KeyRange("job.recovery.restart", "0 s", "100 s", false, "restart"))};
    for (const Estimate& estimate : s.estimates) {
        if (estimate.path == "storage.server_write_bandwidth") inputs.emplace_back(estimate);
    }
    REQUIRE(inputs.size() == 3);
    return find_sensitivity(options_of(stalls), {}, 1, inputs, {"goodput", trajectories, samples});
}

const Knob& knob(const std::vector<Knob>& knobs, const std::string& key) {
    const auto found =
        std::find_if(knobs.begin(), knobs.end(), [&](const Knob& k) { return k.key == key; });
    REQUIRE(found != knobs.end());
    return *found;
}

}  // namespace

TEST_CASE("a tornado's bars are the closed form at either end") {
    const Sensitivity r = study(0, 0);
    const auto goodput = [](double stall) { return 1000 / (1000 + stall); };
    CHECK(r.base.mean == doctest::Approx(goodput(100)).epsilon(1e-3));
    REQUIRE(r.deciding == 2);
    CHECK(r.bars[0].input.name() == "storage.server_write_bandwidth");
    CHECK(*r.bars[0].low == doctest::Approx(goodput(200) - goodput(100)).epsilon(5e-3));
    CHECK(*r.bars[0].high == doctest::Approx(goodput(50) - goodput(100)).epsilon(5e-3));
    CHECK(r.bars[1].input.name() == "job.checkpoint.size");
    CHECK(*r.bars[1].low == doctest::Approx(goodput(50) - goodput(100)).epsilon(5e-3));
    // Nothing fails, so nothing is restarted.
    CHECK(r.bars[2].input.name() == "job.recovery.restart");
    CHECK(r.bars[2].largest() == 0);
    CHECK(r.effects.empty());
    CHECK_FALSE(r.fit);
}

TEST_CASE(
    "screening and parts of the variance agree with the tornado, and the fit has nearly all of "
    "it") {
    const Sensitivity r = study(10, 120);
    REQUIRE(r.effects.size() == 2);
    CHECK(r.effects[0].mean > 0);  // bandwidth helps
    CHECK(r.effects[1].mean < 0);  // size hurts
    CHECK(r.effects[0].mean_absolute > r.effects[1].mean_absolute);
    REQUIRE(r.fit);
    CHECK(r.samples_possible == 120);
    // The exact indices of 1 / (1 + S / (1000 b)), S even over 0.5 to 1.5 TB, b even over 5 to 20 GB/s, by
    // quadrature.
    constexpr int n = 200;
    double mean = 0;
    double squares = 0;
    std::vector<double> over_b(n, 0.0);
    std::vector<double> over_s(n, 0.0);
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
            const double s = 0.5 + (i + 0.5) / n;
            const double b = 0.005 + 0.015 * (j + 0.5) / n;
            const double y = 1 / (1 + s / (1000 * b));
            mean += y / (n * n);
            squares += y * y / (n * n);
            over_b[static_cast<std::size_t>(i)] += y / n;
            over_s[static_cast<std::size_t>(j)] += y / n;
        }
    }
    const double variance = squares - mean * mean;
    const auto index = [&](const std::vector<double>& conditional) {
        double part = 0;
        for (const double y : conditional) part += (y - mean) * (y - mean) / n;
        return part / variance;
    };
    CHECK(r.fit->inputs[0].index == doctest::Approx(index(over_s)).epsilon(0.1));
    CHECK(r.fit->inputs[1].index == doctest::Approx(index(over_b)).epsilon(0.1));
    CHECK(r.fit->r2 > 0.95);
    CHECK(r.fit->q2 > 0.95);
}

TEST_CASE("the study is the same on any number of threads") {
    TrialOptions one = options_of(stalls);
    one.threads = 1;
    const std::vector<UncertainInput> inputs = {
        UncertainInput(KeyRange("job.checkpoint.size", "0.5 TB", "1.5 TB", false, "size"))};
    const SensitivityOptions all = {"goodput", 4, 20};
    const Sensitivity a = find_sensitivity(one, {}, 1, inputs, all);
    const Sensitivity b = find_sensitivity(options_of(stalls), {}, 1, inputs, all);
    CHECK(a.effects[0].mean == b.effects[0].mean);
    CHECK(a.fit->inputs[0].index == b.fit->inputs[0].index);
}

TEST_CASE("an end of a range that makes no design is a gap, not an error") {
    const std::vector<UncertainInput> inputs = {
        UncertainInput(KeyRange("job.nodes", "4", "16", false, "nodes"))};  // there are 8
    const Sensitivity r = find_sensitivity(options_of(stalls), {}, 1, inputs, {"goodput", 2, 0});
    REQUIRE(r.deciding == 1);
    CHECK(r.bars[0].low);
    CHECK_FALSE(r.bars[0].high);
    CHECK(r.effects.size() == 1);
}

TEST_CASE("dead keys are found, live ones are not called dead") {
    const std::string text = stalls + R"(
[job.recovery]
restart = "3 min"
[failures]
repair_sigma = 1.0
[cluster.unused]
)";
    CHECK_THROWS_AS(load_scenario(text, "test"),
                    ScenarioError);  // a key that is none is no dead key
    const std::string valid = text.substr(0, text.find("[cluster.unused]"));
    const std::vector<Knob> knobs = turn_knobs(options_of(valid), {});
    CHECK(knob(knobs, "job.recovery.restart").dead);  // nothing fails
    CHECK(knob(knobs, "failures.repair_sigma").dead);
    CHECK_FALSE(knob(knobs, "job.checkpoint.interval").dead);
    CHECK_FALSE(knob(knobs, "storage.server_write_bandwidth").dead);
    CHECK_FALSE(knob(knobs, "run.duration").dead);
    for (const Knob& each : knobs) {
        CHECK(each.key != "title");
        CHECK(each.key != "run.replicas");
    }
    // With failures the restart is alive.
    const std::vector<Knob> failing = turn_knobs(
        options_of(valid), {.settings = {"failures.profile=meta_rsc1", "failures.rate_scale=100"}});
    CHECK_FALSE(knob(failing, "job.recovery.restart").dead);
}

TEST_CASE("twice the storage servers return what the closed form says") {
    const Scenario s = load_scenario(stalls, "test.toml");
    const UpgradeTable table = try_upgrades(options_of(stalls), {}, s);
    const auto found = std::find_if(
        table.effects.begin(), table.effects.end(),
        [](const UpgradeEffect& e) { return e.upgrade.settings[0] == "storage.servers=2"; });
    REQUIRE(found != table.effects.end());
    CHECK(found->goodput.mean == doctest::Approx(1000.0 / 1050 - 1000.0 / 1100).epsilon(5e-3));
    CHECK(found->speed.mean == doctest::Approx(1100.0 / 1050 - 1).epsilon(5e-3));
    CHECK_FALSE(found->cost);
    for (std::size_t i = 1; i < table.effects.size(); ++i) {
        if (table.effects[i - 1].upgrade.free != table.effects[i].upgrade.free) continue;
        CHECK(table.effects[i - 1].speed.mean >= table.effects[i].speed.mean);
    }
}
