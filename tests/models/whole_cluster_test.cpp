// Jobs as large as their cluster, on fabrics that could carry everything: only hashing may slow them down.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "models/campaign/scenario.h"

using namespace railyard;

namespace {

// One draw of a network without oversubscription, of three tiers.
const char* whole = R"(
[run]
duration = "6 h"
replicas = 1
fidelity = "flow"
network_draws = 1
[cluster]
node = "dgx_h100"
nodes = 512
[fabric.compute]
kind = "infiniband"
topology = "fat_tree"
leaf = "qm9700_ndr"
[job]
nodes = 512
model = "llama2_70b"
[job.parallel]
tensor = 8
global_batch = 4096
overlap_data = false
[job.checkpoint]
mode = "none"
)";

// ms
double exposed(const std::string& routing, std::vector<std::string> settings) {
    ScenarioChanges changes;
    changes.settings = std::move(settings);
    changes.settings.push_back("fabric.compute.routing=" + routing);
    const Scenario s = load_scenario(whole, "whole", changes);
    return 1e3 * seconds(s.job.step.exposed_communication);
}

}  // namespace

TEST_CASE("packets that take any path collide on none, whatever the hashes") {
    const double spread = exposed("spray", {"fabric.compute.hash_seed=1"});
    for (int seed = 1; seed <= 6; ++seed) {
        const std::string setting = fmt::format("fabric.compute.hash_seed={}", seed);
        CAPTURE(seed);
        CHECK(exposed("adaptive", {setting}) == doctest::Approx(spread).epsilon(1e-6));
        CHECK(exposed("spray", {setting}) == doctest::Approx(spread).epsilon(1e-6));
        CHECK(exposed("ecmp", {setting}) > 1.3 * spread);
    }
}

TEST_CASE("a job that fills its cluster is as fast as in a larger one") {
    const std::vector<std::string> settings = {"fabric.compute.leaf=q3400_xdr", "job.nodes=12288",
                                               "job.parallel.global_batch=98304"};
    for (const char* routing : {"adaptive", "ecmp", "destination"}) {
        CAPTURE(routing);
        std::vector<std::string> full = settings;
        std::vector<std::string> roomy = settings;
        full.emplace_back("cluster.nodes=12288");
        roomy.emplace_back("cluster.nodes=12384");
        CHECK(exposed(routing, full) == doctest::Approx(exposed(routing, roomy)).epsilon(0.02));
    }
}
