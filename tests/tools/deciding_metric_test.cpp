// By what designs are judged: what they get done, whatever share of their GPU time that takes.

#include "tools/study/deciding_metric.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "tests/scenario_text.h"
#include "tools/study/run_verdict.h"

using namespace railyard;

namespace {

const std::string one_job = cluster_text(9, "5 day") + R"(
[job]
nodes = 8
model = "llama2_13b"
checkpoint.mode = "none"
[job.parallel]
tensor = 4
pipeline = 2
data = 8
microbatch = 1
global_batch = 64
sequence_length = 2048
zero = 1
[fabric.compute]
[power]
)";

// More work than the GPUs can do, small jobs behind large ones.
const std::string many_jobs = cluster_text(4, "10 day") + R"(
[scheduler]
kind = "slurm"
[power]
[[jobs.kind]]
name = "wide"
gpus = 24
rate = "8 /day"
work = "3 h"
limit = "4 h"
[[jobs.kind]]
name = "small"
gpus = 8
rate = "40 /day"
work = "10 min"
limit = "20 min"
)";

Scenario with(const std::string& text, const std::vector<std::string>& settings) {
    ScenarioChanges changes;
    changes.settings = settings;
    return load_scenario(text, "deciding", changes);
}

DecidingMetric decided(const std::string& text, const std::vector<std::string>& settings) {
    const Scenario a = with(text, {});
    const Scenario b = with(text, settings);
    return deciding_metric(std::vector{work_of(a), work_of(b)});
}

double mean(const Scenario& s, const std::string& metric) {
    CampaignOptions options;
    options.threads = 2;
    return run_campaign(s, options).metric(metric).summary.mean;
}

// Positive: the settings make it better, by this metric.
double gain(const std::string& text, const std::vector<std::string>& settings,
            const DecidingMetric& by) {
    const double change = mean(with(text, settings), by.metric) - mean(with(text, {}), by.metric);
    return by.better == Better::higher ? change : -change;
}

}  // namespace

TEST_CASE("goodput decides where a point of it is the same work, and nowhere else") {
    const auto metric = [](const std::vector<std::string>& settings) {
        return decided(one_job, settings).metric;
    };
    CHECK(metric({"job.checkpoint.mode=sync"}) == "goodput");
    CHECK(metric({"failures.rate_scale=2", "failures.profile=meta_rsc1"}) == "goodput");
    CHECK(metric({"fabric.compute.oversubscription=2"}) == "goodput");
    CHECK(metric({"power.gpu_cap=420 W"}) == "tokens_per_day");
    CHECK(metric({"cluster.node=dgx_b200"}) == "tokens_per_day");
    CHECK(metric({"cluster.nodes=12"}) == "tokens_per_day");
    CHECK(metric({"job.parallel.recompute=full"}) == "tokens_per_day");
    CHECK(metric({"job.parallel.microbatch=2"}) == "tokens_per_day");
    CHECK(decided(one_job + "[cost]\n", {"cluster.node=dgx_b200"}).metric ==
          "cost_per_1e12_tokens");
    CHECK(decided(one_job + "[cost]\n", {"job.checkpoint.mode=sync"}).metric == "goodput");
    CHECK_FALSE(decided(one_job, {"power.gpu_cap=420 W"}).why.empty());
}

TEST_CASE("a power cap has more goodput and loses") {
    const std::vector<std::string> cap = {"power.gpu_cap=420 W"};
    CHECK(mean(with(one_job, cap), "goodput") > mean(with(one_job, {}), "goodput"));
    CHECK(gain(one_job, cap, decided(one_job, cap)) < 0);
}

TEST_CASE(
    "of many jobs slowdown decides: without backfill, at lower clocks or with fewer nodes they "
    "lose") {
    for (const char* setting :
         {"scheduler.backfill.enabled=false", "power.gpu_cap=420 W", "cluster.nodes=3"}) {
        CAPTURE(setting);
        const DecidingMetric by = decided(many_jobs, {setting});
        CHECK(by.metric == "bounded_slowdown_mean");
        CHECK(gain(many_jobs, {setting}, by) < 0);
    }
    CHECK(mean(with(many_jobs, {"power.gpu_cap=420 W"}), "goodput") >
          mean(with(many_jobs, {}), "goodput"));
}

TEST_CASE("what gets done decides where jobs have more to do than there is time") {
    const std::string endless = cluster_text(4, "10 day") + R"(
[scheduler]
[power]
[storage]
system = "generic"
servers = 1
server_read_bandwidth = "10 GB/s"
server_write_bandwidth = "10 GB/s"
[[jobs.kind]]
name = "train"
nodes = 4
model = "llama2_7b"
steps = 10000000
)";
    const std::string parts = R"([jobs.kind.parallel]
global_batch = 64
[jobs.kind.checkpoint]
interval = "1 h"
)";
    for (const char* worse : {"storage.server_write_bandwidth=0.1 GB/s", "cluster.nics_per_node=1",
                              "power.budget=36 kW"}) {
        CAPTURE(worse);
        const DecidingMetric by = decided(endless + parts, {worse});
        CHECK(by.metric == "goodput");
        CHECK(gain(endless + parts, {worse}, by) < 0);
    }
    // A cap makes steps longer and keeps their shares: what the jobs count decides.
    const std::string counted = endless + "worth = 1\n" + parts;
    const DecidingMetric by = decided(counted, {"power.gpu_cap=450 W"});
    CHECK(by.metric == "work_per_day");
    CHECK(gain(counted, {"power.gpu_cap=450 W"}, by) < 0);
}

TEST_CASE("what the database keeps of a design decides as the design itself") {
    const std::string modelled = many_jobs +
                                 "model = \"llama2_7b\"\n[jobs.kind.parallel]\ntensor = 8\n"
                                 "global_batch = 64\n";
    for (const auto& each : {std::tuple(one_job, "power.gpu_cap=420 W", "tokens_per_day"),
                             std::tuple(one_job, "job.checkpoint.mode=sync", "goodput"),
                             std::tuple(many_jobs, "power.gpu_cap=420 W", "bounded_slowdown_mean"),
                             std::tuple(modelled, "power.gpu_cap=420 W", "jct_mean")}) {
        const auto [text, setting, metric] = each;
        CAPTURE(std::get<1>(each));
        CHECK(decided(text, {setting}).metric == metric);
        const WorkBasis a = read_work(text_of(work_of(with(text, {}))));
        const WorkBasis b = read_work(text_of(work_of(with(text, {setting}))));
        CHECK(deciding_metric(std::vector{a, b}).metric == metric);
        CHECK(deciding_metric(std::vector{a, b}).why == decided(text, {setting}).why);
    }
}

TEST_CASE("a run in the database is judged by the metric that somebody has named") {
    const std::filesystem::path file =
        std::filesystem::temp_directory_path() / fmt::format("railyard-{}.sqlite", ::getpid());
    {
        ResultsDb db(file.string());
        const Scenario s = with(one_job, {});
        const std::int64_t run = db.begin_run({.kind = "compare", .title = "", .version = "1"});
        CHECK_FALSE(deciding_metric(run, db.database()));
        const StoredReplica replica = record_of(run_replica(s, 0, false));
        const std::int64_t point = db.point({"a.toml", one_job, {}, {"key", 1}, "", "1"});
        db.attach(run, 0, point, "A");
        db.describe_point(point, s, replica);
        ReplicaTally tally(s);
        tally.add(figures_of(replica));
        db.finish_point(point, s.causes, tally.take(), "complete");
        CHECK(deciding_metric(run, db.database())->metric == "goodput");
        db.decide(run, "interruptions", Better::higher, "");
        CHECK(deciding_metric(run, db.database())->metric == "interruptions");
        CHECK(deciding_metric(run, db.database())->better == Better::higher);
        CHECK(usual_metric(run, db.database())->metric == "goodput");
        CHECK(named_metric(run, "ettr", db.database()).better == Better::higher);
        CHECK_THROWS_AS(named_metric(run, "etr", db.database()), ScenarioError);
    }
    for (const char* more : {"", "-writer"}) std::filesystem::remove(file.string() + more);
}

TEST_CASE("a job that never starts has waited until the campaign's end") {
    const Scenario s = with(R"(
[run]
replicas = 1
duration = "12 h"
[cluster]
nodes = 1
[scheduler]
kind = "slurm"
[[jobs.kind]]
name = "day"
gpus = 8
count = 2
work = "1 day"
limit = "2 day"
)",
                            {});
    // The first is at work; the second has waited 12 h and has 24 h to do: 1 and 1.5 times as long as alone.
    CHECK(mean(s, "bounded_slowdown_mean") == doctest::Approx(1.25).epsilon(1e-3));
}
