// Whether a verdict survives the estimates that it rests on, where that has a closed form; what changes cost
// nothing, and what a changed GPU changes.

#include "tools/study/verdict_estimates.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "models/campaign/cost_metrics.h"
#include "tests/tools/stalls.h"
#include "tools/study/upgrades.h"

using namespace railyard;

namespace {

const std::string on_a_network = R"(
[run]
replicas = 1
duration = "2 day"
fidelity = "flow"
[cluster]
nodes = 8
[fabric.compute]
leaf = "qm9700_ndr"
[job]
model = "llama2_13b"
checkpoint = { interval = "1 h" }
[job.parallel]
tensor = 8
data = 8
microbatch = 2
global_batch = 64
sequence_length = 2048
)";

double stalled(double bandwidth) {
    return 1000 / (1000 + 1000 / bandwidth);
}

// Compares the estimated store, a, with one whose bandwidth somebody has measured, b.
VerdictEstimates against(double bandwidth) {
    const ScenarioChanges measured{
        .settings = {"storage.server_write_bandwidth=" + std::to_string(bandwidth) + " GB/s"}};
    return verdict_estimates(options_of(stalls), {"a", stalls, "a.toml", {}},
                             {"b", stalls, "b.toml", measured},
                             {"goodput", Better::higher, stalled(bandwidth) - stalled(10), true});
}

const EstimateEnds& bandwidth_of(const VerdictEstimates& found) {
    REQUIRE_FALSE(found.moving.empty());
    CHECK(found.moving[0].input.name() == "storage.server_write_bandwidth");
    return found.moving[0];
}

UpgradeTable upgrades_of(const std::string& text) {
    return try_upgrades(options_of(text), {}, load_scenario(text, "test.toml"));
}

}  // namespace

TEST_CASE("a verdict between two stores turns where the estimated one overtakes the measured one") {
    const VerdictEstimates found = against(12);
    const EstimateEnds& ends = bandwidth_of(found);
    CHECK(*ends.low == doctest::Approx(stalled(12) - stalled(5)).epsilon(5e-3));
    CHECK(*ends.high == doctest::Approx(stalled(12) - stalled(20)).epsilon(5e-3));
    CHECK(found.turning() == std::vector<std::string>{"storage.server_write_bandwidth"});
    CHECK_FALSE(found.survives());
    CHECK(found.read > found.moving.size());
}

TEST_CASE("a verdict that no end of a range turns survives") {
    const VerdictEstimates found = against(30);
    CHECK(*bandwidth_of(found).high > 0);
    CHECK(found.survives());
}

TEST_CASE("the luck of a few replicas turns no verdict") {
    // A store that is a little faster is better however often nodes fail.
    const auto turning = [](int seed, std::int64_t replicas) {
        std::string text = stalls + R"([failures]
[[failures.cause]]
name = "crash"
remedy = "restart"
[failures.cause.rate_per_node]
value = "0.2 /day"
class = "estimate"
source = "us"
low = "0.05 /day"
high = "1 /day"
)";
        text.replace(text.find("replicas = 1"), 12, "seed = " + std::to_string(seed));
        text.erase(text.find("class = \"estimate\""), text.find("[failures]") - text.find("class"));
        const ScenarioChanges faster{.settings = {"storage.server_write_bandwidth=10.01 GB/s"}};
        TrialOptions options = options_of(text);
        options.replicas = replicas;
        return verdict_estimates(options, {"a", text, "a.toml", {}}, {"b", text, "b.toml", faster},
                                 {"goodput", Better::higher, stalled(10.01) - stalled(10), true})
            .turning()
            .size();
    };
    std::size_t by_few = 0;
    std::size_t by_all = 0;
    for (int seed = 1; seed <= 12; ++seed) {
        by_few += turning(seed, 4);
        by_all += turning(seed, 60);
    }
    CHECK(by_few > 0);
    CHECK(by_all == 0);
}

TEST_CASE("one design's answer changes by the closed form at both ends") {
    const VerdictEstimates found =
        answer_estimates(options_of(stalls), {"a", stalls, "a.toml", {}}, "goodput");
    CHECK(*bandwidth_of(found).low == doctest::Approx(stalled(5) - stalled(10)).epsilon(5e-3));
    CHECK(found.survives());
}

TEST_CASE("money hangs on its prices too") {
    const std::string priced = stalls + "[cost]\n";
    const Scenario s = load_scenario(priced, "test.toml");
    CHECK(uncertain_inputs(s, "goodput").size() == s.estimates.size());
    const std::vector<UncertainInput> inputs = uncertain_inputs(s, "cost_per_year");
    CHECK(std::ranges::any_of(inputs, [](const UncertainInput& input) {
        return input.name() == "cost.price.h100_8gpu_node";
    }));
    const VerdictEstimates found =
        answer_estimates(options_of(priced), {"a", priced, "a.toml", {}}, "cost_per_year");
    REQUIRE_FALSE(found.moving.empty());
    CHECK(found.moving[0].input.name() == "cost.price.h100_8gpu_node");
    CHECK(*found.moving[0].low < 0);
    CHECK(*found.moving[0].high > 0);
}

TEST_CASE("what costs nothing is tried, and stands before what money buys") {
    const UpgradeTable table = upgrades_of(on_a_network);
    const auto tried = [&](const std::string& key) {
        return std::ranges::any_of(
            upgrade_candidates(load_scenario(on_a_network, "test.toml")),
            [&](const Upgrade& u) { return u.free && u.settings[0].starts_with(key + "="); });
    };
    for (const char* key :
         {"fabric.compute.routing", "fabric.compute.queue_pairs", "job.parallel.order",
          "job.parallel.microbatch", "job.parallel.recompute", "job.checkpoint.interval",
          "job.checkpoint.mode"}) {
        CAPTURE(key);
        CHECK(tried(key));
    }
    CHECK(std::ranges::is_partitioned(table.effects,
                                      [](const UpgradeEffect& e) { return e.upgrade.free; }));
    REQUIRE(table.contest);
    CHECK(table.contest->difference.pairs.difference <=
          0);  // steps a day, the second's less the best's
}

TEST_CASE("another kind of network comes with switches of its own") {
    const UpgradeTable table = upgrades_of(on_a_network);
    CHECK(std::ranges::any_of(table.effects, [](const UpgradeEffect& e) {
        return e.upgrade.settings[0] == "fabric.compute.kind=roce";
    }));
}

TEST_CASE("launches are the CPU's and the framework's: no GPU makes them longer") {
    StandaloneCatalogue own;
    const Node first = read_node(own.catalogue, "dgx_h100");
    int nodes = 0;
    for (const std::string& name : Catalogue::names("node")) {
        if (!own.catalogue.has("node", name, "gpu")) continue;
        const Node node = read_node(own.catalogue, name);
        CAPTURE(name);
        CHECK(node.gpu.layer_launch_forward == first.gpu.layer_launch_forward);
        CHECK(node.gpu.layer_launch_backward == first.gpu.layer_launch_backward);
        ++nodes;
    }
    CHECK(nodes > 5);
}

TEST_CASE("the estimates that an answer hangs on come first, and those that don't not at all") {
    TrialOptions like = options_of(stalls);
    like.replicas = 2;
    const std::vector<EstimateEffect> effects = rank_estimates(like, {"", stalls, "a.toml", {}});
    REQUIRE_FALSE(effects.empty());
    CHECK(effects[0].estimate.path == "storage.server_write_bandwidth");
    // Goodput is the time in steps, which here are all that a job has to do with its time.
    REQUIRE(effects[0].low);
    CHECK(
        effects[0].low->goodput ==
        doctest::Approx(stalled(10 * effects[0].estimate.low_factor) - stalled(10)).epsilon(1e-3));
    CHECK(effects[0].low->speed ==
          doctest::Approx(effects[0].low->goodput / stalled(10)).epsilon(1e-3));
    for (std::size_t i = 1; i < effects.size(); ++i)
        CHECK(effects[i - 1].swing() >= effects[i].swing());
    CHECK(effects.back().swing() > 0);
}

TEST_CASE("the leading estimates are ranked over all replicas, not over the few that found them") {
    const std::string failing = stalls + R"(
[failures]
profile = "meta_rsc1"
rate_scale = 100
)";
    ScenarioChanges as_is;
    as_is.settings = {"run.replicas=8"};
    TrialOptions like = options_of(failing);
    like.replicas = 6;
    const std::vector<EstimateEffect> effects =
        rank_estimates(like, {"", failing, "a.toml", as_is});
    REQUIRE(effects.size() > 3);
    like.metrics = {"goodput"};
    ScenarioChanges low = as_is;
    low.perturbations = {{effects[0].estimate.path, effects[0].estimate.low_factor}};
    const auto trials = run_trials(like, {as_is, low});
    REQUIRE(effects[0].low);
    CHECK(trials[0]->values[0].size() == 6);
    CHECK(effects[0].low->goodput == trials[1]->summary(0).mean - trials[0]->summary(0).mean);
}

TEST_CASE("an end of a range that is the value itself changes nothing") {
    ScenarioChanges as_is;
    as_is.settings = {"storage.server_write_bandwidth.high=10 GB/s"};
    TrialOptions like = options_of(stalls);
    like.replicas = 1;
    const std::vector<EstimateEffect> effects = rank_estimates(like, {"", stalls, "a.toml", as_is});
    REQUIRE_FALSE(effects.empty());
    CHECK(effects[0].estimate.high_factor == 1);
    REQUIRE(effects[0].high);
    CHECK(effects[0].high->goodput == 0);
    CHECK(effects[0].high->speed == 0);
    CHECK(effects[0].low->goodput < 0);
}
