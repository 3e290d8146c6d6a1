// What a scenario's cluster is bought and kept for, line by line.

#include <doctest/doctest.h>

#include <cmath>

#include "models/campaign/campaign.h"
#include "tests/scenario_text.h"

using namespace railyard;

namespace {

const std::string priced_nodes = cluster_text(2, "1 day") + R"(
[job]
step.time = "1 s"
checkpoint.mode = "none"
[cost]
)";

// What is bought under this name; 0: nothing.
double quantity_of(const std::vector<CostLine>& lines, std::string_view what) {
    double sum = 0;
    for (const CostLine& line : lines) sum += line.what == what ? line.quantity : 0;
    return sum;
}

double paid_a_year(const Scenario& s) {
    CampaignUse nothing;
    nothing.years = 1;
    nothing.used.assign(s.cost->plan.used.size(), 0);
    return yearly_cost(s.cost->plan, typical_prices(s.cost->plan.prices), nothing).total();
}

bool warned_of(const Scenario& s, std::string_view path) {
    for (const Diagnostic& warning : s.warnings) {
        if (warning.path.starts_with(path)) return true;
    }
    return false;
}

}  // namespace

TEST_CASE("a quote of rent is what owning is compared with") {
    for (const char* of : {"gpu_hour_rental", "gpu_hour_h100_rental"}) {
        CAPTURE(of);
        const std::string quoted = fmt::format("[[quote]]\nname = \"q\"\nof = \"{}\"\n", of);
        const Scenario s = scenario(priced_nodes + quoted + "price = \"2 USD\"\n");
        REQUIRE(s.cost->plan.rental);
        const Price& rent = s.cost->plan.prices[*s.cost->plan.rental];
        CHECK(rent.typical == 2);
        CHECK(rent.origin == "quote q");
        CHECK_FALSE(warned_of(s, "quote"));
        CHECK(paid_a_year(s) == doctest::Approx(paid_a_year(scenario(priced_nodes))));
        // So many GPU-hours are used: 16 for half of a year are beyond the step.
        const Scenario many =
            scenario(priced_nodes + quoted +
                         "price = \"2 USD\"\n[[quote.step]]\nfrom = 70_080\nprice = \"1 USD\"\n",
                     {"cost.utilisation=0.5"});
        CHECK(many.cost->plan.prices[*many.cost->plan.rental].typical == 1);
    }
}

TEST_CASE("an object store on the premises is bought and draws power") {
    const std::string store = "[object_store]\nsystem = \"object\"\nservers = 20\n";
    const Scenario without = scenario(priced_nodes);
    const Scenario with = scenario(priced_nodes + store);
    const double usable = static_cast<double>(with.stores.at(1).capacity.count()) * 1e-12;
    REQUIRE(usable > 0);
    CHECK(quantity_of(with.cost->plan.capital, "object storage with its servers") ==
          doctest::Approx(usable));
    CHECK(with.power.storage.value > without.power.storage.value);
    CHECK(with.cost->idle_kwh_per_year > without.cost->idle_kwh_per_year);
    const Scenario priced =
        scenario(priced_nodes + store, {"cost.price.object_per_server=30 kUSD"});
    CHECK(quantity_of(priced.cost->plan.capital, "object storage with its servers") == 0);
    CHECK(quantity_of(priced.cost->plan.capital, "object storage servers") == 20);
    // A cloud's is nobody's to buy.
    const Scenario cloud = scenario(priced_nodes + "[object_store]\nsystem = \"s3\"\n");
    CHECK(cloud.cost->plan.capital.size() == without.cost->plan.capital.size());
    CHECK(cloud.power.storage.value == without.power.storage.value);
}

TEST_CASE("usable TB on hard disks cost what disks do") {
    const std::string store = "[storage]\nsystem = \"lustre\"\nservers = 4\n";
    const auto price_of = [&](std::vector<std::string> settings) {
        const Scenario s = scenario(priced_nodes + store, std::move(settings));
        for (const CostLine& line : s.cost->plan.capital) {
            if (line.what == "lustre storage with its servers")
                return s.cost->plan.prices[line.price];
        }
        return Price{};
    };
    CHECK(price_of({}).name == "lustre_per_usable_tb");
    CHECK(price_of({"storage.drive=hdd"}).name == "storage_hdd_per_tb");
    CHECK(price_of({"storage.drive=hdd"}).typical < price_of({}).typical);
    CHECK(price_of({"storage.drive=hdd", "cost.price.lustre_per_usable_tb=99 USD/TB"}).typical ==
          99);
}

TEST_CASE("a price of a usable TB has the servers in it, unless they have one of their own") {
    const std::string store = "[storage]\nsystem = \"weka\"\nservers = 8\n";
    const auto bought = [&](std::vector<std::string> settings, const char* what) {
        return quantity_of(scenario(priced_nodes + store, std::move(settings)).cost->plan.capital,
                           what);
    };
    CHECK(bought({}, "weka storage with its servers") > 100);
    CHECK(bought({}, "weka storage servers") == 0);
    const std::string server = "cost.price.weka_per_server=40 kUSD";
    CHECK(bought({server}, "weka storage servers") == 8);
    CHECK(bought({server}, "weka storage with its servers") == 0);
    const std::string terabyte = "cost.price.weka_per_usable_tb=0.2 kUSD/TB";
    CHECK(bought({server, terabyte}, "weka storage servers") == 8);
    CHECK(bought({server, terabyte}, "weka storage") > 100);
}

TEST_CASE("a price is in thousands and millions of all that money is counted in") {
    const auto price = [](const std::string& setting, const std::string& name) {
        const Scenario s = scenario(priced_nodes, {"cost.price." + setting});
        return find_named(s.cost->plan.prices, name)->typical;
    };
    CHECK(price("staff_per_year=12 kUSD/year", "staff_per_year") == 12e3);
    CHECK(price("staff_per_year=3 MUSD/year", "staff_per_year") == 3e6);
    CHECK(price("colo_kw_month=0.2 kUSD/kW/month", "colo_kw_month") == 200);
    CHECK(price("rack=6 kUSD", "rack") == 6000);
    const std::string why = refused(priced_nodes, {"cost.price.staff_per_year=3 kUSD/h"});
    CHECK(why.find("expected a price in USD/year, kUSD/year or MUSD/year") != std::string::npos);
}

TEST_CASE("a node with other GPUs is rented the kW that the power model rates it for") {
    const std::vector<std::string> four = {"cluster.gpus_per_node=4",
                                           "cost.price.dgx_h100_4_gpus=150 kUSD"};
    const Scenario whole = scenario(priced_nodes);
    const Scenario half = scenario(priced_nodes, four);
    REQUIRE(half.power.node.rated < whole.power.node.rated);
    const double fewer = quantity_of(whole.cost->plan.yearly, "colocation") -
                         quantity_of(half.cost->plan.yearly, "colocation");
    const double rated = 2 * (whole.power.node.rated.value - half.power.node.rated.value);
    CHECK(fewer == doctest::Approx(12 * rated * 1e-3).epsilon(0.02));  // and a switch's ports
}

TEST_CASE("cold plates have plumbing for what the nodes are rated for") {
    const auto kilowatts = [](const char* cooling) {
        const Scenario s = scenario(priced_nodes, {fmt::format("facility.cooling={}", cooling)});
        return quantity_of(s.cost->plan.capital, "plumbing of the liquid");
    };
    CHECK(kilowatts("direct_liquid") == doctest::Approx(2 * 10.2));
    CHECK(kilowatts("air") == 0);
}

TEST_CASE("a store that is no servers has none on the networks") {
    const auto on_networks = [](const char* system, std::vector<std::string> more) {
        more.push_back(fmt::format("storage.system={}", system));
        const Scenario s = scenario(priced_nodes, std::move(more));
        std::int64_t most = 0;
        for (const ClusterNetwork& network : s.networks) {
            most = std::max(most, network.topology.spec().servers);
        }
        return most;
    };
    for (const char* system : {"s3", "local_nvme_raid0", "host_memory", "peer_memory"}) {
        CAPTURE(system);
        CHECK(on_networks(system, {"storage.servers=8"}) == 0);
    }
    CHECK(on_networks("weka", {"storage.servers=8"}) == 8);
    CHECK(on_networks("s3", {"storage.network=compute"}) == 1);  // the way out
}

TEST_CASE("where nodes have no NICs for storage, the servers are on the compute network") {
    const std::vector<std::string> amd = {"cluster.node=mi300x_8", "storage.servers=3"};
    const Scenario s = scenario(priced_nodes, amd);
    REQUIRE(s.node.storage_nics == 0);
    CHECK(s.converged);
    CHECK(s.networks[0].topology.spec().servers == 3);
    CHECK(scenario(priced_nodes, {"storage.servers=3"}).networks[0].topology.spec().servers == 0);
    std::vector<std::string> own = amd;
    own.emplace_back("storage.network=own");
    CHECK(warned_of(scenario(priced_nodes, own), "storage.network"));
}

TEST_CASE("what is written on a switch is no estimate") {
    const Scenario s = scenario(priced_nodes);
    REQUIRE(s.networks.back().topology.vertex_count() > 0);
    for (const Estimate& estimate : s.estimates) {
        CAPTURE(estimate.path);
        CHECK_FALSE(estimate.path.ends_with(".port_bandwidth"));
    }
}
