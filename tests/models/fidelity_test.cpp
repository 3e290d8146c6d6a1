#include <doctest/doctest.h>

#include "models/campaign/campaign.h"
#include "tests/scenario_text.h"

using namespace railyard;

namespace {

const char* base = R"(
[run]
duration = "1 day"
replicas = 2
[cluster]
node = "dgx_h100"
nodes = 32
[fabric.compute]
kind = "roce"
topology = "fat_tree"
leaf = "sn5600_spectrum4"
nodes_per_leaf = 4
[job]
model = "llama2_70b"
[job.parallel]
tensor = 8
global_batch = 256
overlap_data = false
[job.checkpoint]
mode = "none"
)";

Scenario with(std::vector<std::string> settings) {
    return scenario(base, std::move(settings));
}

double step_s(const std::vector<std::string>& settings) {
    return seconds(with(settings).job.step.duration());
}

}  // namespace

TEST_CASE("on a network that loses nothing, both fidelities say the same") {
    for (const char* routing : {"spray", "adaptive"}) {
        const Scenario s =
            with({"run.fidelity=flow", std::string("fabric.compute.routing=") + routing,
                  "fabric.compute.topology=rail_optimized", "fabric.compute.nodes_per_leaf=32"});
        CHECK(s.job.step.duration() == s.analytic_step.duration());
    }
}

TEST_CASE("NICs on slower links are as slow without a network") {
    const Scenario s = with({"fabric.compute.nic_bandwidth=200 Gbit/s"});
    CHECK(s.node.nic_bandwidth.bits_per_second() == 194'000'000'000);
    CHECK(s.job.step.duration() == with({"cluster.nic_bandwidth=194 Gbit/s"}).job.step.duration());
}

TEST_CASE("hash collisions cost a step, and queue pairs buy most of it back") {
    const double ideal = step_s({});
    const double one = step_s({"run.fidelity=flow"});
    const double sixteen = step_s({"run.fidelity=flow", "fabric.compute.queue_pairs=16"});
    CHECK(one > 1.02 * ideal);
    CHECK(sixteen > ideal);
    CHECK(sixteen - ideal < 0.2 * (one - ideal));
}

TEST_CASE("tensor-parallel ranks on other nodes are allowed and cost what the network costs") {
    for (const char* fidelity : {"analytic", "flow"}) {
        const std::string run = std::string("run.fidelity=") + fidelity;
        CHECK(step_s({run, "job.parallel.order=data_tensor_pipeline"}) > 1.5 * step_s({run}));
    }
}

TEST_CASE("a broken cable is routed around, more of them cost more, the last one stops the job") {
    const std::vector<std::string> flow = {"run.fidelity=flow", "fabric.compute.routing=spray"};
    const auto broken = [&](const std::string& faults) {
        std::vector<std::string> settings = flow;
        settings.push_back("fabric.compute.fault=[" + faults + "]");
        return with(settings);
    };
    const double whole = step_s(flow);
    std::string most;
    for (int cable = 0; cable < 15; ++cable)
        most += R"({from="leaf-0",to="spine-0",capacity=0.1},)";
    CHECK(seconds(broken(most).job.step.duration()) >= whole);
    const Scenario half = broken(R"({from="node-3.nic-2",to="leaf-0",capacity=0.5})");
    CHECK(seconds(half.job.step.duration()) > 1.02 * whole);
    const char* last = R"({from="node-3.nic-2",to="leaf-0"})";
    const Scenario cut = broken(last);
    CHECK(cut.no_path.find("node-3.nic-2") != std::string::npos);
    // On an ideal network nothing is slow, but nobody gets past a cut.
    const std::string faults = "fabric.compute.fault=[";
    CHECK(with({"run.fidelity=analytic", faults + last + "]"}).no_path == cut.no_path);
    CHECK(with({"run.fidelity=analytic", faults + R"({from="leaf-0",to="spine-0"}])"})
              .no_path.empty());
}

TEST_CASE("a silent fault in one place holds up the whole job, and the ledger has it") {
    for (const char* fidelity : {"analytic", "flow"}) {
        CAPTURE(fidelity);
        const Scenario s = with(
            {std::string("run.fidelity=") + fidelity, "fabric.compute.routing=adaptive",
             R"(cluster.fault=[{part="gpu",node=9,index=1,speed=0.8},{part="nic",node=3,index=2,speed=0.5}])"});
        REQUIRE(s.fault_costs.size() == 2);
        CHECK(s.fault_costs[0] > Duration{});
        CHECK(s.fault_costs[1] > Duration{});
        CHECK(s.job.step.degraded >= std::max(s.fault_costs[0], s.fault_costs[1]));
        const CampaignResult r = run_campaign(s, {});
        const double expected = seconds(s.job.step.degraded) / seconds(s.job.step.duration());
        CHECK(r.ledger[static_cast<std::size_t>(Category::degraded)] ==
              doctest::Approx(expected).epsilon(0.01));
        // On a node that the job does not have it costs nothing.
        const Scenario elsewhere = with({std::string("run.fidelity=") + fidelity, "job.nodes=16",
                                         R"(cluster.fault=[{part="gpu",node=20,speed=0.5}])"});
        CHECK(elsewhere.job.step.degraded == Duration{});
    }
}

TEST_CASE("access control and refused peer-to-peer slow the network, not NVLink") {
    for (const char* fidelity : {"analytic", "flow"}) {
        const std::string run = std::string("run.fidelity=") + fidelity;
        const double sound = step_s({run});
        CHECK(step_s({run, "cluster.acs=true"}) > 1.04 * sound);
        CHECK(step_s({run, "cluster.peer_to_peer=false"}) >= step_s({run, "cluster.acs=true"}));
        // A job of one node has no network to slow.
        const std::vector<std::string> one = {run, "job.nodes=1", "job.parallel.global_batch=1",
                                              "job.parallel.zero=3", "job.model=llama2_13b"};
        std::vector<std::string> one_acs = one;
        one_acs.push_back("cluster.acs=true");
        CHECK(step_s(one) == step_s(one_acs));
        CHECK(step_s({run, "cluster.nvlink=false"}) > 1.5 * sound);
    }
}

TEST_CASE("a network of one's own names its switches as it likes") {
    ScenarioChanges changes;
    changes.must_run = false;
    changes.settings = {"run.fidelity=flow", "cluster.nodes=2", "fabric.compute.topology=custom",
                        "fabric.compute.file=" RAILYARD_ROOT "/tests/models/custom_names.toml"};
    std::string text = base;
    const std::string leaf = "nodes_per_leaf = 4\n";
    text.erase(text.find(leaf), leaf.size());
    const Scenario s = load_scenario(text, "names", changes);
    CHECK(s.networks[0].topology.find("leaf-0").has_value());
}

TEST_CASE("packets say what fair shares say, but for headers and what queues cost") {
    const auto speed = [](const char* fidelity, const char* routing) {
        const Scenario s = with({std::string("run.fidelity=") + fidelity, "cluster.nodes=16",
                                 std::string("fabric.compute.routing=") + routing});
        Communicators groups = communicators(s, s.fidelity);
        return groups.of(Collective::all_gather, 8, 16).network;
    };
    for (const char* routing : {"ecmp", "adaptive", "spray"}) {
        CAPTURE(std::string(routing));
        const double packets = speed("packet", routing);
        const double flows = speed("flow", routing);
        CHECK(packets < 1.05 * flows);
        CHECK(packets > 0.9 * flows);
    }
}

TEST_CASE(
    "a control that deals out a cable unfairly moves a collective no faster than fair shares") {
    const auto rings = [](const char* fidelity, const char* control, int seed) {
        const Scenario s = with({std::string("run.fidelity=") + fidelity, "cluster.nodes=8",
                                 "fabric.compute.nodes_per_leaf=2", "job.step.time=5 s",
                                 std::string("fabric.compute.congestion.control=") + control,
                                 "fabric.compute.hash_seed=" + std::to_string(seed)});
        Communicators groups = communicators(s, s.fidelity);
        return groups.of(Collective::all_reduce, 8, 8).network;
    };
    for (const int seed : {0, 4}) {
        const double fair = rings("flow", "hpcc", seed);
        CHECK(rings("packet", "hpcc", seed) < fair);
        CHECK(rings("packet", "none", seed) == doctest::Approx(fair).epsilon(0.05));
    }
}

TEST_CASE("a rate that has not settled when its budget is spent is there, and is marked") {
    const std::vector<std::string> given = {"run.fidelity=packet", "cluster.nodes=8",
                                            "cluster.nics_per_node=2", "window.pieces_max=12"};
    const auto run = [&](const char* budget) {
        std::vector<std::string> settings = given;
        settings.emplace_back(budget);
        return with(settings);
    };
    const Scenario settled = with(given);
    CHECK(settled.limits->all().empty());
    for (const char* budget :
         {"window.settled_within=0", "window.events_max=100000", "window.time_max=300 us"}) {
        CAPTURE(budget);
        const Scenario s = run(budget);
        REQUIRE(s.limits->all().size() == 1);
        CHECK(seconds(s.job.step.duration()) ==
              doctest::Approx(seconds(settled.job.step.duration())).epsilon(0.1));
        CHECK(run_campaign(s, {}).ending() == Ending::limit);
    }
}

TEST_CASE("the best plans on a network are the best of all, and take as long as they say") {
    for (const char* model : {"llama2_70b", "mixtral_8x7b"}) {
        const Scenario s = with({"run.fidelity=flow", "cluster.nodes=8", "job.parallel.zero=3",
                                 "run.network_draws=1", "fabric.compute.routing=ecmp",
                                 std::string("job.model=") + model});
        const PlanTask task{s.model, s.plan, s.plan.gpus(), s.parameter_bytes, s.optimizer_traffic};
        Communicators ideal = communicators(s, Fidelity::analytic);
        Communicators flows = communicators(s, Fidelity::flow);
        const PlanSearch search = search_plans(task, ideal);
        const NetworkSearch found = search_on_network(task, search, flows, 3, 1000);
        CHECK(found.complete);
        CHECK(found.splits < static_cast<std::int64_t>(search.best.size()));
        // By trying every split.
        const PlanSearch all = search_plans(task, flows);
        REQUIRE(found.best.size() == 3);
        for (std::size_t i = 0; i < 3; ++i) {
            CHECK(found.best[i].step.duration() == all.best[i].step.duration());
            // In a scenario that asks for the plan.
            ScenarioChanges changes;
            changes.settings = {"run.fidelity=flow",
                                "cluster.nodes=8",
                                "run.network_draws=1",
                                "fabric.compute.routing=ecmp",
                                std::string("job.model=") + model,
                                "job.step.time=5 s"};
            changes.plan = found.best[i].plan;
            const Scenario run = load_scenario(base, "best", changes);
            CHECK(run.job.step.duration() == found.best[i].step.duration());
            CHECK(total_bytes(run.memory) == doctest::Approx(found.best[i].memory_bytes));
        }
        // Cut short, it says so.
        CHECK_FALSE(search_on_network(task, search, flows, 3, 1).complete);
    }
}
