// Cables, NICs and switches that die or become slow in mid-campaign: who is slowed, who stands still.

#include <doctest/doctest.h>

#include <algorithm>

#include "models/campaign/campaign.h"
#include "models/collective/cables_used.h"
#include "tests/scenario_text.h"

using namespace railyard;

namespace {

// Leaves of 4 nodes, each with 4 cables to each of two spines: a ring over two leaves fills all 8.
const std::string cluster = R"(
[run]
duration = "2 day"
fidelity = "flow"
[cluster]
nodes = 64
[fabric.compute]
topology = "fat_tree"
nodes_per_leaf = 4
oversubscription = 4
routing = "spray"
[failures]
random = false
)";

std::string job_on(std::int64_t nodes, const std::string& more = "") {
    return "[job]\nmodel = \"llama2_13b\"\nnodes = " + std::to_string(nodes) + "\n" + more +
           R"([job.parallel]
tensor = 8
global_batch = 64
zero = 3
[job.checkpoint]
mode = "none"
)";
}

std::string kind_on(std::int64_t nodes, const std::string& name) {
    return "[[jobs.kind]]\nname = \"" + name + "\"\ngpus = " + std::to_string(8 * nodes) + R"(
model = "llama2_13b"
steps = 100000000
[jobs.kind.parallel]
tensor = 8
global_batch = 64
zero = 3
)";
}

std::string outage(const std::string& what, const std::string& at, const std::string& lasts = "") {
    return "[[inject]]\n" + what + "\nat = \"" + at + "\"\n" +
           (lasts.empty() ? "" : "duration = \"" + lasts + "\"\n");
}
const std::string dead_spine = "part = \"spine-0\"";

ReplicaResult run(const std::string& text) {
    return run_replica(load_scenario(text, "network parts"), 0, true);
}

double share(const ReplicaResult& r, Category category) {
    return r.ledger.fraction(category);
}

// Outages of all cables between the job's leaves and the spine, from the start.
std::string same_from_the_start(std::int64_t leaves) {
    std::string out;
    for (std::int64_t leaf = 0; leaf < leaves; ++leaf) {
        for (int cable = 0; cable < 4; ++cable) {
            out += "[[fabric.compute.fault]]\nfrom = \"leaf-" + std::to_string(leaf) +
                   "\"\nto = \"spine-0\"\ncapacity = 0.0\n";
        }
    }
    return out;
}

}  // namespace

TEST_CASE("a job on what is left takes what it takes where that was never there") {
    const double sound = metric(run(cluster + job_on(8)), "steps");
    const double never = metric(run(cluster + same_from_the_start(2) + job_on(8)), "steps");
    const double lost = metric(run(cluster + job_on(8) + outage(dead_spine, "0 s")), "steps");
    CHECK(never < 0.9 * sound);
    CHECK(lost == doctest::Approx(never).epsilon(1e-4));
    // A day of two.
    const double mended =
        metric(run(cluster + job_on(8) + outage(dead_spine, "5 h", "24 h")), "steps");
    CHECK(mended == doctest::Approx((sound + never) / 2).epsilon(1e-3));
}

TEST_CASE("one job and one of many lose the same to a dead spine") {
    const ReplicaResult one = run(cluster + job_on(8) + outage(dead_spine, "5 h", "24 h"));
    const ReplicaResult many =
        run(cluster + "[scheduler]\n" + kind_on(8, "a") + outage(dead_spine, "5 h", "24 h"));
    // The nodes that no job holds are spares there, and idle here.
    CHECK(share(one, Category::degraded) > 0.01);
    CHECK(share(many, Category::degraded) ==
          doctest::Approx(share(one, Category::degraded)).epsilon(1e-3));
    CHECK(share(many, Category::productive) ==
          doctest::Approx(share(one, Category::productive)).epsilon(1e-3));
}

TEST_CASE("who sends nothing over the part goes on as if nothing had happened") {
    const std::string on_one_leaf = cluster + "[scheduler]\n" + kind_on(4, "a");
    const ReplicaResult sound = run(on_one_leaf);
    for (const std::string& part :
         {dead_spine, std::string("part = \"leaf-1\""), std::string("part = \"node-5.nic-0\""),
          std::string("from = \"leaf-0\"\nto = \"spine-1\"")}) {
        const ReplicaResult r = run(on_one_leaf + outage(part, "5 h", "24 h"));
        CHECK(r.outcome == sound.outcome);
        CHECK(metric(r, "network_outages") == 1);
    }
    const std::string two = on_one_leaf + kind_on(8, "b");
    const ReplicaResult r = run(two + outage(dead_spine, "5 h", "24 h"));
    CHECK(metric(r, "degraded_kind_a") == 0);
    CHECK(metric(r, "degraded_kind_b") > 0.1);
}

TEST_CASE("a cable at half its rate is between a sound one and a dead one") {
    std::string adaptive = cluster;
    adaptive.replace(adaptive.find("\"spray\""), 7, "\"adaptive\"");
    const auto steps = [&](const std::string& more) {
        return metric(run(adaptive + job_on(8) + more), "steps");
    };
    const std::string cable = "from = \"leaf-0\"\nto = \"spine-0\"\n";
    const double sound = steps("");
    const double slow = steps(outage(cable + "speed = 0.5", "0 s"));
    const double dead = steps(outage(cable, "0 s"));
    CHECK(dead < slow);
    CHECK(slow < sound);
    // Where outages overlap, the worst counts.
    CHECK(steps(outage(cable + "speed = 0.5", "0 s") + outage(cable, "0 s")) == dead);
    // Who sprays evenly waits for the slow cable, and would be better off without it.
    const ReplicaResult even = run(cluster + job_on(8) + outage(cable + "speed = 0.5", "0 s"));
    CHECK(metric(even, "steps") < dead);
}

TEST_CASE("without another way a job stands still until the part is mended") {
    for (const std::string part : {"leaf-1", "node-5.nic-0"}) {
        const std::string out = outage("part = \"" + part + "\"", "5 h", "24 h");
        const ReplicaResult one = run(cluster + job_on(8) + out);
        const ReplicaResult many = run(cluster + "[scheduler]\n" + kind_on(8, "a") + out);
        // 24 of 48 hours, of 8 of 64 nodes, but for the step that was under way.
        CHECK(share(one, Category::storm_stall) == doctest::Approx(0.5 / 8).epsilon(1e-3));
        CHECK(share(many, Category::storm_stall) == doctest::Approx(0.5 / 8).epsilon(1e-3));
        CHECK(share(many, Category::lost_work) == 0);
        CHECK(metric(many, "network_stalls") == 1);
        for (const ReplicaResult* r : {&one, &many}) {
            const auto event = std::ranges::find_if(
                r->log, [](const CampaignEvent& e) { return std::string(e.kind) == "no_path"; });
            REQUIRE(event != r->log.end());
            CHECK(event->cause.find(part) != std::string::npos);
        }
    }
}

TEST_CASE("what is never mended and has no other way is in the stuck report") {
    std::string endless = cluster;
    endless.replace(endless.find("duration = \"2 day\""), 18, "");
    const std::string out = outage("part = \"leaf-1\"", "1 h");
    std::string many = kind_on(8, "a");
    many.replace(many.find("100000000"), 9, "1000000");
    const ReplicaResult of_many = run(endless + "[scheduler]\n" + many + out);
    CHECK(of_many.ending == Ending::stuck);
    CHECK(of_many.stuck_report.find("leaf-1 is out") != std::string::npos);
    const ReplicaResult one = run(endless + job_on(8, "length = \"2 day\"\n") + out);
    CHECK(one.ending == Ending::stuck);
    CHECK(one.stuck_report.find("leaf-1 is out") != std::string::npos);
}

TEST_CASE("jobs that share the links that are left wait for each other") {
    std::string wide = cluster;
    wide.replace(wide.find("oversubscription = 4"), 20, "oversubscription = 2");
    // Both on leaves 0 and 1: two rings fill half of the 16 cables each, and all of what one spine leaves.
    const std::string two = wide + R"([scheduler]
topology = "none"
[[jobs.kind]]
name = "first"
gpus = 16
work = "1 min"
)" + kind_on(4, "a") + kind_on(4, "b");
    const ReplicaResult sound = run(two);
    const ReplicaResult lost = run(two + outage(dead_spine, "5 h", "24 h"));
    CHECK(share(sound, Category::contention) == 0);
    CHECK(share(lost, Category::contention) > 0.001);
}

TEST_CASE("parts of a cause fail at their rate and are mended") {
    const std::string text = cluster + job_on(8) + R"([[failures.cause]]
name = "spines"
network_part = "spine"
rate_per_part = "1 /day"
remedy = "reset"
reset_time = "2 h"
)";
    std::string random = text;
    random.replace(random.find("random = false"), 14, "");
    const Scenario s = load_scenario(random, "network parts");
    double outages = 0;
    double degraded = 0;
    constexpr int replicas = 100;
    for (int i = 0; i < replicas; ++i) {
        const ReplicaResult r = run_replica(s, i, false);
        outages += metric(r, "network_outages");
        degraded += share(r, Category::degraded);
    }
    // Two spines for two days: four on average, Poisson.
    CHECK(outages / replicas == doctest::Approx(4).epsilon(0.15));
    CHECK(degraded > 0);
    CHECK(metric(run(text), "network_outages") == 0);
}

TEST_CASE("a flap of a NIC's cable costs a job on it as long as it lasts, and no more") {
    for (const std::int64_t lasts : {2, 7}) {
        const std::string flap =
            outage("from = \"node-0.nic-0\"\nto = \"leaf-0\"", "1 h", std::to_string(lasts) + " s");
        const ReplicaResult flapped = run(cluster + job_on(8) + flap);
        // 8 of 64 nodes, for so long of two days.
        CHECK(share(flapped, Category::storm_stall) ==
              doctest::Approx(static_cast<double>(lasts) / (8 * 172800.0)).epsilon(1e-9));
        CHECK(share(flapped, Category::degraded) == 0);
    }
}

TEST_CASE("cables of a kind of optics flap, become dirty and die at their kind's rates") {
    std::string with_optics = cluster;
    const std::string table = "[fabric.compute]\n";
    with_optics.insert(with_optics.find(table) + table.size(),
                       "endpoint_optics = \"dr\"\nswitch_optics = \"cpo\"\n");
    const Scenario s = load_scenario(with_optics + job_on(8), "optics");
    const auto cause = [&](const std::string& name) -> const NetworkCause& {
        const auto found = std::ranges::find_if(
            s.network_faults.causes, [&](const NetworkCause& of) { return of.cause.name == name; });
        REQUIRE(found != s.network_faults.causes.end());
        return *found;
    };
    CHECK(cause("endpoint_cable_flap").parts.size() == 64 * 8);
    CHECK(cause("switch_cable_flap").parts.size() == 16 * 8);
    CHECK(cause("endpoint_cable_flap").speed == 0);
    const ClusterNetwork& network = s.networks[0];
    REQUIRE(network.endpoint_optics);
    const double left = cause("endpoint_cable_dirty").speed;
    CHECK(left > 0.9);
    CHECK(left < 1);
    CHECK(cause("switch_cable_dead").cause.reset_time == network.switch_optics->repair_time);
    const auto dead = std::ranges::find_if(
        s.causes, [](const FailureCause& of) { return of.name == "endpoint_cable_dead"; });
    REQUIRE(dead != s.causes.end());
    CHECK(dead->remedy == Remedy::replace);
}

TEST_CASE("a flap stops a job until its transport comes through, or ends it when that gives up") {
    for (const char* kind : {"roce", "efa", "ultra_ethernet"}) {
        CAPTURE(kind);
        std::string with_optics = cluster;
        const std::string table = "[fabric.compute]\n";
        with_optics.insert(with_optics.find(table) + table.size(),
                           std::string("endpoint_optics = \"dr\"\nkind = \"") + kind + "\"\n");
        const Scenario s = load_scenario(with_optics + job_on(8), "flap");
        const ClusterNetwork& network = s.networks[0];
        StandaloneCatalogue own = s.open_catalogue();
        const auto named = [](const auto& of) { return of.name == "endpoint_cable_flap"; };
        const auto stall = std::ranges::find_if(
            s.network_faults.causes, [&](const NetworkCause& of) { return named(of.cause); });
        const auto end = std::ranges::find_if(s.causes, named);
        const auto still =
            stands_still(own.catalogue, network.packets, network.endpoint_optics->flap_time);
        CHECK((stall != s.network_faults.causes.end()) == still.has_value());
        CHECK((end != s.causes.end()) == !still.has_value());
        if (still) {
            CHECK(stall->cause.reset_time >= *still);
            CHECK(stall->cause.reset_time < *still + std::chrono::microseconds(1));
        } else {
            CHECK(end->remedy == Remedy::restart);
            CHECK(end->detection < network.endpoint_optics->flap_time);
        }
    }
}

TEST_CASE("sprayed routes use all ways up to their height, others only their own") {
    const Scenario s = load_scenario(cluster + job_on(8), "network parts");
    const Topology& t = s.networks[0].topology;
    const auto used = [&](Routing policy) {
        Router router(t, {.policy = policy});
        CablesUsed cables(t, policy);
        std::vector<Usage> route;
        REQUIRE(router.route(t.nic(0, 0), t.nic(4, 0), 0, route));
        cables.add(t.nic(0, 0), t.nic(4, 0), route);
        const std::vector<bool> all = cables.take();
        return std::count(all.begin(), all.end(), true);
    };
    CHECK(used(Routing::ecmp) == 4);
    CHECK(used(Routing::spray) == 2 + 2 * 8);
    CHECK(used(Routing::adaptive) == 2 + 2 * 8);
}
