// Luck in a network: in every interval, and the same for two designs.

#include "models/campaign/network_draw.h"

#include <doctest/doctest.h>

#include <set>

#include "sim/comparison.h"
#include "tests/models/whole_campaign.h"

using namespace railyard;

namespace {

// 32 nodes on hashed paths, 4 of them spare.
const char* hashed = R"(
[run]
duration = "6 h"
replicas = 16
fidelity = "flow"
[cluster]
node = "dgx_h100"
nodes = 36
[fabric.compute]
kind = "roce"
topology = "fat_tree"
leaf = "sn5600_spectrum4"
nodes_per_leaf = 4
[job]
nodes = 32
model = "llama2_70b"
[job.parallel]
tensor = 8
global_batch = 256
overlap_data = false
[job.checkpoint]
mode = "none"
)";

Scenario with(std::vector<std::string> settings) {
    return scenario(hashed, std::move(settings));
}

std::vector<double> steps_of(const Scenario& s) {
    std::vector<double> out;
    for (const NetworkDraw& draw : s.draws) out.push_back(seconds(draw.step.duration()));
    return out;
}

}  // namespace

TEST_CASE("replicas are dealt out over draws of hashes, and the interval contains fresh ones") {
    const Scenario s = with({});
    REQUIRE(s.draws.size() == 8);
    const std::vector<double> steps = steps_of(s);
    CHECK(std::set<double>(steps.begin(), steps.end()).size() > 1);
    CHECK(seconds(s.job.step.duration()) == range_of_draws(steps).median);
    const WholeCampaign result = run_whole(s);
    for (const ReplicaResult& r : result.each) {
        CHECK(r.metrics[4].name == "step_time");
        CHECK(r.metrics[4].value == steps[static_cast<std::size_t>(r.index) % 8]);
    }
    const Summary step = result.metric("step_time").summary;
    const std::vector<double> many = steps_of(with({"run.network_draws=64", "run.seed=77"}));
    CHECK(step.degrees == 7);
    CHECK(step.ci95.contains(summarise(many).mean));
    // What the luck is worth, over the root of eight.
    CHECK(step.ci95.half_width() > summarise(many).deviation / 3);
}

TEST_CASE("threads measure steps on draws, and find the same") {
    const std::vector<std::string> packets = {"run.fidelity=packet",
                                              "run.network_draws=3",
                                              "cluster.nodes=9",
                                              "job.nodes=8",
                                              "fabric.compute.nodes_per_leaf=2",
                                              "job.model=llama2_7b"};
    for (std::vector<std::string> settings : {std::vector<std::string>{}, packets}) {
        settings.push_back(
            "failures.cause=[{name=\"slow\",rate_per_node=\"1 /year\",slows=\"nic\",speed=0.5}]");
        const Scenario alone = load_scenario(hashed, "hashed", {.settings = settings});
        const Scenario shared =
            load_scenario(hashed, "hashed", {.settings = settings, .threads = 4});
        CHECK(alone.draws.size() >= 3);
        CHECK(steps_of(alone) == steps_of(shared));
        for (std::size_t k = 0; k < alone.draws.size(); ++k) {
            CHECK(alone.draws[k].slowed == shared.draws[k].slowed);
        }
    }
}

TEST_CASE("two designs have the same luck") {
    const Scenario a = with({});
    const Scenario b = with({"job.checkpoint.mode=sync", "run.replicas=3"});
    CHECK(steps_of(a) == steps_of(b));
    for (std::size_t k = 0; k < 8; ++k) CHECK(a.draws[k].nodes == b.draws[k].nodes);
    CHECK(steps_of(a) != steps_of(with({"run.seed=2"})));
}

TEST_CASE(
    "a re-hash is no verdict: spares that only hash anew differ by less than their interval") {
    const Scenario a = with({"run.replicas=8"});
    const Scenario b = with({"run.replicas=8", "cluster.nodes=38"});
    const std::vector<double> of_a = steps_of(a);
    const std::vector<double> of_b = steps_of(b);
    CHECK(of_a != of_b);
    CHECK(compare_paired(of_a, of_b, Better::lower).verdict == Verdict::undecided);
}

TEST_CASE("a hash seed that is given is one draw, and spares are then where they always were") {
    const Scenario s = with({"fabric.compute.hash_seed=3"});
    CHECK(s.draws.empty());
    Communicators groups = communicators(s, s.fidelity);
    CHECK(s.job.step.duration() ==
          model_step(s.model, s.plan, groups, s.parameter_bytes, s.optimizer_traffic).duration());
}

TEST_CASE("where nothing is hashed and no node is spare there is no luck") {
    CHECK(with({"run.fidelity=analytic"}).draws.empty());
    CHECK(with({"run.network_draws=1"}).draws.empty());
    for (const char* routing : {"adaptive", "spray", "destination"}) {
        CAPTURE(std::string(routing));
        CHECK(with({"cluster.nodes=32", std::string("fabric.compute.routing=") + routing})
                  .draws.empty());
    }
}

TEST_CASE(
    "a draw's job has as many nodes as the job, all there, and those with faults where they are") {
    Scenario s = with({});
    s.faults = {{Part::nic, 5, 0, 0.5}, {Part::nic, 35, 0, 0.5}};
    std::set<std::vector<std::int64_t>> places;
    for (const NetworkDraw& draw : draw_networks(s)) {
        REQUIRE(draw.nodes.size() == 32);
        CHECK(std::is_sorted(draw.nodes.begin(), draw.nodes.end()));
        const std::set<std::int64_t> nodes(draw.nodes.begin(), draw.nodes.end());
        CHECK(nodes.size() == 32);
        CHECK(nodes.contains(0));
        CHECK(nodes.contains(5));
        CHECK_FALSE(nodes.contains(35));
        CHECK(*nodes.rbegin() < 36);
        places.insert(draw.nodes);
    }
    CHECK(places.size() > 4);
}
