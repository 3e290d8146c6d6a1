// Failing and coming back, against closed forms.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "models/campaign/campaign.h"
#include "tests/scenario_text.h"

using namespace railyard;

namespace {

CampaignResult run(const std::string& text, std::vector<std::string> settings = {}) {
    CampaignOptions options;
    options.threads = 2;
    return run_campaign(scenario(text, std::move(settings)), options);
}

// Failures that cost nothing at all: they interrupt, and the job goes on.
const std::string harmless = cluster_text(128, "30 day", 200) + job_without_losses + R"(
[[failures.cause]]
name = "node"
rate_per_node = "0.0065 /day"
)";

}  // namespace

TEST_CASE("a gang of n nodes fails n times as often as one: 128 nodes at 6.5 per 1,000 node-days") {
    const CampaignResult r = run(harmless);
    const Summary n = r.metric("interruptions").summary;
    CHECK(n.ci95.contains(30 * 24 / 28.84615385));  // MTTF of 28.846 h
    // Poisson: the variance is the mean. Relative standard error of a variance is sqrt(2 / 199).
    CHECK(n.deviation * n.deviation / n.mean ==
          doctest::Approx(1).epsilon(4 * std::sqrt(2.0 / 199)));
    CHECK(r.metric("goodput").summary.mean == 1.0);
}

TEST_CASE("rates per GPU, per node and per job are the same hazard in other words") {
    const auto count = [&](const char* key, const char* rate) {
        std::string text = harmless;
        const std::string line = "rate_per_node = \"0.0065 /day\"";
        text.replace(text.find(line), line.size(), fmt::format("{} = \"{}\"", key, rate));
        return run(text).metric("interruptions").summary.mean;
    };
    const double expected = count("rate_per_node", "0.0065 /day");
    CHECK(count("rate_per_gpu", "0.0008125 /day") == expected);
    CHECK(count("rate_per_job", "0.832 /day") == expected);
}

TEST_CASE("causes add up") {
    const CampaignResult r = run(harmless + R"(
[[failures.cause]]
name = "gpu"
rate_per_gpu = "0.001 /day"
)");
    CHECK(r.interruptions[0] ==
          run(harmless).interruptions[0]);  // one stream does not move another
    CHECK(r.interruptions[1] ==
          doctest::Approx(0.001 * 1024 * 30).epsilon(4 / std::sqrt(200 * 30.72)));
}

TEST_CASE("another store leaves every failure where it was") {
    const std::string text = harmless + R"(
[storage]
server_write_bandwidth = "40 GB/s"
)";
    const std::vector<std::string> saves = {"job.checkpoint.mode=sync", "job.checkpoint.size=14 TB",
                                            "job.checkpoint.interval=1 h"};
    std::vector<std::string> slow = saves;
    slow.push_back("storage.server_write_bandwidth=5 GB/s");
    const auto failures = [](const Scenario& s) {
        std::vector<std::pair<std::int64_t, std::int64_t>> out;
        for (const CampaignEvent& e : run_replica(s, 0, true).log) {
            if (std::string(e.kind) == "interruption") {
                out.emplace_back(e.at.time_since_epoch().count(), e.slot);
            }
        }
        return out;
    };
    const Scenario fast_store = scenario(text, saves);
    const Scenario slow_store = scenario(text, slow);
    REQUIRE(failures(fast_store).size() > 10);
    CHECK(failures(fast_store) == failures(slow_store));
    CHECK(run_replica(fast_store, 0, false).outcome != run_replica(slow_store, 0, false).outcome);
}

TEST_CASE("without spares the job waits for the repair: availability is MTBF / (MTBF + MTTR)") {
    const CampaignResult r = run(cluster_text(4, "2000 day", 100) + job_without_losses + R"(
[failures]
repair_sigma = 0.5
[[failures.cause]]
name = "node"
mtbf_job = "5 day"
remedy = "replace"
repair_time = "1 day"
)");
    CHECK(r.metric("goodput").summary.ci95.contains(5.0 / 6));
    // While it waits, three nodes are held and one is in repair.
    CHECK(r.ledger[static_cast<std::size_t>(Category::requeue_wait)] ==
          doctest::Approx(3 * r.ledger[static_cast<std::size_t>(Category::repair)]));
}

TEST_CASE("lemons fail as often as they should, until they are cured") {
    const std::string lemons = harmless + R"(
[failures.lemon]
fraction = 0.25
rate_multiplier = 5
)";
    // remedy = restart: nobody is ever repaired, so the mixture keeps its rate.
    const Summary n = run(lemons).metric("interruptions").summary;
    CHECK(n.mean == doctest::Approx(30 * 0.832 * (0.75 + 0.25 * 5)).epsilon(0.03));

    // Cured at the first repair: in a long run only ordinary nodes are left.
    const std::vector<std::string> long_run = {"run.duration=20000 day", "run.replicas=4",
                                               "cluster.nodes=160", "job.nodes=128",
                                               "failures.lemon.cured_by_repair=1.0"};
    std::string text = lemons;
    const std::string line = "name = \"node\"";
    text.replace(text.find(line), line.size(),
                 line + "\nremedy = \"replace\"\nrepair_time = \"1 h\"");
    CHECK(run(text, long_run).metric("interruptions").summary.mean ==
          doctest::Approx(20000 * 0.832).epsilon(0.03));
}

TEST_CASE("a failure nobody notices for a while idles the whole job that long") {
    const CampaignResult r = run(harmless, {"failures.detection=10 min"});
    const double per_failure = r.metric("detection_per_interruption").summary.mean;
    CHECK(per_failure == doctest::Approx(600).epsilon(0.01));
    CHECK(r.ledger[static_cast<std::size_t>(Category::detection)] > 0);
}

TEST_CASE("planned maintenance saves first, loses nothing, and comes on time") {
    const CampaignResult r = run(cluster_text(2, "10 day") + R"(
[job.step]
time = "7 s"
[job.checkpoint]
size = "100 GB"
interval = "1 h"
[maintenance]
every = "23 h"
duration = "30 min"
)");
    CHECK(r.planned_interruptions == 10);
    CHECK(r.ledger[static_cast<std::size_t>(Category::lost_work)] == 0);
    CHECK(r.ledger[static_cast<std::size_t>(Category::planned_maintenance)] ==
          doctest::Approx(10 * 0.5 / 240));
}

TEST_CASE("a planned stop waits for a copy that outlives the memory of all nodes") {
    for (const char* tiers :
         {"{place=\"peer_memory\"}, {place=\"storage\"}",
          "{place=\"host_memory\"}, {place=\"local_nvme\", write_bandwidth=\"0.1 GB/s\"}",
          "{place=\"host_memory\"}, {place=\"storage\", every = 3}"}) {
        CAPTURE(tiers);
        const CampaignResult r = run(
            "[run]\nreplicas = 1\nduration = \"10 day\"\n[cluster]\nnodes = 2\n[job.step]\n"
            "time = \"7 s\"\n[maintenance]\nevery = \"23 h\"\nduration = \"30 min\"\n"
            "[job.checkpoint]\nmode = \"async\"\nsize = \"100 GB\"\ninterval = \"1 h\"\ntier = [" +
            std::string(tiers) + "]\n");
        CHECK(r.planned_interruptions == 10);
        CHECK(r.ledger[static_cast<std::size_t>(Category::lost_work)] == 0);
    }
}

TEST_CASE("lemons that are not there multiply nothing") {
    CHECK(run(harmless, {"failures.lemon.rate_multiplier=5"}).digest == run(harmless).digest);
}

TEST_CASE("a mean over interruptions is all their time over all their number") {
    // Half a failure per replica: many replicas have none.
    const CampaignResult r =
        run(harmless, {"failures.detection=1 h", "run.replicas=1000", "run.duration=14.42 h"});
    CHECK(r.metric("mean_time_between_interruptions").summary.ci95.contains(28.84615385 * 3600));
    // The end of the campaign cuts some detections short; none is longer.
    const double detection = r.metric("detection_per_interruption").summary.mean;
    CHECK(detection <= 3600);
    CHECK(detection > 3400);
    CHECK(std::isnan(run(harmless, {"failures.rate_scale=0.0"})
                         .metric("detection_per_interruption")
                         .summary.mean));
}

TEST_CASE("what one cause asks for moves no repair of another") {
    const std::string text = harmless + R"(
[[failures.cause]]
name = "other"
rate_per_node = "0.02 /day"
remedy = "replace"
repair_time = "6 h"
)";
    const auto goodput = [&](const char* remedy) {
        std::string changed = text;
        const std::string line = "name = \"node\"";
        changed.replace(changed.find(line), line.size(),
                        line + "\nreset_time = \"1 ms\"\nremedy = \"" + remedy + "\"");
        return run(changed, {"run.replicas=20"}).metric("goodput").summary.mean;
    };
    CHECK(goodput("restart") == doctest::Approx(goodput("reset")).epsilon(1e-7));
    CHECK(goodput("restart") < 0.9);
}

TEST_CASE("a job that loses nothing to failures loses nothing to maintenance either") {
    const CampaignResult r = run(harmless, {"maintenance.every=10 day", "run.replicas=2"});
    CHECK(r.planned_interruptions >= 2);
    CHECK(r.ledger[static_cast<std::size_t>(Category::lost_work)] == 0);
}

TEST_CASE("a job that never gets anywhere is stuck, and the report says on what") {
    Scenario s = scenario(R"(
[run]
replicas = 1
[cluster]
nodes = 1
[job]
length = "30 day"
[job.step]
time = "1 min"
[job.checkpoint]
size = "1 GB"
interval = "7 day"
[[failures.cause]]
name = "often"
mtbf_job = "2 h"
)");
    const ReplicaResult r = run_replica(s, 0, false);
    CHECK(r.ending == Ending::stuck);
    CHECK(r.stuck_report.find("every 7 day") != std::string::npos);
    CHECK(r.ledger.total() == GpuNanoseconds{s.gpus()} * r.simulated.count());
}
