// Stores that are shared, fail and lose data, through a campaign's ledger and against the hand's arithmetic.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "models/campaign/campaign.h"
#include "models/campaign/cost_metrics.h"
#include "tests/scenario_text.h"

using namespace railyard;

namespace {

ReplicaResult run(const Scenario& s) {
    ReplicaResult r = run_replica(s, 0, true);
    CHECK(r.ledger.total() == GpuNanoseconds{s.gpus()} * r.simulated.count());
    return r;
}

// Eight GPUs that each take a batch of 1 GB a second, two batches ahead, from a store of 10 GB/s; another job
// of one node writes 3,000 GB there every hour.
const std::string starving = cluster_text(1, "10 h") + R"(
[storage]
server_read_bandwidth = "10 GB/s"
server_write_bandwidth = "10 GB/s"
client_bandwidth = "100 GB/s"
[job]
step.time = "1 s"
checkpoint.mode = "none"
[job.data]
sample_size = "1 GB"
batch = 1
prefetch = 2
workers = 1000
[failures]
profile = "none"
[[neighbour]]
name = "other"
checkpoint = "3000 GB"
every = "1 h"
start = "10 min"
)";

}  // namespace

TEST_CASE("a neighbour's checkpoint starves my steps as long as the queue's arithmetic says") {
    const Scenario s = load_scenario(starving, "starving", {});
    REQUIRE(s.data->flow.data_wait_s < 0.02);
    const ReplicaResult r = run(s);
    // Both share the servers' time: 5 GB/s each, where steps take 8. The other's 3,000 GB take 600 s.
    // A queue of 16 GB is empty after 16 / 3 s; from then on a step takes 8 / 5 s, 0.6 s of it waiting.
    const double starved = 10 * (600 - 16 / 3.0);
    CHECK(metric(r, "data_starved_time") == doctest::Approx(starved).epsilon(0.01));
    CHECK(metric(r, "data_wait_time") == doctest::Approx(starved * 0.6 / 1.6).epsilon(0.01));
    CHECK(booked_s(s, r, Category::data_wait) == doctest::Approx(metric(r, "data_wait_time")));
    CHECK(metric(r, "steps") == doctest::Approx(36'000 - starved * 0.6 / 1.6).epsilon(0.001));
    CHECK(metric(r, "neighbour_other_checkpoint_time") == doctest::Approx(600).epsilon(0.01));
    // Ten times its nodes: ten elevenths of the servers' time are its own, and it is out in 330 s.
    const Scenario large = load_scenario(std::string(starving) + "nodes = 10\n", "large", {});
    const double rest = 10 / 11.0;  // GB/s that are left for the steps' 8
    const double each = 3000 / (10 - rest);
    const double empty = each - 16 / (8 - rest);
    CHECK(metric(run(large), "data_wait_time") ==
          doctest::Approx(10 * empty * (1 - rest / 8)).epsilon(0.01));
    // By the job, not by the node, it is as before.
    const Scenario fair = load_scenario(std::string(starving) + "nodes = 10\n", "fair",
                                        {{"storage.sharing=jobs"}, {}});
    CHECK(metric(run(fair), "data_wait_time") == metric(r, "data_wait_time"));
}

namespace {

// A job that saves 360 GB at 1 GB/s after each hour of work: cycles of 1.1 h. Groups of four drives on one
// server, two of which it can lose.
const std::string saving = cluster_text(4, "20 h") + R"(
[storage]
system = "lustre"
servers = 2
client_bandwidth = "0.25 GB/s"
[storage.failures]
random = false
[job]
nodes = 3
step.time = "100 s"
[job.checkpoint]
size = "270 GB"
interval = "1 h"
serialization = "1 TB/s"
[job.recovery]
restart = "0 s"
[failures]
profile = "none"
)";

std::string drives_lost(double hours, int drives) {
    std::string text;
    for (int d = 0; d < drives; ++d) {
        text += fmt::format(
            "[[storage.failures.inject]]\nat = \"{} h\"\npart = \"drive\"\nindex = {}\n", hours, d);
    }
    return text;
}

}  // namespace

TEST_CASE("a synchronous checkpoint stalls for its bytes over the bandwidth, exactly") {
    const Scenario s = load_scenario(saving, "saving", {});
    const ReplicaResult r = run(s);
    CHECK(r.job.checkpoint.made_safe == 18);
    CHECK(r.job.checkpoint.stall.total() == 18 * std::chrono::seconds(360));
    CHECK(r.job.checkpoint.stall[Wall::client] == 18 * std::chrono::seconds(360));
}

TEST_CASE("a snapshot goes to the host over NVLink-C2C where a GPU has it, else over PCIe") {
    const auto snapshot = [](const char* node) {
        const Scenario s = load_scenario(
            saving, "saving",
            {{"job.checkpoint.mode=async", fmt::format("cluster.node={}", node)}, {}});
        return seconds(s.job.checkpoint.snapshot) * static_cast<double>(s.job.gpus());
    };
    // 359 GB/s as measured on GB200, 55.1 on H200.
    CHECK(snapshot("dgx_h200") / snapshot("gb200_nvl72") ==
          doctest::Approx(359 / 55.1).epsilon(0.01));
}

TEST_CASE(
    "the time to the stall's end is each checkpoint's, the time to safe that of those that were") {
    // The store takes every third from the drives.
    const Scenario s = load_scenario(
        std::string(saving) +
            "[[job.checkpoint.tier]]\nplace = \"local_nvme\"\n"
            "write_bandwidth = \"1 GB/s\"\n"
            "[[job.checkpoint.tier]]\nplace = \"storage\"\nevery = 3\n",
        "every third", {{"job.checkpoint.mode=async", "job.checkpoint.upload_slowdown=0.0"}, {}});
    const ReplicaResult r = run(s);
    CHECK(r.job.checkpoint.begun == 19);
    CHECK(r.job.checkpoint.made_safe == 6);
    const double snapshot = seconds(s.job.checkpoint.snapshot);
    CHECK(metric(r, "checkpoint_time_to_stall_end") == doctest::Approx(snapshot).epsilon(1e-9));
    CHECK(metric(r, "checkpoint_time_to_safe") ==
          doctest::Approx(snapshot + 90 + 360).epsilon(1e-9));
}

TEST_CASE(
    "a save that the campaign's end or a failure cuts off says nothing of how long one takes") {
    // The nineteenth begins at 20.8 h, and three minutes of its six are left.
    const Scenario cut = load_scenario(saving, "cut off", {{"run.duration=20.85 h"}, {}});
    const ReplicaResult by_end = run(cut);
    CHECK(by_end.job.checkpoint.begun == 19);
    CHECK(by_end.job.checkpoint.stalls_ended == 18);
    CHECK(metric(by_end, "checkpoint_time_to_stall_end") == 360);
    const Scenario crash =
        load_scenario(std::string(saving) +
                          "[[failures.cause]]\nname = \"crash\"\nremedy = \"restart\"\n"
                          "rate_per_node = \"0 /day\"\ndetection = \"1 min\"\n"
                          "[[inject]]\nat = \"1.05 h\"\ncause = \"crash\"\nnode = 0\n",
                      "crash", {});
    const ReplicaResult by_failure = run(crash);
    CHECK(by_failure.job.checkpoint.begun > by_failure.job.checkpoint.stalls_ended);
    CHECK(metric(by_failure, "checkpoint_time_to_stall_end") == 360);
}

TEST_CASE("an outage holds a synchronous checkpoint up for exactly its length") {
    // A server of a pair that is gone: its clients wait for the failover.
    const char* const strike =
        "[[storage.failures.inject]]\nat = \"1.05 h\"\npart = \"server\"\ndown_for = \"1 s\"\n";
    const auto first_safe = [](const ReplicaResult& result) {
        for (const CampaignEvent& e : result.log) {
            if (std::string(e.kind) == "checkpoint_safe") return e.at;
        }
        return Instant{};
    };
    for (const char* other : {"", "[[neighbour]]\nname = \"other\"\nreads = \"1 MB/s\"\n"}) {
        const ReplicaResult r = run(load_scenario(std::string(saving) + strike + other, "out", {}));
        const ReplicaResult sound = run(load_scenario(std::string(saving) + other, "sound", {}));
        const Duration outage = r.store.outage_time;
        CHECK(outage > Duration{});
        CHECK(r.store.outages == 1);
        CHECK(r.job.checkpoint.stall[Wall::outage] == outage);
        CHECK(metric(r, "checkpoint_stall_outage") == seconds(outage));
        CHECK(first_safe(r) - first_safe(sound) == outage);
    }
}

TEST_CASE("data lost beyond the protection takes every checkpoint on the store, and is booked") {
    // Three drives of a RAID-6 group, while a planned stop has emptied the GPUs: nine cycles of 36 steps and
    // four steps more were saved.
    const std::string text = std::string(saving) + drives_lost(10.5, 3) +
                             "[maintenance]\nevery = \"10 h\"\nduration = \"1 h\"\n";
    const Scenario alone = load_scenario(text, "alone", {});
    const ReplicaResult r = run(alone);
    CHECK(metric(r, "storage_data_losses") == 1);
    CHECK(r.job.steps_lost == 9 * 36 + 4);
    CHECK(r.job.lost_work == r.job.steps_lost * std::chrono::seconds(100));
    CHECK(booked_s(alone, r, Category::lost_work) == seconds(r.job.lost_work));
    CHECK(r.job.checkpoint.tiers[0].lost == Bytes::of(2 * 270'000'000'000));  // it keeps two
    CHECK(metric(r, "storage_restores") == 1);  // of what the campaign opened with
    // Two drives are what the group can lose.
    const Scenario two = load_scenario(
        std::string(saving) + drives_lost(10.5, 2) + "[maintenance]\nevery = \"10 h\"\n", "two",
        {});
    CHECK(run(two).job.steps_lost == 0);
    // The eighth checkpoint is in the object store too.
    const Scenario colder =
        load_scenario(text +
                          "[object_store]\n[[job.checkpoint.tier]]\nplace = \"storage\"\n"
                          "[[job.checkpoint.tier]]\nplace = \"object_store\"\nevery = 4\n",
                      "colder", {});
    const ReplicaResult c = run(colder);
    CHECK(c.job.steps_lost == 9 * 36 + 4 - 8 * 36);
    CHECK(c.job.checkpoint.restored_from == std::vector<std::int64_t>{0, 1});
}

namespace {

// 128 GPUs whose steps wait for half of their time for the uplinks of four leaves, and save behind them.
const char* const one_fabric = R"(
[run]
replicas = 1
duration = "4 h"
fidelity = "flow"
[cluster]
nodes = 16
[storage]
system = "weka"
servers = 64
network = "compute"
[fabric.compute]
topology = "fat_tree"
nodes_per_leaf = 4
oversubscription = 4
routing = "spray"
[job]
model = "llama2_70b"
parallel = { tensor = 8, global_batch = 64, sequence_length = 4096, zero = 3 }
[job.checkpoint]
mode = "async"
interval = "10 min"
)";

struct Upload {
    double step_s = 0;     // without one
    double penalty_s = 0;  // of each beside one
    double alone_s = 0;
    double safe_s = 0;  // as they were
    double stall_s = 0;
};
Upload upload(std::vector<std::string> settings) {
    const Scenario s = load_scenario(one_fabric, "one fabric", {std::move(settings), {}});
    const ReplicaResult r = run(s);
    return {seconds(s.job.step.duration()), seconds(s.job.checkpoint.upload_step_penalty),
            seconds(s.checkpoint_upload),
            metric(r, "checkpoint_time_to_safe") - seconds(s.job.checkpoint.snapshot),
            booked_s(s, r, Category::checkpoint_stall)};
}

}  // namespace

TEST_CASE("uploads and the steps beside them share the compute network, and no other") {
    const Upload own = upload({"storage.network=own"});
    CHECK(own.penalty_s == doctest::Approx(0.02 * own.step_s).epsilon(1e-6));  // what hosts do
    CHECK(own.safe_s == doctest::Approx(own.alone_s).epsilon(1e-6));
    const Upload one = upload({});
    CHECK(one.penalty_s > 1.1 * (0.02 * one.step_s));
    CHECK(one.safe_s > 0.999 * one.alone_s);
    CHECK(one.stall_s > own.stall_s);
    // What writes more at once takes more of the links from steps, for a shorter time.
    const Upload wide = upload({"job.checkpoint.serialization=10 GB/s"});
    CHECK(wide.penalty_s > 2 * one.penalty_s);
    CHECK(wide.safe_s < one.safe_s);
    // Wider leaves have room for both.
    const Upload flat = upload({"fabric.compute.oversubscription=1"});
    CHECK(flat.penalty_s < one.penalty_s);
    // Measured, it is all that a step takes longer.
    const Upload measured = upload({"job.checkpoint.upload_slowdown=0.1"});
    CHECK(measured.penalty_s == doctest::Approx(0.1 * measured.step_s).epsilon(1e-6));
    CHECK(measured.safe_s == doctest::Approx(measured.alone_s).epsilon(1e-6));
}

TEST_CASE(
    "by packets, ranks that serialise slowly are beside the steps for their share of the time") {
    const auto penalty_s = [](const char* serialization) {
        const Scenario s = load_scenario(
            one_fabric, "packets",
            {{"run.fidelity=packet", "cluster.nodes=4", "fabric.compute.nodes_per_leaf=2",
              "job.model=llama2_7b", std::string("job.checkpoint.serialization=") + serialization},
             {}});
        return seconds(s.job.checkpoint.upload_step_penalty);
    };
    const double slow = penalty_s("10 MB/s");
    CHECK(slow > 0);
    CHECK(penalty_s("40 MB/s") == doctest::Approx(4 * slow).epsilon(0.02));
}

TEST_CASE(
    "a synchronous save to the compute network has it to itself, its copies behind have not") {
    CHECK(upload({"job.checkpoint.mode=sync"}).penalty_s == 0);
    const Upload tiers = upload({"job.checkpoint.mode=sync",
                                 "job.checkpoint.tier=[{place=\"local_nvme\"},"
                                 "{place=\"storage\"}]"});
    CHECK(tiers.penalty_s > 0);
}

TEST_CASE("an upload that has half of its rate beside steps takes twice as long") {
    Scenario s = load_scenario(one_fabric, "half", {{"storage.network=own"}, {}});
    CheckpointSpec& c = s.job.checkpoint;
    const double alone_s = seconds(s.checkpoint_upload);
    const double half = 4 * static_cast<double>(c.size.count()) / alone_s;
    c.tiers[0].beside_steps = Bandwidth::bits_per_second(std::llround(half));
    const ReplicaResult r = run(s);
    CHECK(metric(r, "checkpoint_time_to_safe") - seconds(c.snapshot) ==
          doctest::Approx(2 * alone_s).epsilon(1e-6));
    CHECK(r.job.checkpoint.upload[Wall::network] > Duration{});
}

TEST_CASE("a store that spreads its strips rebuilds a lost drive before anybody replaces it") {
    const std::string one_drive = cluster_text(4, "20 day") + R"(
[storage]
servers = 12
[storage.failures]
random = false
[[storage.failures.inject]]
at = "1 h"
part = "drive"
index = 0
down_for = "19 day"
[job.step]
time = "5 s"
[job.checkpoint]
size = "100 GB"
interval = "1 h"
[failures]
profile = "none"
)";
    for (const char* system : {"ceph_nvme", "threefs", "object", "weka"}) {
        CAPTURE(system);
        const Scenario s = scenario(one_drive, {std::string("storage.system=") + system});
        CHECK(metric(run(s), "storage_rebuilds") == 1);
    }
}

TEST_CASE("a cloud's store draws nothing on the site, and is paid by what is sent and read") {
    const std::string text = cluster_text(2, "2 day") + R"(
[storage]
system = "s3"
object.egress = true
[job.step]
time = "5 s"
[job.checkpoint]
mode = "sync"
size = "100 GB"
interval = "6 h"
[job.data]
sample_size = "1 MB"
batch = 100
[failures]
profile = "none"
[cost]
)";
    const Scenario s = load_scenario(text, "cloud", {});
    CHECK(s.power.storage.value == 0);
    const ReplicaResult r = run(s);
    const StorePrices prices = s.stores[shared_store].system->prices();
    REQUIRE(prices.per_egress_byte > 0);
    CHECK(metric(r, "object_store_requests_cost") ==
          doctest::Approx(metric(r, "storage_bytes_written") /
                          static_cast<double>(prices.write_part.count()) *
                          prices.per_write_request));
    CHECK(metric(r, "data_egress_cost") ==
          doctest::Approx(metric(r, "data_fetched") * prices.per_egress_byte));
    // A thousand samples of 1 MB are a shard, and are read part by part.
    const double requests = std::ceil(1e9 / static_cast<double>(prices.read_part.count()));
    CHECK(metric(r, "data_requests_cost") ==
          doctest::Approx(metric(r, "data_fetched") / 1e9 * requests * prices.per_read_request));
    CHECK(metric(r, "paid_by_use") ==
          doctest::Approx(metric(r, "object_store_requests_cost") +
                          metric(r, "object_store_egress_cost") +
                          metric(r, "object_store_kept_cost") + metric(r, "data_egress_cost") +
                          metric(r, "data_requests_cost")));
    const Scenario files = scenario(text, {"job.data.format=files"});
    CHECK(files.data->requests_usd_per_byte == doctest::Approx(prices.per_read_request / 1e6));
    const Scenario own = scenario(
        text, {"storage.system=object", "storage.servers=12", "storage.object.egress=false"});
    CHECK(own.power.storage.value > 0);
}

TEST_CASE("a store that is paid by use is paid for what it keeps for as long as it does") {
    const auto text = [](bool many, const char* duration, const char* keep) {
        const char* job = many ? "jobs.kind" : "job";
        return cluster_text(2, duration) +
               fmt::format(
                   "[storage]\nsystem = \"s3\"\n[failures]\nprofile = \"none\"\n[cost]\n{}\n"
                   "nodes = 2\nlength = \"44 h\"\nstep.time = \"5 s\"\n"
                   "[{}.checkpoint]\nmode = \"sync\"\nsize = \"1 TB\"\ninterval = \"4 h\"\n"
                   "[[{}.checkpoint.tier]]\nplace = \"storage\"\nkeep = {}\n",
                   many ? "[scheduler]\nkind = \"fifo\"\n[[jobs.kind]]\nname = \"a\"" : "[job]",
                   job, job, keep);
    };
    const auto months_of_one = [&](bool many, const char* duration, const char* keep) {
        const Scenario s = scenario(text(many, duration, keep));
        const ReplicaResult r = run(s);
        CHECK(metric(r, "paid_by_use") >=
              metric(r, "object_store_kept_cost") + metric(r, "object_store_requests_cost"));
        const StorePrices prices = s.stores[shared_store].system->prices();
        return metric(r, "object_store_kept_cost") / prices.per_byte_month / 1e12;
    };
    constexpr double hours = 365.25 * 24 / 12;
    for (const bool many : {false, true}) {
        CAPTURE(many);
        // Ten saves, the last one 4 h before the end: all of them, or the newest.
        CHECK(
            months_of_one(many, "44 h", "50") ==
            doctest::Approx((4 + 8 + 12 + 16 + 20 + 24 + 28 + 32 + 36 + 40) / hours).epsilon(0.02));
        CHECK(months_of_one(many, "44 h", "1") == doctest::Approx(40 / hours).epsilon(0.02));
    }
    // One of many jobs that is over keeps nothing more.
    CHECK(months_of_one(true, "20 day", "50") ==
          doctest::Approx((4 + 8 + 12 + 16 + 20 + 24 + 28 + 32 + 36 + 40) / hours).epsilon(0.02));
}
