// Power and money of many jobs: energy by hand-worked hours, and the same bill as one job's.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "models/campaign/campaign.h"
#include "tests/scenario_text.h"

using namespace railyard;
using std::chrono_literals::operator""h;
using std::chrono_literals::operator""min;

namespace {

// A node computes for 10 hours of a day, another does nothing.
const std::string one_of_two = cluster_text(2, "1 day") + R"(
[scheduler]
[[jobs.kind]]
name = "train"
gpus = 8
work = "10 h"
restart = "30 min"
limit = "20 h"
)";

const std::string two_kinds_of_nodes = cluster_text(3, "1 day") + R"(
[scheduler]
[[node_group]]
name = "new"
node = "dgx_h100"
nodes = 2
[[node_group]]
name = "old"
node = "dgx_a100"
nodes = 1
[[jobs.kind]]
name = "train"
gpus = 16
work = "10 h"
limit = "20 h"
)";

ReplicaResult run(const Scenario& s) {
    return run_replica(s, 0, false);
}

Picojoules nodes_energy(const ReplicaResult& r) {
    Picojoules sum = 0;
    for (const Picojoules energy : r.energy.nodes) sum += energy;
    return sum;
}

}  // namespace

TEST_CASE(
    "the energy of many jobs' nodes is that of their hours, each at what it did, to the "
    "picojoule") {
    const Scenario s = scenario(one_of_two);
    const ReplicaResult r = run(s);
    const NodePower& node = s.power.node;
    const Watts computing = node.at(Activity::compute);
    const Watts idle = node.at(Activity::idle);
    CHECK(drawn(r, Category::productive) == energy_of(computing, 10h));
    CHECK(drawn(r, Category::restart) == energy_of(idle, 30min));
    CHECK(drawn(r, Category::idle) == energy_of(idle, 13h + 30min + 24h));
    CHECK(nodes_energy(r) ==
          energy_of(computing, 10h) + energy_of(idle, 30min) + energy_of(idle, 37h + 30min));
    CHECK(r.energy.network == energy_of(s.power.network, 24h));
    CHECK(metric(r, "energy") ==
          doctest::Approx(s.power.cooling.pue * joules(r.energy.total())).epsilon(1e-12));
    CHECK(metric(r, "power_mean") == doctest::Approx(metric(r, "energy") / 86400).epsilon(1e-12));
    const double steady = idle.value + s.power.network.value + s.power.storage.value;
    CHECK(metric(r, "power_peak") ==
          doctest::Approx(s.power.cooling.pue * (computing.value + steady)).epsilon(1e-6));
}

TEST_CASE("half a node's GPUs draw half of their node's power") {
    const Scenario s = scenario(one_of_two, {"jobs.kind.0.gpus=4"});
    const ReplicaResult r = run(s);
    CHECK(drawn(r, Category::productive) == energy_of(s.power.node.at(Activity::compute), 10h) / 2);
    CHECK(drawn(r, Category::idle) ==
          energy_of(s.power.node.at(Activity::idle), 48h) -
              energy_of(s.power.node.at(Activity::idle), 10h + 30min) / 2);
}

TEST_CASE("each kind of node draws its own power, also under one job") {
    const Scenario s = scenario(two_kinds_of_nodes);
    const ReplicaResult r = run(s);
    const std::vector<std::vector<NodeDraw>>& draws = s.world->power.draws;
    const Watts h100 = draws[0][0].node.at(Activity::compute);
    const Watts a100 = draws[1][0].node.at(Activity::compute);
    CHECK(h100.value > 1.4 * a100.value);
    CHECK(drawn(r, Category::productive) == energy_of(h100, 20h));
    CHECK(drawn(r, Category::idle) == energy_of(draws[0][0].node.at(Activity::idle), 28h) +
                                          energy_of(draws[1][0].node.at(Activity::idle), 24h));
    // A job over all three nodes.
    const Scenario all = scenario(two_kinds_of_nodes, {"jobs.kind.0.gpus=24"});
    CHECK(drawn(run(all), Category::productive) == energy_of(h100, 20h) + energy_of(a100, 10h));
}

TEST_CASE("a model that fills the cluster draws what it draws as the one job of it") {
    const std::string cluster = cluster_text(8, "1 day");
    const Scenario many = scenario(cluster + llama_among_many());
    const Scenario one = scenario(cluster + llama_as_one_job());
    const ReplicaResult a = run(many);
    const ReplicaResult b = run(one);
    for (const Category c : {Category::productive, Category::exposed_communication,
                             Category::pipeline_bubble, Category::straggler_wait}) {
        CAPTURE(category_name(c));
        CHECK(drawn(b, c) > 0);
        CHECK(joules(drawn(a, c)) == doctest::Approx(joules(drawn(b, c))).epsilon(1e-4));
    }
    CHECK(metric(a, "energy") == doctest::Approx(metric(b, "energy")).epsilon(1e-5));
    CHECK(metric(a, "power_peak") == doctest::Approx(metric(b, "power_peak")).epsilon(1e-6));
    CHECK(metric(a, "power_swing") == doctest::Approx(metric(b, "power_swing")).epsilon(1e-6));
    CHECK(metric(a, "power_design") == metric(b, "power_design"));
}

TEST_CASE("a power cap makes work longer by the law of one job's, and cheaper") {
    const Scenario usual = scenario(one_of_two);
    const Scenario capped = scenario(one_of_two, {"power.gpu_cap=500 W"});
    const double speed = capped.power.node.gpu.speed_at(Watts{500});
    CHECK(speed < 0.9);
    const ReplicaResult a = run(usual);
    const ReplicaResult b = run(capped);
    const auto productive = [](const ReplicaResult& r) {
        return static_cast<double>(r.ledger.booked(Category::productive));
    };
    CHECK(productive(b) == doctest::Approx(productive(a) / speed).epsilon(1e-9));
    CHECK(drawn(b, Category::productive) < drawn(a, Category::productive));
}

TEST_CASE("the peak knows which jobs ran at the same time") {
    const std::string second = std::string(one_of_two) +
                               "[[jobs.kind]]\nname = \"other\"\ngpus = 8\nwork = \"2 h\"\n"
                               "limit = \"20 h\"\nat = \"{}\"\n";
    const auto peak = [&](const char* at) {
        return metric(run(scenario(fmt::format(fmt::runtime(second), at))), "power_peak");
    };
    const Scenario s = scenario(one_of_two);
    const NodePower& node = s.power.node;
    const double more = node.at(Activity::compute).value - node.at(Activity::idle).value;
    CHECK(peak("1 h") - peak("11 h") == doctest::Approx(s.power.cooling.pue * more).epsilon(1e-6));
    CHECK(peak("11 h") == doctest::Approx(metric(run(s), "power_peak")));
}

TEST_CASE("slices draw by their share of the GPU's compute") {
    const Scenario s = scenario(cluster_text(1, "1 day") + R"(
[scheduler]
kind = "kubernetes"
[[node_group]]
name = "cut"
node = "dgx_h100"
nodes = 1
mig = "dynamic"
[[jobs.kind]]
name = "infer"
work = "7 h"
requires.slice = "3g.40gb"
)");
    const ReplicaResult r = run(s);
    const double eighth = joules(energy_of(s.power.node.at(Activity::compute), 7h)) / 8;
    CHECK(joules(drawn(r, Category::productive)) == doctest::Approx(eighth * 3 / 7).epsilon(1e-9));
}

TEST_CASE(
    "a cluster of many jobs costs what one job's does, and its goodput hours share a year of it") {
    const std::string cluster = cluster_text(2, "1 day") + R"(
[cost]
)";
    const Scenario one =
        scenario(cluster + "[job]\nstep.time = \"5 s\"\ncheckpoint.mode = \"none\"\n");
    const std::string jobs = R"(
[scheduler]
[[jobs.kind]]
name = "train"
gpus = 8
work = "10 h"
restart = "30 min"
limit = "20 h"
)";
    const Scenario many = scenario(cluster + jobs);
    const ReplicaResult a = run(many);
    const ReplicaResult b = run(one);
    CHECK(metric(a, "cost_capital") == metric(b, "cost_capital"));
    CHECK(metric(a, "cost_capital") > 2 * 250e3);
    const CampaignUse use = usage_of(many, a);
    CHECK(use.goodput_gpu_hours == doctest::Approx(80));
    const double hours_a_year = 80 * 365.0;
    CHECK(metric(a, "cost_per_goodput_gpu_hour") ==
          doctest::Approx(metric(a, "cost_per_year") / hours_a_year).epsilon(1e-9));
    // All that differs by a day of the two is energy.
    const YearlyCost year_a =
        yearly_cost(many.cost->plan, typical_prices(many.cost->plan.prices), use);
    const YearlyCost year_b =
        yearly_cost(one.cost->plan, typical_prices(one.cost->plan.prices), usage_of(one, b));
    CHECK(year_a.kept == year_b.kept);
    constexpr double kwh_price = 0.08;
    const double kwh = (metric(b, "energy") - metric(a, "energy")) / joules_per_kilowatt_hour;
    CHECK(year_b.used - year_a.used > 0.5 * 365 * kwh * kwh_price);
    const auto energy = static_cast<std::size_t>(UsedLine::energy);
    CHECK(use.used[energy] == doctest::Approx(metric(a, "energy") / joules_per_kilowatt_hour));
}

TEST_CASE("nodes of each kind are bought, and those that went to repair are paid for") {
    const Scenario s = scenario(std::string(two_kinds_of_nodes) + R"(
[cost]
[failures]
random = false
[[failures.cause]]
name = "gpu_dies"
rate_per_node = "1 /year"
remedy = "replace"
repair_time = "2 h"
[[inject]]
at = "2 h"
cause = "gpu_dies"
node = 0
[[inject]]
at = "5 h"
cause = "gpu_dies"
node = 2
)");
    const auto quantity = [&](const std::string& what) {
        for (const CostLine& line : s.cost->plan.capital) {
            if (line.what == what) return line.quantity;
        }
        return 0.0;
    };
    CHECK(quantity("dgx_h100 nodes") == 2);
    CHECK(quantity("dgx_a100 nodes") == 1);
    const ReplicaResult r = run(s);
    REQUIRE(r.repairs.size() == 1);
    const CampaignUse use = usage_of(s, r);
    CHECK(use.used[static_cast<std::size_t>(UsedLine::repair_visits)] ==
          static_cast<double>(r.repairs[0]));
    CHECK(r.repairs[0] >= 1);
    CHECK_FALSE(s.cost->plan.rental.has_value());
}

TEST_CASE("what of power and money many jobs can't have is said plainly") {
    CHECK(refused(one_of_two,
                  {"facility.inlet_temperature=44.9 degC", "facility.thermal_resistance=0.5 K/W"})
              .find("switch off") != std::string::npos);
    CHECK(refused(two_kinds_of_nodes, {"facility.pump.standby=true"}).find("one kind of nodes") !=
          std::string::npos);
    CHECK(refused(two_kinds_of_nodes, {"power.gpu_cap=500 W"}).find("one kind of nodes") !=
          std::string::npos);
    CHECK(refused(two_kinds_of_nodes, {"cost.parts_covered=false"}).find("several kinds") !=
          std::string::npos);
    CHECK(refused(two_kinds_of_nodes, {"facility.pue=1.2"}).empty());
}
