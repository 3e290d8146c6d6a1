// What a mix of jobs gets done, and services: jobs that compute and send for a share of their time.

#include <doctest/doctest.h>

#include "models/campaign/campaign.h"
#include "tests/scenario_text.h"

using namespace railyard;

namespace {

ReplicaResult ran(const std::string& text) {
    return run_replica(load_scenario(text, "work", {}), 0, false);
}

const std::string two_kinds = cluster_text(3, "1 day") + R"(
[scheduler]
[[jobs.kind]]
name = "tuning"
gpus = 8
count = 2
work = "10 h"
worth = 5
[[jobs.kind]]
name = "service"
gpus = 8
work = "40 h"
worth_per_gpu_hour = 2
)";

}  // namespace

TEST_CASE("work that is done counts what its kind is worth, and unfinished work in part") {
    const ReplicaResult r = ran(two_kinds);
    CHECK(metric(r, "work_done_kind_tuning") == doctest::Approx(10));
    CHECK(metric(r, "work_done_kind_service") == doctest::Approx(2 * 8 * 24));
    CHECK(metric(r, "work_done") == doctest::Approx(394));
    CHECK(metric(r, "work_per_day") == doctest::Approx(394));
}

TEST_CASE("a cap and a budget that throttles count the work of timed jobs by their clocks") {
    const std::string text = cluster_text(2, "10 day") + R"(
[scheduler]
[power]
[[jobs.kind]]
name = "timed"
count = 4
nodes = 1
length = "5 day"
worth_per_gpu_hour = 1
)";
    CHECK(metric(ran(text), "work_done") == doctest::Approx(4 * 8 * 120));
    std::string held = text;
    held.replace(held.find("[power]\n"), 8, "[power]\nbudget = \"20 kW\"\n");
    const ReplicaResult r = ran(held);
    REQUIRE(metric(r, "power_budget_clock") < 0.95);
    CHECK(metric(r, "work_done") == doctest::Approx(4 * 8 * 120 * metric(r, "power_budget_clock")));
}

TEST_CASE("the cost of a unit of work is a year's cost over a year's work") {
    const ReplicaResult r = ran(std::string(two_kinds) + "[cost]\n");
    CHECK(metric(r, "cost_per_work") == doctest::Approx(metric(r, "cost_per_year") / (394 * 365)));
}

TEST_CASE("GPUs of a service compute for its duty, wait for requests else, and draw less then") {
    const std::string text = cluster_text(1, "1 day") + R"(
[scheduler]
[[jobs.kind]]
name = "service"
gpus = 8
work = "40 h"
)";
    const ReplicaResult busy = ran(text);
    const ReplicaResult served = ran(text + "duty = 0.25\n");
    const double all = static_cast<double>(busy.ledger.total());
    CHECK(static_cast<double>(served.ledger.booked(Category::productive)) ==
          doctest::Approx(0.25 * all));
    CHECK(static_cast<double>(served.ledger.booked(Category::data_wait)) ==
          doctest::Approx(0.75 * all));
    const auto drawn = [](const ReplicaResult& r, Category c) {
        return static_cast<double>(r.energy.nodes[static_cast<std::size_t>(c)]);
    };
    CHECK(drawn(served, Category::productive) ==
          doctest::Approx(0.25 * drawn(busy, Category::productive)));
}

// Each ring alone fills the eight uplinks of both leaves; two of computing c and sending m take
// (c^2 + 2 c m + 2 m^2) / (c + m) in the mean.
TEST_CASE(
    "two services that send half of the time over the same uplinks slow each other by a quarter") {
    const ReplicaResult r = ran(R"(
[run]
replicas = 1
duration = "10 day"
fidelity = "flow"
network_draws = 1
[cluster]
nodes = 4
[fabric.compute]
topology = "fat_tree"
nodes_per_leaf = 2
oversubscription = 2
routing = "spray"
[scheduler]
topology = "none"
[[jobs.kind]]
name = "filler"
gpus = 8
work = "1 h"
[[jobs.kind]]
name = "one"
at = "1 min"
nodes = 2
work = "400 day"
fabric_share = 0.5
[[jobs.kind]]
name = "two"
at = "2 min"
nodes = 2
work = "400 day"
fabric_share = 0.5
)");
    CHECK(metric(r, "contention_kind_one") == doctest::Approx(0.2).epsilon(0.02));
    CHECK(metric(r, "contention_kind_two") == doctest::Approx(0.2).epsilon(0.02));
}
