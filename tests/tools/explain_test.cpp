// Why goodput is not 100 %: worlds without one cause, and what each takes.

#include <doctest/doctest.h>

#include <cmath>

#include "tests/scenario_text.h"
#include "tests/tools/stalls.h"
#include "tools/study/attribution.h"

using namespace railyard;

namespace {

const std::string given_step = cluster_text(8, "20 day", 4) + R"(
[job]
step.time = "5 s"
)";

const std::string modelled_step = cluster_text(8, "5 day", 2) + R"(
[job]
model = "llama2_13b"
[job.parallel]
tensor = 4
pipeline = 2
data = 8
microbatch = 1
global_batch = 64
sequence_length = 2048
zero = 1
[job.checkpoint]
mode = "none"
)";

// Everything at once, on links that are shared.
const std::string all_of_it = modelled_step.substr(0, modelled_step.find("[job.checkpoint]")) + R"(
[job.checkpoint]
mode = "sync"
interval = "20 min"
[[cluster.fault]]
part = "gpu"
node = 1
index = 2
speed = 0.3
[failures]
profile = "meta_rsc1"
rate_scale = 20
[maintenance]
every = "1 day"
duration = "1 h"
[storage]
servers = 1
server_write_bandwidth = "20 GB/s"
server_read_bandwidth = "20 GB/s"
[fabric.compute]
topology = "fat_tree"
oversubscription = 4
)";
const std::string heat = R"(
[facility]
cooling = "direct_liquid"
thermal_resistance = "0.15 K/W"
)";
const std::string pump = R"(
[facility.pump]
failure_rate = "20 /month"
)";

Attribution explain(const std::string& text, const std::vector<std::string>& settings = {},
                    std::int64_t order_pairs = 0) {
    const TrialOptions options = options_of(text);
    ScenarioChanges changes;
    changes.settings = settings;
    return attribute_loss(options, changes, load_scenario(text, options.file, changes),
                          order_pairs);
}

double gap(const Attribution& a) {
    return a.ideal->mean - a.goodput.mean;
}

double share_of(const Attribution& a, LossCause cause) {
    for (const CauseOfLoss& each : a.causes) {
        if (each.cause == cause) return each.share->mean;
    }
    return 0;
}

// One cause takes all of a gap that is there, the others exactly nothing.
void check_alone(const Attribution& a, LossCause cause) {
    CHECK(gap(a) > 0.002);
    CHECK(share_of(a, cause) == doctest::Approx(gap(a)).epsilon(1e-9));
    for (const CauseOfLoss& each : a.causes) {
        if (each.cause == cause) continue;
        CAPTURE(loss_cause_name(each.cause));
        CHECK(std::abs(each.share->mean) < 1e-12);
    }
}

double sum_of_shares(const Attribution& a) {
    double sum = 0;
    for (const CauseOfLoss& each : a.causes) sum += each.share->mean;
    return sum;
}

}  // namespace

TEST_CASE("failures that cost nothing to come back from take all of the gap as lost work") {
    const Attribution a =
        explain(given_step,
                {"job.checkpoint.mode=none", "failures.profile=none", "job.recovery.restart=0 s",
                 "job.recovery.replacement=0 s", "job.recovery.restore=0 s"});
    CHECK(a.causes.empty());
    CHECK(a.goodput.mean == 1);
    const std::string failing = given_step + R"(
checkpoint = { interval = "1 h", size = "1 B" }
recovery = { restart = "0 s", replacement = "0 s", restore = "0 s" }
[storage]
server_write_bandwidth = "1 TB/s"
server_read_bandwidth = "1 TB/s"
[[failures.cause]]
name = "crash"
mtbf_job = "1 day"
)";
    check_alone(explain(failing), LossCause::failures);
}

TEST_CASE("breakers that trip take all of the gap when nothing else fails") {
    const Attribution a = explain(given_step + R"(
checkpoint.mode = "none"
recovery = { restart = "0 s", replacement = "0 s", restore = "0 s" }
[facility]
rack_power_max = "200 kW"
[facility.breaker]
rating = "7.7 kW"
nodes = 1
)");
    CHECK(gap(a) > 0.9);
    CHECK(share_of(a, LossCause::failures) == 0);
    // The others, to notice a trip and to wait for the reset, come after it.
    CHECK(share_of(a, LossCause::feeds) > 0.999 * gap(a));
    CHECK(sum_of_shares(a) == doctest::Approx(gap(a)).epsilon(1e-9));
}

TEST_CASE("planned interruptions take all of the gap when there is nothing else") {
    const Attribution a = explain(given_step + R"(
checkpoint.mode = "none"
recovery = { restart = "0 s", restore = "0 s" }
[maintenance]
every = "1 day"
duration = "1 h"
)");
    check_alone(a, LossCause::maintenance);
}

TEST_CASE("a store that is too slow takes all of the gap, and as much as tau over tau + C leaves") {
    const Attribution a = explain(given_step + R"(
checkpoint = { interval = "1000 s", size = "1 TB" }
[storage]
server_write_bandwidth = "10 GB/s"
server_read_bandwidth = "10 GB/s"
client_bandwidth = "1 TB/s"
)");
    check_alone(a, LossCause::storage);
    // 100 s for each 1,000 s of training; the campaign's end cuts the last interval.
    CHECK(a.goodput.mean == doctest::Approx(1000.0 / 1100).epsilon(1e-3));
    CHECK(a.ideal->mean == 1);
    CHECK(a.causes[0].alone->mean == doctest::Approx(gap(a)));
    CHECK(a.causes[0].last->mean == doctest::Approx(gap(a)));
}

TEST_CASE("a store that feeds the job too slowly takes all of the gap") {
    const Attribution a = explain(given_step + R"(
checkpoint.mode = "none"
data = { sample_size = "10 MB", batch = 200, workers = 64 }
[storage]
server_write_bandwidth = "50 GB/s"
server_read_bandwidth = "50 GB/s"
client_bandwidth = "1 TB/s"
)",
                                  {"job.step.time=1 s"});
    check_alone(a, LossCause::storage);
    // 64 GPUs want 128 GB for a step of 1 s and get 50 GB a second.
    CHECK(a.goodput.mean == doctest::Approx(50.0 / 128).epsilon(1e-4));
}

TEST_CASE("stragglers take all of the gap of a plan that is otherwise left in peace") {
    check_alone(explain(modelled_step), LossCause::stragglers);
}

TEST_CASE("a slow GPU takes all of the gap where ranks don't differ otherwise") {
    const Attribution a = explain(
        modelled_step + "[[cluster.fault]]\npart = \"gpu\"\nnode = 1\nindex = 2\nspeed = 0.3\n",
        {"job.parallel.jitter=0"});
    check_alone(a, LossCause::degraded_parts);
}

TEST_CASE("links that are shared take all of the gap where ranks don't differ otherwise") {
    const Attribution a =
        explain(modelled_step, {"run.fidelity=flow", "fabric.compute.oversubscription=8",
                                "fabric.compute.topology=fat_tree",
                                "fabric.compute.nodes_per_leaf=2", "job.parallel.jitter=0"});
    check_alone(a, LossCause::network);
}

TEST_CASE("shares of everything at once sum to the gap, and what is left is what the plan needs") {
    const Attribution a =
        explain(all_of_it + heat + pump, {"run.fidelity=flow", "fabric.compute.tiers=2"});
    CHECK(a.causes.size() == loss_cause_count);
    CHECK(a.arms == std::size_t{1} << loss_cause_count);
    CHECK(sum_of_shares(a) == doctest::Approx(gap(a)).epsilon(1e-9));
    double residue = 0;
    for (std::size_t i = 1; i < a.residue.size(); ++i) {
        const auto category = static_cast<Category>(i);
        CAPTURE(category_name(category));
        residue += a.residue[i];
        const bool needed =
            category == Category::exposed_communication || category == Category::pipeline_bubble;
        CHECK((needed || a.residue[i] == 0));
    }
    CHECK(residue == doctest::Approx(1 - a.ideal->mean));
    CHECK(residue > 0.01);
    for (const CauseOfLoss& each : a.causes) {
        CAPTURE(loss_cause_name(each.cause));
        CHECK(each.share->mean > 0);
        CHECK(each.alone->mean > 0);
    }
}

TEST_CASE("sampled orders of the causes sum to the gap too, near the exact shares") {
    const Attribution exact = explain(all_of_it);
    const Attribution sampled = explain(all_of_it, {}, 12);
    CHECK(sum_of_shares(sampled) == doctest::Approx(gap(sampled)).epsilon(1e-9));
    CHECK(sampled.arms <= exact.arms);
    for (const CauseOfLoss& each : sampled.causes) {
        CAPTURE(loss_cause_name(each.cause));
        CHECK(std::abs(each.share->mean - share_of(exact, each.cause)) < 0.01);
    }
}

TEST_CASE("a cause that is taken away moves nothing of the others") {
    const Scenario as_is = load_scenario(all_of_it, "test");
    for (std::size_t i = 0; i < loss_cause_count; ++i) {
        ScenarioChanges changes;
        changes.without.set(i);
        const Scenario s = load_scenario(all_of_it, "test", changes);
        CAPTURE(loss_cause_name(static_cast<LossCause>(i)));
        LossCauses expected = loss_causes(as_is);
        expected.reset(i);
        LossCauses left = loss_causes(s);
        left.reset(i);  // storage and recovery stay in the scenario, at no cost
        CHECK(left == expected);
    }
}

TEST_CASE("what is left happens at the same instants") {
    const auto log_of = [](const LossCauses& without) {
        ScenarioChanges changes;
        changes.without = without;
        return run_replica(load_scenario(all_of_it, "test", changes), 0, true).log;
    };
    // Without planned stops, the first failure strikes when it did.
    const auto first = [](const std::vector<CampaignEvent>& log) {
        for (const CampaignEvent& event : log) {
            if (std::string(event.kind) == "interruption") return event.at;
        }
        return Instant{};
    };
    LossCauses maintenance;
    maintenance.set(static_cast<std::size_t>(LossCause::maintenance));
    LossCauses stragglers;
    stragglers.set(static_cast<std::size_t>(LossCause::stragglers));
    CHECK(first(log_of({})) > Instant{});
    CHECK(first(log_of(maintenance)) == first(log_of({})));
    CHECK(first(log_of(stragglers)) == first(log_of({})));
}

// Nothing else is lost, so throttling has all of the gap.
TEST_CASE("GPUs that heat slows lose what the ledger calls throttled, and that alone") {
    const std::string hot = given_step + R"(
checkpoint.mode = "none"
[facility]
cooling = "direct_liquid"
thermal_resistance = "0.09 K/W"
)";
    const Attribution a = explain(hot);
    check_alone(a, LossCause::throttling);
    const Scenario scenario = load_scenario(hot, "test.toml");
    const Duration throttled = scenario.job.step.throttled;
    CHECK(throttled > Duration{});
    CHECK(gap(a) == doctest::Approx(seconds(throttled) / seconds(scenario.job.step.duration())));
}

TEST_CASE(
    "worlds without failures have no breakers, pumps and injected faults, and shares sum to the "
    "gap") {
    const std::string fed = given_step + R"(
checkpoint = { interval = "1 h", size = "1 TB" }
[facility]
cooling = "direct_liquid"
thermal_resistance = "0.09 K/W"
rack_power_max = "200 kW"
[facility.breaker]
rating = "9 kW"
nodes = 1
[facility.pump]
failure_rate = "20 /year"
[storage]
server_write_bandwidth = "20 GB/s"
[[inject]]
at = "50 h"
cause = "pump_loss"
node = 0
[[inject]]
at = "90 h"
cause = "gpu_hw"
node = 2
)";
    const Attribution a = explain(fed);
    CHECK(share_of(a, LossCause::failures) > 0);
    CHECK(share_of(a, LossCause::throttling) > 0);
    CHECK(share_of(a, LossCause::feeds) > 0);
    CHECK(sum_of_shares(a) == doctest::Approx(gap(a)).epsilon(1e-9));
}
