#include "models/campaign/phases.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "models/campaign/campaign.h"

using namespace railyard;

namespace {

Scenario load(const std::string& text) {
    ScenarioChanges changes;
    changes.phases = true;
    return load_scenario(text, "phases", changes);
}

double value(const ReplicaResult& r, std::string_view name) {
    const auto found = std::ranges::find(r.metrics, name, &Metric::name);
    REQUIRE_MESSAGE(found != r.metrics.end(), std::string(name));
    return found->value;
}

const std::string two_phases = R"(start = "2026-06-01"
[[phase]]
at = "2026-06-11"
)";

// 8 nodes for ten days, whose jobs take one each for a day and a half; then 16.
std::string queue(const std::string& phase, const std::string& kind = "") {
    return R"([run]
duration = "12 day"
start = "2026-06-01"
[[phase]]
at = "2026-06-11"
set = { cluster.nodes = 16 }
)" + phase +
           R"(
[cluster]
nodes = 8
[scheduler]
kind = "slurm"
[[jobs.kind]]
name = "a"
gpus = 8
work = "36 h"
count = 160
)" + kind;
}

// Jobs of 16 GPUs and 20 hours, at this rate; `more` follows their kind.
std::string jobs_of_a(const std::string& scheduler, const std::string& rate,
                      const std::string& more, const std::string& phases) {
    return fmt::format(R"([cluster]
nodes = 8
[scheduler]
kind = "{}"
[[jobs.kind]]
name = "a"
gpus = 16
work = "20 h"
count = 400
rate = "{}"
{}[run]
duration = "30 day"
{})",
                       scheduler, rate, more, phases);
}

std::string stream(const std::string& scheduler, const std::string& phases) {
    return jobs_of_a(scheduler, "16 /day", R"(checkpoint_interval = "1 h"
[[jobs.kind]]
name = "b"
gpus = 8
work = "3 h"
count = 400
rate = "30 /day"
)",
                     phases);
}

// One job, without failures of its own.
std::string one_job(const std::string& phases, const std::string& more) {
    return R"([cluster]
nodes = 9
[job]
nodes = 8
model = "llama2_7b"
[job.parallel]
global_batch = 512
)" + more + "[run]\nduration = \"30 day\"\n" +
           phases;
}

}  // namespace

TEST_CASE("jobs that go on over two phases of the same cluster do what they do in one") {
    for (const std::string scheduler : {"slurm", "volcano"}) {
        INFO(scheduler);
        const ReplicaResult once = run_replica(load(stream(scheduler, "")), 1, false);
        const ReplicaResult twice = run_replica(load(stream(scheduler, two_phases)), 1, false);
        for (const std::string name :
             {"jobs", "jobs_completed", "jobs_running", "goodput", "utilisation", "wait_mean",
              "jct_mean", "bounded_slowdown_mean"}) {
            INFO(name);
            CHECK(value(twice, name) == doctest::Approx(value(once, name)).epsilon(1e-9));
        }
        CHECK(twice.ledger.total() == once.ledger.total());
    }
}

TEST_CASE(
    "jobs of two pods go on under Kubernetes and Kueue, and those that wait come in their order") {
    const auto jobs = [](const std::string& scheduler, const std::string& phases) {
        return run_replica(load(jobs_of_a(scheduler, "40 /day", "", phases)), 0, false);
    };
    const std::string blocked = "kueue\"\nkueue = { wait_for_pods_ready = true }\n#\"";
    const std::string later = "start = \"2026-06-01\"\nready = \"2026-06-11\"\n";
    for (const std::string& scheduler :
         {std::string("kubernetes"), std::string("kueue"), blocked}) {
        INFO(scheduler);
        const ReplicaResult once = jobs(scheduler, "");
        CHECK(once.ledger.fraction(Category::productive) > 0.99);
        const ReplicaResult twice = jobs(scheduler, two_phases);
        CHECK(value(twice, "goodput") == doctest::Approx(value(once, "goodput")).epsilon(1e-3));
        CHECK(value(twice, "jobs_completed") == value(once, "jobs_completed"));
        CHECK(jobs(scheduler, later).ledger.fraction(Category::productive) > 0.99);
    }
}

TEST_CASE("events and jobs of a campaign in phases have the names that they have in one") {
    struct Told {
        std::vector<std::string> over;  // as the log names them
        std::vector<JobRecord> jobs;
    };
    const auto told = [](const std::string& phases) {
        Told out;
        const ReplicaResult r =
            run_replica(load(stream("slurm", phases)), 1, true, nullptr, nullptr,
                        [&](const JobRecord& job) { out.jobs.push_back(job); });
        for (const CampaignEvent& event : r.log) {
            if (std::string_view(event.kind) == "over") out.over.push_back(event.cause);
        }
        return out;
    };
    const Told once = told("");
    const Told twice = told(two_phases);
    CHECK(once.over.size() > 10);
    CHECK(twice.over == once.over);
    REQUIRE(twice.jobs.size() == once.jobs.size());
    for (std::size_t i = 0; i < once.jobs.size(); ++i) {
        INFO(i);
        CHECK(twice.jobs[i].name == once.jobs[i].name);
        CHECK(twice.jobs[i].state == once.jobs[i].state);
        CHECK(twice.jobs[i].submit_s == once.jobs[i].submit_s);
        CHECK(twice.jobs[i].wait_s == doctest::Approx(once.jobs[i].wait_s).epsilon(1e-9));
    }
}

TEST_CASE("storms count in each phase of the jobs that they hold up") {
    const Scenario s = load(R"([run]
duration = "20 day"
)" + two_phases + R"(
[cluster]
node = "dgx_h100"
nodes = 8
[fabric.compute]
kind = "roce"
topology = "fat_tree"
leaf = "sn5600_spectrum4"
nodes_per_leaf = 2
watchdog = { detection = "100 ms", restoration = "100 ms" }
transport.timeout = 14
[scheduler]
[[jobs.kind]]
name = "a"
nodes = 8
length = "1000 day"
step.time = "7 s"
checkpoint.mode = "none"
[[failures.storm]]
rate_per_node = "1 /day"
duration = "300 ms"
[[window.traffic]]
kind = "all_to_all"
bytes = "256 KiB"
)");
    const ReplicaResult r = run_replica(s, 0, false);
    const Duration stalled =
        static_cast<std::int64_t>(value(r, "storms")) * s.causes[0].storm->stall;
    CHECK(stalled > Duration{});
    CHECK(r.ledger.booked(Category::storm_stall) == GpuNanoseconds{s.gpus()} * stalled.count());
}

TEST_CASE("schedulers that try jobs anew on the day of a phase say so") {
    const auto warned = [](const std::string& scheduler) {
        return std::ranges::any_of(
            load(stream(scheduler, two_phases)).warnings, [](const Diagnostic& warning) {
                return warning.message.find("are all tried anew") != std::string::npos;
            });
    };
    CHECK(warned("kubernetes"));
    CHECK(warned("kueue"));
    CHECK(!warned("slurm"));
    CHECK(!warned("volcano"));
}

TEST_CASE("a queue is drained twice as quickly once the cluster is twice as large") {
    const ReplicaResult r = run_replica(load(queue("")), 0, false);
    // Six rounds of 8 by hour 216; the next 8 go on over hour 240 to 252, beside 8 more from 240 to 276, and
    // those behind them are done at 288.
    CHECK(value(r, "phase_1_jobs_completed") == 48);
    CHECK(value(r, "phase_2_jobs_completed") == 24);
    const double hours = 8.0 * (36 + 72 + 108 + 144 + 180 + 216 + 252 + 276 + 288) / 72;
    CHECK(value(r, "jct_mean") == doctest::Approx(hours * 3600));
    CHECK(value(r, "goodput") == doctest::Approx(1));
    CHECK(r.ledger.total() == GpuNanoseconds{64 * 10 + 128 * 2} * 86'400'000'000'000);
}

TEST_CASE("what is switched off between phases is queued again and loses what it has not saved") {
    const std::string stop = "stop = \"1 day\"";
    const ReplicaResult lost = run_replica(load(queue(stop)), 0, false);
    const double all = 64.0 * 10 + 128 * 2;  // GPU days
    CHECK(lost.ledger.fraction(Category::lost_work) == doctest::Approx(64 / all));
    CHECK(lost.ledger.fraction(Category::planned_maintenance) == doctest::Approx(128 / all));
    CHECK(value(lost, "phase_2_jobs_completed") == 0);
    const ReplicaResult saved =
        run_replica(load(queue(stop, "checkpoint_interval = \"1 h\"\n")), 0, false);
    CHECK(saved.ledger.booked(Category::lost_work) == 0);
    CHECK(value(saved, "phase_2_jobs_completed") == 8);  // the 12 hours that they lacked
    // They restart, and read back what they saved; whom nobody queues again ends there.
    const ReplicaResult paid = run_replica(
        load(queue(stop, "checkpoint_interval = \"1 h\"\nrestart = \"1 h\"\nrestore = \"2 h\"\n")),
        0, false);
    CHECK(paid.ledger.fraction(Category::restore) == doctest::Approx(64 * 2 / 24.0 / all));
    const ReplicaResult gone = run_replica(load(queue(stop, "requeue = false\n")), 0, false);
    CHECK(value(gone, "jobs_cancelled") == 8);
}

TEST_CASE("keys of a phase reach into lists, and those that reach nothing are errors") {
    const auto set = [](const std::string& keys) {
        return load(stream("slurm", two_phases + "set = { " + keys + " }\n"));
    };
    const Scenario more = set("\"jobs.kind.0.rate\" = \"32 /day\"");
    const ReplicaResult r = run_replica(more, 0, false);
    const ReplicaResult same = run_replica(set(""), 0, false);
    // As many as without, and sooner: those that came before count.
    CHECK(value(r, "jobs") == 800);
    CHECK(value(same, "jobs") == 800);
    CHECK(value(r, "phase_1_jobs_completed") == value(same, "phase_1_jobs_completed"));
    CHECK(value(r, "wait_mean") > value(same, "wait_mean") * 1.05);
    CHECK_THROWS_WITH(set("\"jobs.kind.2.rate\" = \"32 /day\""),
                      doctest::Contains("the list has 2 entries"));
    CHECK_THROWS_WITH(set("\"jobs.kind.a.rate\" = \"32 /day\""),
                      doctest::Contains("the list has 2 entries"));
    CHECK_THROWS_WITH(set("\"cluster.nodes.0\" = 3"),
                      doctest::Contains("the number 8 has no keys"));
    CHECK_THROWS_WITH(set("\"cluster..nodes\" = 3"), doctest::Contains("is empty"));
}

TEST_CASE("a failure at a known time strikes in the phase that has it") {
    const std::string strike = R"([[inject]]
at = "{}"
cause = "gpu_hw"
node = 1
)";
    const auto interruptions = [&](const char* at, int phase) {
        const Scenario s = load(one_job(two_phases, fmt::format(fmt::runtime(strike), at)));
        return value(run_replica(s, 0, false),
                     phase_metric(static_cast<std::size_t>(phase), "interruptions"));
    };
    CHECK(interruptions("5 day", 0) == 1);
    CHECK(interruptions("5 day", 1) == 0);
    CHECK(interruptions("12 day", 0) == 0);
    CHECK(interruptions("12 day", 1) == 1);
    const Scenario off = load(
        one_job(two_phases + "stop = \"1 day\"\n", fmt::format(fmt::runtime(strike), "250 h")));
    REQUIRE(off.warnings.size() >= 1);
    CHECK(off.warnings.back().message.find("nothing is switched on") != std::string::npos);
}

TEST_CASE("what one job has not saved by the day of a phase is lost with its next failure") {
    const auto strike = [](const char* at) {
        return fmt::format("[[inject]]\nat = \"{}\"\ncause = \"gpu_hw\"\nnode = 1\n", at);
    };
    const std::string stages = R"([[job.stage]]
name = "first"
steps = 100000
[[job.stage]]
name = "second"
parallel = { global_batch = 1024 }
)";
    const auto same = [&](const std::string& more) {
        const ReplicaResult once = run_replica(load(one_job("", more)), 0, false);
        const ReplicaResult twice = run_replica(load(one_job(two_phases, more)), 0, false);
        for (const char* name : {"steps", "tokens", "goodput", "mfu", "step_time"}) {
            INFO(name);
            CHECK(value(twice, name) == doctest::Approx(value(once, name)).epsilon(2e-5));
        }
        CHECK(twice.ledger.total() == once.ledger.total());
        CHECK(twice.ledger.fraction(Category::lost_work) ==
              doctest::Approx(once.ledger.fraction(Category::lost_work)).epsilon(2e-4));
        return twice;
    };
    for (const std::string& saves :
         {std::string("[job.checkpoint]\nmode = \"none\"\n"),
          std::string("[job.checkpoint]\ninterval = \"100 h\"\n"),
          std::string("[job.checkpoint]\ninterval = \"50000 steps\"\n")}) {
        for (const char* at : {"230 h", "241 h", "500 h"}) {
            for (const std::string& more : {std::string(), stages}) {
                INFO(saves, at, more);
                const ReplicaResult r = same(saves + more + strike(at));
                CHECK(r.ledger.booked(Category::lost_work) > 0);
            }
        }
    }
    // Twice as many steps to do, each half as long: what is lost is the same time.
    const std::string none = "[job.checkpoint]\nmode = \"none\"\n" + strike("241 h");
    const ReplicaResult lost = run_replica(
        load(one_job(two_phases + "set = { job.parallel.global_batch = 256 }\n", none)), 0, false);
    CHECK(lost.ledger.fraction(Category::lost_work) ==
          doctest::Approx(241.0 / 720 * 8 / 9).epsilon(0.01));
    // Where all is switched off, nothing is left of it.
    const std::string off = two_phases + "stop = \"1 day\"\n";
    const ReplicaResult stopped =
        run_replica(load(one_job(off, "[job.checkpoint]\nmode = \"none\"\n")), 0, false);
    CHECK(stopped.ledger.fraction(Category::lost_work) ==
          doctest::Approx(240.0 / 720 * 8 / 9).epsilon(0.001));
}

TEST_CASE("stages and pauses go on over the day on which a phase begins") {
    const std::string plan = R"([job.checkpoint]
mode = "none"
[[job.pause]]
every = "5000 steps"
duration = "3 h"
[[job.pause]]
at = "239 h"
duration = "5 h"
[[job.pause]]
at = "150000 steps"
duration = "1 h"
[[job.stage]]
name = "first"
steps = 160000
[[job.stage]]
name = "second"
parallel = { global_batch = 1024 }
)";
    const ReplicaResult once = run_replica(load(one_job("", plan)), 0, false);
    const ReplicaResult twice = run_replica(load(one_job(two_phases, plan)), 0, false);
    // A step that the day cuts off is done again.
    CHECK(value(twice, "steps") == doctest::Approx(value(once, "steps")).epsilon(1e-5));
    for (const char* name : {"pauses", "pause_time", "stage_1_steps"}) {
        INFO(name);
        CHECK(value(twice, name) == doctest::Approx(value(once, name)).epsilon(1e-6));
    }
    CHECK(value(twice, "goodput") == doctest::Approx(value(once, "goodput")).epsilon(1e-4));
}

TEST_CASE("a campaign in two phases of one cluster has the metrics of one run of both") {
    const std::string sections = R"([job.checkpoint]
mode = "async"
interval = "2 h"
[[job.checkpoint.tier]]
place = "host_memory"
keep = 1
[[job.checkpoint.tier]]
place = "storage"
keep_for = "1 day"
[job.data]
demand = "resnet50"
[storage]
servers = 2
server_write_bandwidth = "10 GB/s"
server_read_bandwidth = "10 GB/s"
[power]
budget = "200 kW"
[facility]
carbon_intensity = "400 gCO2/kWh"
[[failures.cause]]
name = "crash"
rate_per_node = "0 /day"
remedy = "restart"
detection = "10 min"
[[inject]]
at = "101 h"
cause = "crash"
[[inject]]
at = "401 h"
cause = "crash"
)";
    const ReplicaResult once = run_replica(load(one_job("", sections)), 0, false);
    const ReplicaResult twice = run_replica(load(one_job(two_phases, sections)), 0, false);
    for (const Metric& metric : once.metrics) {
        INFO(metric.name);
        // The second phase counts its checkpoint's interval anew, and so loses other steps.
        if (metric.name == "steps_lost" || metric.name == "lost_work_per_interruption") continue;
        CHECK(value(twice, metric.name) == doctest::Approx(metric.value).epsilon(0.005));
    }
    for (const std::string tier : {"host_memory", "storage"}) {
        INFO(tier);
        double there = 0;
        for (const char* what :
             {"_bytes_kept", "_bytes_expired", "_bytes_lost", "_bytes_in_flight"})
            there += value(twice, tier + what);
        CHECK(there == value(twice, tier + "_bytes_written"));
    }
}

TEST_CASE("a server of a store that is out on the day of a phase stays out") {
    const std::string saves = R"([job.checkpoint]
interval = "1 h"
size = "2 TB"
[storage]
system = "generic"
servers = 1
server_write_bandwidth = "10 GB/s"
server_read_bandwidth = "10 GB/s"
[[storage.failures.inject]]
part = "server"
at = "238 h"
down_for = "10 h"
)";
    const ReplicaResult once = run_replica(load(one_job("", saves)), 0, false);
    const ReplicaResult twice = run_replica(load(one_job(two_phases, saves)), 0, false);
    CHECK(value(once, "storage_outage_time") == 36000);
    CHECK(value(twice, "storage_outage_time") == 36000);
    CHECK(value(twice, "goodput") == doctest::Approx(value(once, "goodput")).epsilon(0.005));
}

TEST_CASE("a faster cluster's phase counts with what it did in the use of both") {
    const ReplicaResult r = run_replica(
        load(one_job(two_phases + "set = { cluster.node = \"dgx_b200\" }\n", "")), 0, false);
    const double first = value(r, "phase_1_tokens_per_day") * 10;
    const double second = value(r, "phase_2_tokens_per_day") * 20;
    CHECK(value(r, "tokens") == doctest::Approx(first + second).epsilon(1e-9));
    // In proportion to the steps of each, which have as many tokens.
    const double mean =
        (value(r, "phase_1_step_time") * first + value(r, "phase_2_step_time") * second) /
        (first + second);
    CHECK(value(r, "step_time") == doctest::Approx(mean).epsilon(1e-6));
    CHECK(value(r, "ettr") * 30 * 86400 == doctest::Approx(value(r, "training_time")));
    const double peaks = 1 * 989.5 + 2 * 2250.0;  // days x TFLOP/s of a GPU
    const double mfu =
        (value(r, "phase_1_mfu_step") * 989.5 + value(r, "phase_2_mfu_step") * 2 * 2250.0) / peaks;
    CHECK(value(r, "mfu_step") == doctest::Approx(mfu).epsilon(0.01));
}

TEST_CASE("ETTR begins with the first nodes") {
    const std::string later = "start = \"2026-06-01\"\nready = \"2026-06-11\"\n";
    const ReplicaResult r = run_replica(load(one_job(later, "")), 0, false);
    CHECK(value(r, "ettr") > 0.98);
    CHECK(value(r, "ettr") * 20 * 86400 == doctest::Approx(value(r, "training_time")));
}

TEST_CASE("a campaign of phases ends when its job is done") {
    const auto job = [&](int length) {
        std::string text = one_job(two_phases, "");
        text.insert(text.find("model ="), fmt::format("length = \"{} day\"\n", length));
        return run_replica(load(text), 0, false);
    };
    CHECK(job(5).simulated < std::chrono::hours(24 * 10));
    const ReplicaResult later = job(15);
    CHECK(later.simulated > std::chrono::hours(24 * 15));
    CHECK(later.simulated < std::chrono::hours(24 * 20));
    CHECK(value(later, "phase_2_tokens_per_day") > 0);
    CHECK(value(job(5), "phase_2_tokens_per_day") == 0);
}

TEST_CASE("a job that ends before a store is paid by use has the metrics of one that goes on") {
    const auto names = [](int length) {
        std::string text = one_job(two_phases + "set = { storage.system = \"s3\" }\n",
                                   "[storage]\nsystem = \"weka\"\n");
        text.insert(text.find("model ="), fmt::format("length = \"{} day\"\n", length));
        std::vector<std::string> out;
        for (const Metric& m : run_replica(load(text), 0, false).metrics) out.push_back(m.name);
        return out;
    };
    CHECK(names(5) == names(15));
    CHECK(std::ranges::count(names(5), "object_store_requests_cost") == 1);
}

TEST_CASE("jobs go from phase to phase by their kinds, which must be the same") {
    std::string text = queue("");
    text.replace(text.find("set = {"), 7,
                 "set = { jobs.kind = [{ name = \"b\", gpus = 8, work = \"1 h\" }], ");
    CHECK_THROWS_WITH(load(text), doctest::Contains("the kinds of jobs are b"));
}
