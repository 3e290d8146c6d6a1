// The scenarios that ship, against what was published about them.

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/models/whole_campaign.h"

using namespace railyard;

namespace {

Scenario study(const std::string& name, std::vector<std::string> settings = {}) {
    return load_scenario_file(std::string(RAILYARD_ROOT) + "/scenarios/" + name,
                              {std::move(settings), {}});
}

WholeCampaign run(const Scenario& s) {
    CampaignOptions options;
    options.threads = 2;
    return run_whole(s, options);
}

}  // namespace

TEST_CASE("Llama 3: 419 interruptions and more than 90 % effective time, as published") {
    const WholeCampaign r = run(study("studies/llama3_405b_54_days.toml"));
    double low = 1e9, high = 0;
    for (const ReplicaResult& replica : r.each) {
        double n = 0;
        for (const std::int64_t count : replica.job.interruptions) n += static_cast<double>(count);
        low = std::min(low, n);
        high = std::max(high, n);
    }
    CHECK(low < 419);
    CHECK(high > 419);
    // Some strikes find the job already down; all together they are the published count.
    const double all =
        r.metric("interruptions").summary.mean + r.metric("failures_while_down").summary.mean;
    CHECK(all == doctest::Approx(419).epsilon(3 * 0.049 /
                                              10));  // three standard errors of 100 Poisson counts
    const double mean = r.metric("interruptions").summary.mean;
    CHECK(mean > 380);
    CHECK(mean < 461);
    CHECK(r.planned_interruptions ==
          doctest::Approx(47).epsilon(0.01));  // the last may fall into a recovery
    CHECK(r.metric("ettr").summary.ci95.low > 0.90);
}

TEST_CASE("175B to 4 GB/s: 720 x 700 s = 140 h of stall, exactly, and its variants") {
    const auto stall = [](std::vector<std::string> settings,
                          const char* file = "checkpoint_175b_4gbps") {
        const Scenario s = study(std::string("studies/") + file + ".toml", std::move(settings));
        const ReplicaResult r = run_replica(s, 0, false);
        const GpuNanoseconds each = r.ledger.booked(Category::checkpoint_stall) / s.gpus();
        CHECK(each * s.gpus() == r.ledger.booked(Category::checkpoint_stall));
        return static_cast<std::int64_t>(each);
    };
    constexpr std::int64_t second = 1'000'000'000;
    CHECK(stall({}) == 720 * 700 * second);
    CHECK(stall({}, "checkpoint_175b_persisted") == 720 * 6125 * (second / 10));
    CHECK(stall({"job.checkpoint.size=2.1 TB"}, "checkpoint_175b_persisted") == 720 * 525 * second);
    // An hour of training between: 602 whole cycles of 4,300 s, and 3,400 s of training more.
    CHECK(stall({"job.checkpoint.clock=training"}) == 602 * 700 * second);
}

TEST_CASE(
    "AIReSim's default case: its ratio of 62.3 % is inside our interval, its failures nearly so") {
    const CampaignResult r = run(study("studies/airesim_default.toml"));
    CHECK(r.metric("ettr").summary.ci95.contains(0.623));
    CHECK(r.metric("interruptions").summary.mean == doctest::Approx(11146).epsilon(0.005));
    CHECK(r.metric("wall_time").summary.mean / 3600 == doctest::Approx(9865.97).epsilon(0.005));

    const CampaignResult with_lost_work =
        run(study("studies/airesim_default.toml",
                  {"job.recovery.recompute=true", "job.checkpoint.mode=sync", "run.replicas=4"}));
    CHECK(with_lost_work.metric("ettr").summary.mean < r.metric("ettr").summary.ci95.low - 0.05);
}

TEST_CASE("one adapter per node starves data parallelism; one per GPU does not") {
    const std::string file = "clusters/h100_64_gpu.toml";
    const double one = seconds(study(file).job.step.exposed_communication);
    const double eight =
        seconds(study(file, {"cluster.nics_per_node=8"}).job.step.exposed_communication);
    CHECK(one > 8 * eight);
}
