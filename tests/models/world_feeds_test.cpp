// Breakers, pumps and heat under many jobs: closed forms, and what the one job of a cluster sees of them.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "models/campaign/campaign.h"
#include "models/campaign/feeds.h"
#include "models/facility/facility.h"
#include "tests/scenario_text.h"

using namespace railyard;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""h;

namespace {

// The first interruption.
CampaignEvent first_stop(const ReplicaResult& r) {
    const auto found = std::ranges::find_if(
        r.log, [](const CampaignEvent& e) { return std::string_view(e.kind) == "interruption"; });
    REQUIRE(found != r.log.end());
    return *found;
}

}  // namespace

TEST_CASE("jobs that know nothing of each other's steps add up by their shares of the time") {
    const PowerProfile a({{1s, {10}}, {3s, {2}}});
    const PowerProfile b({{1s, {20}}, {1s, {0}}});
    const PowerProfile sum = independent_sum({a, b}, {5}, {0.5});
    REQUIRE(sum.levels().size() == 4);
    const std::vector<std::pair<double, double>> expected = {
        {7, 0.375}, {15, 0.125}, {27, 0.375}, {35, 0.125}};
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(sum.levels()[i].power.value == doctest::Approx(expected[i].first));
        CHECK(seconds(sum.levels()[i].lasts) == doctest::Approx(expected[i].second));
    }
    CHECK(sum.mean().value == doctest::Approx(a.mean().value + b.mean().value + 5));
    // Levels closer than a grain are as one, and the mean stays.
    const PowerProfile rough = independent_sum(std::vector<PowerProfile>(12, a), {5}, {4});
    CHECK(rough.levels().size() < 30);
    CHECK(rough.mean().value == doctest::Approx(12 * a.mean().value + 5).epsilon(1e-6));
    // All at once at the level that each has for a hundredth of the time: never.
    const PowerProfile rare({{1s, {1}}, {99s, {9}}});
    const PowerProfile many = independent_sum(std::vector<PowerProfile>(500, rare), {}, {1});
    CHECK(many.mean().value == doctest::Approx(500 * rare.mean().value).epsilon(1e-6));
}

TEST_CASE("a breaker carries one job and trips under two, after its curve's time, and takes both") {
    const std::string text = cluster_text(4, "1 day") + R"(
[scheduler]
[facility]
rack_power_max = "60 kW"
[facility.breaker]
rating = "13 kW"
nodes = 2
tolerance = 0.0
reset_time = "2 h"
[[jobs.kind]]
name = "a"
gpus = 8
work = "10 h"
limit = "20 h"
)";
    const std::string second = R"(
[[jobs.kind]]
name = "b"
gpus = 8
at = "1 h"
work = "10 h"
limit = "20 h"
)";
    const ReplicaResult alone = run_replica(scenario(text), 0, true);
    CHECK(metric(alone, "breaker_trips") == 0);
    const Scenario s = scenario(text + second);
    const ReplicaResult r = run_replica(s, 0, true);
    const double load = 2 * s.power.node_step.peak().value / 13000;
    const CampaignEvent stop = first_stop(r);
    CHECK(stop.cause.ends_with("breaker_trip"));
    CHECK(seconds(stop.at.time_since_epoch()) ==
          doctest::Approx(3600 + s.power.breaker->curve.seconds_at(load)).epsilon(1e-9));
    // Both start again behind the other breaker, and trip that after the same time; then behind the first.
    CHECK(metric(r, "breaker_trips") > 1);
    CHECK(metric(r, "interruptions") == 2 * metric(r, "breaker_trips"));
    CHECK(r.ledger.booked(Category::repair) > 0);
}

TEST_CASE("a model's swing trips a breaker of many jobs when it trips that of one job") {
    const std::string cluster = cluster_text(8, "1 day") + R"(
[facility]
rack_power_max = "60 kW"
[facility.breaker]
rating = "14.5 kW"
nodes = 2
)";
    const ReplicaResult one = run_replica(scenario(cluster + llama_as_one_job()), 0, true);
    const ReplicaResult many = run_replica(scenario(cluster + llama_among_many()), 0, true);
    CHECK(first_stop(one).at > Instant(10s));
    CHECK(first_stop(many).at == first_stop(one).at);
}

TEST_CASE("a pump's loss takes a loop's nodes when they are too hot, sooner if they work") {
    const std::string cluster = cluster_text(16, "2 day") + R"(
nodes_per_rack = 4
racks_per_cdu = 2
[facility]
cooling = "direct_liquid"
[facility.pump]
failure_rate = "0 /year"
repair_time = "6 h"
)";
    const auto loses = [](int loop) {
        return fmt::format("[[inject]]\nat = \"10 h\"\ncause = \"pump_loss\"\nnode = {}\n", loop);
    };
    const std::string job = R"(
[job]
nodes = 8
step.time = "5 s"
checkpoint.mode = "none"
)";
    const std::string jobs = R"(
[scheduler]
[[jobs.kind]]
name = "a"
gpus = 64
work = "300 day"
limit = "400 day"
)";
    const ReplicaResult one = run_replica(scenario(cluster + job + loses(0)), 0, true);
    const Scenario s = scenario(cluster + jobs + loses(0));
    const ReplicaResult many = run_replica(s, 0, true);
    CHECK(first_stop(many).at > Instant(10h + 45s));
    CHECK(first_stop(many).at == first_stop(one).at);
    CHECK(first_stop(many).cause.ends_with("pump_loss"));
    CHECK(metric(many, "pump_losses") == 1);
    const double node_hours =
        static_cast<double>(many.ledger.booked(Category::repair)) / 8 / 3.6e12;
    CHECK(node_hours == doctest::Approx(8 * 6).epsilon(1e-2));  // the job is on the other loop's

    const ReplicaResult idle = run_replica(scenario(cluster + jobs + loses(1)), 0, true);
    CHECK(metric(idle, "interruptions") == 0);
    CHECK(metric(idle, "domain_failures") == 1);
    ScenarioChanges changes;
    changes.settings = {"facility.pump.standby=true"};
    const ReplicaResult through =
        run_replica(load_scenario(cluster + jobs + loses(0), "standby", changes), 0, true);
    CHECK(metric(through, "interruptions") == 0);
    CHECK(metric(through, "pump_losses_ridden_through") == 1);
}

TEST_CASE("heat takes from many jobs what it takes from the one job of a cluster") {
    const std::string hot = cluster_text(8, "5 day") + R"(
[facility]
inlet_temperature = "44 degC"
)";
    SUBCASE("with a model") {
        const ReplicaResult one = run_replica(scenario(hot + llama_as_one_job()), 0, false);
        const ReplicaResult many = run_replica(scenario(hot + llama_among_many()), 0, false);
        const double throttled = one.ledger.fraction(Category::throttled);
        CHECK(throttled > 0.005);
        CHECK(many.ledger.fraction(Category::throttled) ==
              doctest::Approx(throttled).epsilon(1e-3));
        CHECK(metric(many, "gpu_clock") == doctest::Approx(metric(one, "gpu_clock")));
        CHECK(metric(many, "energy") == doctest::Approx(metric(one, "energy")).epsilon(1e-3));
    }
    SUBCASE("without one, and with work that ends") {
        const Scenario s = scenario(hot + R"(
[scheduler]
[[jobs.kind]]
name = "a"
gpus = 64
work = "20 h"
limit = "4 day"
)");
        const ReplicaResult r = run_replica(s, 0, false);
        const double speed = metric(r, "gpu_clock");
        CHECK(speed < 0.99);
        CHECK(metric(r, "jct_mean") == doctest::Approx(20 * 3600 / speed).epsilon(1e-6));
        const double day5 = 5 * 24;
        CHECK(r.ledger.fraction(Category::productive) == doctest::Approx(20 / day5).epsilon(1e-9));
        CHECK(r.ledger.fraction(Category::throttled) ==
              doctest::Approx(20 * (1 / speed - 1) / day5).epsilon(1e-6));
    }
}
