// What is counted of many jobs at a campaign's end: who ended, runs and waits; how long; how much of the
// cluster they held.

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "models/campaign/campaign.h"
#include "tests/models/schema_kube.h"
#include "tests/models/schema_many_jobs.h"
#include "tests/scenario_text.h"

using namespace railyard;

namespace {

std::map<std::string, double> metrics_of(const std::string& text,
                                         std::vector<std::string> settings = {}) {
    const Scenario s = load_scenario(text, "test", {std::move(settings), {}});
    std::map<std::string, double> out;
    for (const Metric& m : run_replica(s, 0, false).metrics) out[m.name] = m.value;
    return out;
}

std::map<std::string, JobRecord> jobs_of(const std::string& text) {
    std::map<std::string, JobRecord> out;
    run_replica(load_scenario(text, "test"), 0, false, nullptr, nullptr,
                [&](const JobRecord& job) { out[job.name] = job; });
    return out;
}

// One job an hour comes to nodes that do one in ten.
const std::string overload = cluster_text(2, "10 day") + R"(
[scheduler]
[[jobs.kind]]
name = "j"
rate = "1 /h"
gpus = 16
work = "10 h"
)";

}  // namespace

TEST_CASE(
    "jobs submitted are those that ended, run, wait and were refused, and no more is held than is "
    "there") {
    for (const std::string& text :
         {world_scenario, world_groups, world_requests, world_slices, world_models, world_traces,
          kubernetes_scenario, volcano_scenario, kueue_scenario, kueue_flavors, slices_by_queue,
          slice_quotas}) {
        for (const char* seed : {"run.seed=1", "run.seed=2", "run.seed=3"}) {
            auto m = metrics_of(text, {seed});
            CHECK(m["jobs"] ==
                  m["jobs_ended"] + m["jobs_running"] + m["jobs_waiting"] + m["jobs_refused"]);
            CHECK(m["jobs_ended"] == m["jobs_completed"] + m["jobs_failed"] + m["jobs_node_fail"] +
                                         m["jobs_timeout"] + m["jobs_preempted"] +
                                         m["jobs_cancelled"]);
            CHECK(m["utilisation"] <= m["occupancy"]);
            CHECK(m["occupancy"] <= 1);
        }
    }
}

TEST_CASE("nodes that are broken and idle are in no job's hands, whether anybody knows or not") {
    const std::string idle = cluster_text(8, "10 day") + R"(
[scheduler]
health.epilog = false
[[jobs.kind]]
name = "j"
gpus = 8
work = "24 h"
[[failures.cause]]
name = "node"
rate_per_node = "1 /day"
remedy = "reset"
reset_time = "1 h"
)";
    auto m = metrics_of(idle);
    CHECK(m["failures_on_idle_nodes"] > 0);
    CHECK(m["utilisation"] <= m["occupancy"]);
    CHECK(m["occupancy"] < 0.2);
}

TEST_CASE("jobs that have not started have waited until the end: overload shows in the waits") {
    auto m = metrics_of(overload);
    const double jobs = m["jobs"];
    REQUIRE(m["jobs_never_started"] > 0.8 * jobs);
    // They come all along the ten days and hardly any starts.
    CHECK(m["wait_mean"] == doctest::Approx(5 * 86400.0).epsilon(0.2));
    CHECK(m["wait_p95"] > 8 * 86400.0);
    // The longer it goes on, the longer they have waited.
    auto longer = metrics_of(overload, {"run.duration=20 day"});
    CHECK(longer["wait_mean"] > 1.8 * m["wait_mean"]);
}

TEST_CASE("of no jobs there is no wait, in a replica and in the mean of those that have some") {
    auto none = metrics_of(overload, {"jobs.kind.0.gpus=24"});
    CHECK(none["jobs_refused"] == none["jobs"]);
    for (const char* name :
         {"wait_mean", "wait_median", "wait_p95", "jct_median", "bounded_slowdown_p95"}) {
        CAPTURE(name);
        CHECK(std::isnan(none[name]));
    }
    // A replica without any job has nothing to say of their waits, and the others still do.
    const Scenario rare =
        load_scenario(overload, "test", {{"jobs.kind.0.rate=0.07 /day", "run.replicas=20"}, {}});
    const CampaignResult r = run_campaign(rare, {});
    const auto empty =
        static_cast<std::size_t>(std::ranges::count(r.values.find("jobs")->values, 0.0));
    REQUIRE(empty > 0);
    REQUIRE(empty < r.values.replicas());
    CHECK(r.metric("wait_median").summary.mean >= 0);
    CHECK(r.metric("wait_median").summary.count == r.values.replicas() - empty);
}

TEST_CASE("a trace's jobs are like the kind that it names in all that the file does not say") {
    const std::string text = cluster_text(4, "2 day") + R"(
[[partition]]
name = "first"
nodes = 2
[[partition]]
name = "second"
first_node = 2
[scheduler]
[[scheduler.qos]]
name = "high"
[[scheduler.qos]]
name = "low"
[jobs]
trace = ")" RAILYARD_ROOT R"(/tests/models/world_trace.csv"
trace_kind = "like"
[[jobs.kind]]
name = "like"
count = 0
partition = "second"
qos = "low"
gpus_per_pod = 4
limit = "30 min"
switches = 1
)";
    const Scenario s = load_scenario(text, "test");
    REQUIRE(s.world->trace.size() == 3);
    for (const WorldJob& job : s.world->trace) {
        CHECK(job.partition == 1);
        CHECK(job.qos == 1);
        CHECK(job.gpus_per_pod == 4);
        CHECK(job.limit == std::chrono::minutes(30));
        CHECK(job.switches_max == 1);
    }
    auto m = metrics_of(text);
    CHECK(m["jobs_refused"] == 1);  // the one of 16 GPUs: 4 on each of two nodes are too few
    CHECK(m["jobs_timeout"] == 1);  // the one of an hour
    CHECK(m["jobs_completed"] == 1);
}

TEST_CASE("a trace's jobs wait in their kind's queue") {
    const auto refused = [](const std::string& queue) {
        return metrics_of(cluster_text(4, "2 day") + R"(
[scheduler]
kind = "kueue"
[[scheduler.queue]]
name = "small"
[[scheduler.queue.quota]]
gpus = 8
[[scheduler.queue]]
name = "big"
[[scheduler.queue.quota]]
gpus = 24
[jobs]
trace = ")" RAILYARD_ROOT R"(/tests/models/world_trace.csv"
trace_kind = "like"
[[jobs.kind]]
name = "like"
count = 0
queue = ")" + queue + "\"\n")["jobs_refused"];
    };
    CHECK(refused("small") == 1);
    CHECK(refused("big") == 0);
}

TEST_CASE("under Kubernetes the pods of a trace's jobs have its priorities") {
    auto jobs = jobs_of(cluster_text(1, "2 day") + R"(
[scheduler]
kind = "kubernetes"
[jobs]
trace = ")" RAILYARD_ROOT R"(/tests/models/world_trace_priority.csv"
)");
    CHECK(jobs["1"].start_s < jobs["3"].start_s);
    CHECK(jobs["3"].start_s < jobs["2"].start_s);
}

TEST_CASE("a job's held time is that with all its GPUs, not with some or none") {
    auto jobs = jobs_of(cluster_text(4, "2 day") + R"(
[scheduler]
kind = "kubernetes"
[[jobs.kind]]
name = "first"
gpus = 24
work = "10 h"
[[jobs.kind]]
name = "gathers"
at = "1 h"
gpus = 32
work = "5 h"
[[jobs.kind]]
name = "refused"
at = "2 h"
gpus = 64
)");
    CHECK(jobs["1"].held_s == doctest::Approx(10 * 3600));
    CHECK(jobs["2"].held_s == doctest::Approx(5 * 3600));
    CHECK(jobs["3"].state == "refused");
    CHECK(jobs["3"].held_s == 0);
}

TEST_CASE("a job that is suspended as the campaign ends waits, and is called so") {
    auto jobs = jobs_of(cluster_text(2, "6 h") + "[scheduler]" + qos_that_suspends + R"(
[[jobs.kind]]
name = "victim"
gpus = 16
qos = "low"
work = "10 h"
[[jobs.kind]]
name = "urgent"
gpus = 16
qos = "high"
at = "5 h"
work = "2 h"
)");
    CHECK(jobs["1"].state == "waiting");
    CHECK(jobs["2"].state == "running");
}
