#include "models/campaign/campaign.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/models/whole_campaign.h"
#include "tests/scenario_text.h"

using namespace railyard;

namespace {

const std::string small = cluster_text(40, "20 day", 12) + R"(
[job]
nodes = 32
[job.step]
time = "3 s"
[job.checkpoint]
mode = "async"
size = "2 TB"
interval = "20 min"
[failures]
profile = "meta_rsc1"
rate_scale = 20
[failures.lemon]
fraction = 0.1
rate_multiplier = 4
cured_by_repair = 0.5
[maintenance]
every = "3 day"
duration = "1 h"
)";

WholeCampaign run(unsigned threads) {
    CampaignOptions options;
    options.threads = threads;
    return run_whole(load_scenario(small, "small"), options);
}

}  // namespace

TEST_CASE("results do not depend on the number of threads") {
    const CampaignResult one = run(1);
    const CampaignResult four = run(4);
    CHECK(one.digest == four.digest);
    CHECK(one.trajectory == four.trajectory);
    CHECK(one.metric("goodput").summary.mean == four.metric("goodput").summary.mean);
}

TEST_CASE("a replica is itself, alone or among others, logged or not") {
    const Scenario s = load_scenario(small, "small");
    const WholeCampaign all = run(2);
    CHECK(run_replica(s, 7, false).outcome == all.each[7].outcome);
    CHECK(run_replica(s, 7, true).trajectory == all.each[7].trajectory);
}

TEST_CASE("a record of other GPUs holds for a generation without one by an estimate") {
    const char* factor = "failure_analogy.new_generation.rate_factor";
    const auto rate = [&](const char* node, bool estimated, std::vector<std::string> more = {}) {
        more.push_back(std::string("cluster.node=") + node);
        const Scenario s = load_scenario(small, "small", {more});
        CHECK(std::ranges::any_of(
                  s.estimates, [&](const Estimate& e) { return e.path == factor; }) == estimated);
        return s.causes.at(0).rate_per_node.per_second;
    };
    const double known = rate("dgx_h100", false);
    CHECK(rate("dgx_a100", false) == known);
    CHECK(rate("dgx_b200", true) == known);
    CHECK(rate("dgx_b200", false, {std::string("override.") + factor + "=2"}) ==
          doctest::Approx(2 * known));
}

TEST_CASE("the ledger's fractions sum to one and its integers to GPUs x time") {
    const Scenario s = load_scenario(small, "small");
    double sum = 0;
    for (const double f : run(2).ledger) sum += f;
    CHECK(sum == doctest::Approx(1).epsilon(1e-12));
    for (std::int64_t i = 0; i < 12; ++i) {
        const ReplicaResult r = run_replica(s, i, false);
        CHECK(r.ledger.total() == GpuNanoseconds{s.gpus()} * r.simulated.count());
    }
}

TEST_CASE("finished replicas are handed on once, in order") {
    CampaignOptions options;
    options.threads = 3;
    std::vector<std::int64_t> order;
    options.finished = [&](const ReplicaResult& r) { order.push_back(r.index); };
    run_campaign(load_scenario(small, "small"), options);
    REQUIRE(order.size() == 12);
    for (std::size_t i = 0; i < order.size(); ++i) CHECK(order[i] == static_cast<std::int64_t>(i));
}

TEST_CASE("cancelling keeps what was finished") {
    std::atomic<bool> cancelled{false};
    CampaignOptions options;
    options.cancelled = &cancelled;
    options.progress = [&](std::int64_t done, std::int64_t) { cancelled = done >= 3; };
    const WholeCampaign r = run_whole(load_scenario(small, "small"), options);
    CHECK(r.cancelled);
    CHECK(r.replicas == 3);
    CHECK(r.each[2].outcome == run(1).each[2].outcome);
}

TEST_CASE("a campaign that cannot end is marked, not believed") {
    Scenario s = load_scenario(small, "small");
    s.events_max = 100;
    CHECK(run_replica(s, 0, false).ending == Ending::limit);
}

TEST_CASE("of many jobs, too, more use and more done are better") {
    for (const char* metric : {"goodput", "utilisation", "occupancy", "jobs_completed",
                               "ettr_gpus_256", "mttf_gpus_1024", "goodput_kind_train"}) {
        CAPTURE(metric);
        CHECK(better_of(metric) == Better::higher);
    }
    for (const char* metric : {"wait_mean", "jct_p95", "preemptions", "jobs_failed"}) {
        CAPTURE(metric);
        CHECK(better_of(metric) == Better::lower);
    }
}

TEST_CASE("a metric's words are found by its name") {
    REQUIRE(find_metric_name("checkpoint_stall_kind_train") != nullptr);
    CHECK(find_metric_name("checkpoint_stall_kind_train")->unit == std::string("1"));
    CHECK(find_metric_name("checkpoint_stall_network")->unit == std::string("s"));
    CHECK(find_metric_name("restore_") == nullptr);  // of nothing
    CHECK(find_metric_name("no_such_metric") == nullptr);
    CHECK(is_share("goodput"));
    CHECK(!is_share("steps"));
}
