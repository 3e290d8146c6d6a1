// Single jobs of many, from a scenario's text: when each starts and ends, by hand.

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "tests/scenario_text.h"

using namespace railyard;

namespace {

std::map<std::string, JobRecord> jobs_of(const std::string& text) {
    std::map<std::string, JobRecord> out;
    run_replica(scenario(text), 0, false, nullptr, nullptr,
                [&](const JobRecord& job) { out[job.kind] = job; });
    return out;
}

// Kinds with one job each. `more`: of the kind.
std::string kind(const std::string& name, int nodes, const std::string& more) {
    return fmt::format("[[jobs.kind]]\nname = \"{}\"\nnodes = {}\n{}\n", name, nodes, more);
}

std::string qos(const std::string& name, const std::string& more) {
    return fmt::format("[[scheduler.qos]]\nname = \"{}\"\n{}\n", name, more);
}

const std::string slow_store = R"(
[storage]
system = "generic"
servers = 1
server_write_bandwidth = "10 GB/s"
server_read_bandwidth = "1 GB/s"
client_bandwidth = "1 GB/s"
)";

// Steps of 2 s that read 200 samples of 1 MB per GPU together: 0.8 GB/s.
std::string reads(const std::string& more) {
    return "[jobs.kind.step]\ntime = \"2 s\"\n[jobs.kind.data]\nsample_size = \"1 MB\"\nbatch = "
           "200\n" +
           more;
}

}  // namespace

TEST_CASE("who waits to displace a job starts when that may be displaced") {
    auto jobs = jobs_of(cluster_text(4, "10 h") + "[scheduler]\n" +
                        qos("low", "preempt_mode = \"requeue\"\nexempt = \"15 min\"") +
                        qos("high", "priority = 1000\npreempts = \"low\"") +
                        kind("low", 4, "qos = \"low\"\nwork = \"4 h\"") +
                        kind("high", 2, "qos = \"high\"\nat = \"10 min\"\nwork = \"10 min\""));
    CHECK(jobs["high"].start_s == doctest::Approx(15 * 60));
}

TEST_CASE("a check that is off takes no time") {
    for (const auto& [checks, end_h] : {std::pair{"true", 3}, {"false", 2}}) {
        auto jobs = jobs_of(
            cluster_text(1, "10 h") + "[scheduler.health]\nprolog = " + checks +
            "\nepilog = " + checks + "\nprolog_time = \"20 min\"\nepilog_time = \"10 min\"\n" +
            kind("first", 1, "work = \"1 h\"") + kind("second", 1, "work = \"1 h\""));
        CHECK(jobs["second"].end_s == doctest::Approx(end_h * 3600));
    }
}

TEST_CASE("the median of two waits is halfway between them") {
    const Scenario s = scenario(cluster_text(1, "10 h") + "[scheduler]\n" +
                                kind("job", 1, "work = \"1 h\"\ncount = 2"));
    CHECK(metric(run_replica(s, 0, false), "wait_median") == doctest::Approx(1800));
}

TEST_CASE("what a job that goes on leaves of its nodes is for who waits behind it") {
    for (const std::string backfill : {"true", "false"}) {
        auto jobs =
            jobs_of(cluster_text(1, "10 h") + "[scheduler]\nbackfill.enabled = " + backfill + "\n" +
                    qos("low", "preempt_mode = \"suspend\"") +
                    qos("high", "priority = 10\npreempts = \"low\"") +
                    "[[jobs.kind]]\nname = \"low\"\ngpus = 1\nwork = \"8 h\"\nqos = \"low\"\n" +
                    kind("high", 1, "at = \"10 min\"\nqos = \"high\"\nwork = \"1 h\"") +
                    "[[jobs.kind]]\nname = \"late\"\nat = \"20 min\"\ngpus = 1\nwork = \"30 min\"\n"
                    "qos = \"low\"\n");
        CHECK(jobs["high"].end_s == doctest::Approx(4200));
        CHECK(jobs["late"].start_s == doctest::Approx(4200));
    }
}

TEST_CASE("a suspended job goes on before those that it may displace") {
    auto jobs = jobs_of(
        cluster_text(4, "1 day") + "[scheduler]\n" + qos("low", "preempt_mode = \"suspend\"") +
        qos("mid", "priority = 10\npreempts = \"low\"\npreempt_mode = \"suspend\"") +
        qos("high", "priority = 1000\npreempts = \"low,mid\"") +
        kind("low", 4, "qos = \"low\"\nwork = \"2 h\"") +
        kind("mid", 4, "qos = \"mid\"\nat = \"30 min\"\nwork = \"1 h\"") +
        kind("high", 2, "qos = \"high\"\nat = \"1 h\"\nwork = \"1 h\"\nlimit = \"1 h\""));
    CHECK(jobs["high"].end_s == doctest::Approx(2 * 3600));
    CHECK(jobs["mid"].end_s == doctest::Approx(2.5 * 3600));
    CHECK(jobs["low"].end_s == doctest::Approx(4 * 3600));
}

TEST_CASE("a job whose data is in its caches leaves the store to others, also when it is over") {
    for (const std::string cache : {"cache = \"4 TB\"", "page_cache = \"1 TB\""}) {
        INFO(cache);
        const std::string text = cluster_text(2, "2 day") + slow_store + "[scheduler]\n" +
                                 kind("cached", 1, "length = \"5 h\"") +
                                 reads("dataset = \"100 GB\"\n" + cache + "\n");
        auto jobs = jobs_of(text + kind("late", 1, "at = \"2 h\"\nlength = \"1 h\"") + reads(""));
        CHECK(jobs["late"].held_s == doctest::Approx(3600).epsilon(0.01));
        // Those after it take its place among the store's clients.
        jobs = jobs_of(text +
                       "[[jobs.kind]]\nname = \"next\"\nat = \"6 h\"\nnodes = 1\ncount = 4\n"
                       "length = \"1 h\"\n" +
                       reads("dataset = \"100 GB\"\n" + cache + "\n"));
        CHECK(jobs["next"].state == "completed");
    }
}

TEST_CASE("a job whose first batch never came fails as any other") {
    auto jobs =
        jobs_of(cluster_text(2, "1 day") + slow_store + R"([scheduler]
[[failures.cause]]
name = "crash"
rate_per_node = "0 /day"
remedy = "restart"
detection = "30 s"
[[inject]]
at = "20 min"
cause = "crash"
node = 0
)" + kind("reads", 2, "length = \"8 h\"") +
                reads("") + "[jobs.kind.checkpoint]\ninterval = \"30 min\"\nsize = \"1 GB\"\n");
    CHECK(jobs["reads"].state == "completed");
    CHECK(jobs["reads"].starts == 2);
}

TEST_CASE("a length is time under a power cap too, and work is not") {
    const std::string text =
        cluster_text(2, "4 day") + "node = \"dgx_h100\"\n[power]\ngpu_cap = \"500 W\"\n" +
        "[scheduler]\n" + kind("timed", 1, "length = \"18 h\"\nstep.time = \"2 s\"") +
        kind("worked", 1, "work = \"18 h\"\nstep.time = \"2 s\"");
    auto jobs = jobs_of(text);
    CHECK(jobs["timed"].kept_s == doctest::Approx(64800));
    CHECK(jobs["worked"].kept_s ==
          doctest::Approx(64800 * std::pow(700.0 / 500, 0.45)).epsilon(0.001));
}

TEST_CASE("a length is time under a budget of power that throttles, too") {
    for (const char* what : {"step.time = \"5 s\"", "model = \"llama2_7b\""}) {
        CAPTURE(what);
        auto jobs = jobs_of(cluster_text(8, "4 day") +
                            "node = \"dgx_h100\"\n[power]\nbudget = \"75 kW\"\n[scheduler]\n" +
                            kind("timed", 8, std::string("length = \"18 h\"\n") + what));
        CHECK(jobs["timed"].state == "completed");
        CHECK(jobs["timed"].kept_s == doctest::Approx(64800).epsilon(2e-4));  // whole steps
    }
}

TEST_CASE("a kind with a model that the cluster has no room for is refused, on links too") {
    for (const char* topology : {"fat_tree", "rail_optimized", "single_switch"}) {
        CAPTURE(topology);
        auto jobs = jobs_of(
            cluster_text(8, "1 day") +
            fmt::format("node = \"dgx_h100\"\n[fabric.compute]\ntopology = \"{}\"\n", topology) +
            "[scheduler]\n" + kind("small", 2, "length = \"1 h\"\nmodel = \"llama2_7b\"") +
            kind("large", 16, "length = \"1 h\"\nmodel = \"llama2_7b\""));
        CHECK(jobs["small"].state == "completed");
        CHECK(jobs["large"].state == "refused");
    }
}

TEST_CASE("work whose median is next to nothing is drawn") {
    auto jobs =
        jobs_of(cluster_text(2, "4 day") + "node = \"dgx_h100\"\n[scheduler]\n" +
                kind("skewed", 1, "work = \"5 h\"\nwork_median = \"1 us\"\nrate = \"40 /day\""));
    CHECK(jobs["skewed"].state == "completed");
}

TEST_CASE(
    "uploads beside steps cost what hosts do on a network of their own, and more on the steps'") {
    const auto stall = [](const std::string& network) {
        const std::string text = cluster_text(4, "2 day") + R"(node = "dgx_h100"
[fabric.compute]
topology = "fat_tree"
[storage]
system = "generic"
servers = 2
server_write_bandwidth = "2 GB/s"
server_read_bandwidth = "4 GB/s"
client_bandwidth = "5 GB/s"
network = ")" + network + "\"\n[scheduler]\n" +
                                 kind("a", 4, "length = \"20 h\"\nmodel = \"llama2_7b\"") +
                                 R"([jobs.kind.parallel]
tensor = 8
global_batch = 64
sequence_length = 4096
zero = 1
[jobs.kind.checkpoint]
mode = "async"
interval = "20 min"
)";
        const ReplicaResult r = run_replica(scenario(text, {"run.fidelity=flow"}), 0, false);
        return static_cast<double>(r.ledger.booked(Category::checkpoint_stall));
    };
    CHECK(stall("compute") >= stall("own"));
    CHECK(stall("compute") < 1.5 * stall("own"));
}
