// Shuffle buffers: what they hold, how long they keep the first batch back, what an epoch's end makes of
// them.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "models/campaign/campaign.h"
#include "models/campaign/host_memory.h"
#include "tests/scenario_text.h"

using namespace railyard;

namespace {

ReplicaResult run(const Scenario& s) {
    ReplicaResult r = run_replica(s, 0, true);
    CHECK(r.ledger.total() == GpuNanoseconds{s.gpus()} * r.simulated.count());
    return r;
}

// Eight GPUs that each read 1 GB a second in samples of 10 MB from a store of 16 GB/s. Buffers of 200 samples
// for each of 2 x 8 workers hold 32 GB: 2 s.
constexpr double fill = 2;
const std::string shuffled = cluster_text(1, "10 h") + R"(
[storage]
server_read_bandwidth = "16 GB/s"
server_write_bandwidth = "16 GB/s"
client_bandwidth = "100 GB/s"
[job]
step.time = "1 s"
checkpoint.mode = "none"
recovery.restore = "0 s"
[job.data]
sample_size = "10 MB"
batch = 100
prefetch = 2
workers = 2
shuffle_buffer = 200
[failures]
profile = "none"
)";

Scenario with(const std::string& more, const std::vector<std::string>& settings = {}) {
    return load_scenario(shuffled + more, "shuffled", {settings, {}});
}

const char* const three_crashes = R"(
[[inject]]
at = "1 h"
cause = "software"
[[inject]]
at = "3 h"
cause = "software"
[[inject]]
at = "5 h"
cause = "software"
)";

}  // namespace

TEST_CASE("shuffle buffers hold samples as they are stored and fill as fast as they can be read") {
    DataDemand demand;
    demand.sample_bytes = 1e6;
    demand.batch = 10;
    demand.compute = std::chrono::seconds(1);
    LoaderSpec spec;
    spec.workers = 4;
    spec.core_decode_rate = 1;  // far too slow for the steps, and no matter to the buffers
    LoaderHosts hosts{2, 8, 100};
    DataSupply supply;
    supply.store_bandwidth = 10e9;
    const DataEpoch without = DataLoader(demand, spec, hosts).epoch(supply, 100);
    spec.shuffle_buffer = 1000;
    const DataLoader loader(demand, spec, hosts);
    CHECK(loader.shuffle_bytes() == doctest::Approx(1000.0 * 4 * 16 * 1e6));
    CHECK(loader.shuffle_fill_bandwidth(supply) == doctest::Approx(10e9));
    CHECK(loader.epoch(supply, 100).first_batch_s ==
          doctest::Approx(without.first_batch_s + 64e9 / 10e9));
    supply.stream_bandwidth = 50e6;  // of each of 64 workers
    CHECK(loader.shuffle_fill_bandwidth(supply) == doctest::Approx(3.2e9));
    supply.stream_bandwidth = DataSupply::unlimited;
    supply.first_byte = std::chrono::milliseconds(10);
    CHECK(loader.shuffle_fill_bandwidth(supply) == doctest::Approx(64 / 0.01 * 1e6));
}

TEST_CASE("every start waits for its first batch until the buffers are read") {
    const ReplicaResult r = run(with(three_crashes));
    CHECK(metric(r, "interruptions") == 3);
    CHECK(metric(r, "data_first_batch_time") == doctest::Approx(4 * fill));
    CHECK(metric(r, "data_wait_time") == doctest::Approx(4 * fill));  // and for nothing else
    const ReplicaResult none = run(with(three_crashes, {"job.data.shuffle_buffer=0"}));
    CHECK(metric(none, "data_wait_time") == 0);
    CHECK(metric(r, "training_time") == doctest::Approx(metric(none, "training_time") - fill));
    CHECK(metric(r, "goodput") < metric(none, "goodput"));
}

TEST_CASE("a state that is read for longer than the buffers hides them") {
    const std::vector<std::string> slow = {"job.recovery.restore=1.5 s"};
    CHECK(metric(run(with(three_crashes, slow)), "data_first_batch_time") ==
          doctest::Approx(fill + 3 * (fill - 1.5)));
    const std::vector<std::string> slower = {"job.recovery.restore=10 min"};
    CHECK(metric(run(with(three_crashes, slower)), "data_first_batch_time") ==
          doctest::Approx(fill));
}

TEST_CASE("buffers that fill share the store with a neighbour") {
    const std::string neighbour =
        "[[neighbour]]\nname = \"other\"\nreads = \"100 GB/s\"\nnodes = 1\n";
    CHECK(metric(run(with(neighbour)), "data_first_batch_time") == doctest::Approx(2 * fill));
}

TEST_CASE("each epoch begins with empty buffers, and ends with what they hold") {
    // 100 steps of 8 GB. Bound by its steps: each epoch is a fill longer.
    const ReplicaResult fast = run(with("", {"job.data.dataset=800 GB"}));
    CHECK(metric(fast, "steps") == doctest::Approx(36'000 * 100 / (100 + fill)).epsilon(1e-3));
    CHECK(metric(fast, "data_wait_time") ==
          doctest::Approx(36'000 * fill / (100 + fill)).epsilon(2e-3));
    // Bound by a store of 4 GB/s: an epoch is read in 200 s, and its last 32 GB, which are at hand then, last
    // for 4 s more.
    const ReplicaResult slow =
        run(with("", {"job.data.dataset=800 GB", "storage.server_read_bandwidth=4 GB/s"}));
    CHECK(metric(slow, "steps") == doctest::Approx(36'000 * 100 / 204.0).epsilon(5e-3));
    CHECK(metric(slow, "data_first_batch_time") ==
          doctest::Approx(36'000 / 204.0 * 8).epsilon(1e-2));
}

TEST_CASE("a first batch that leaves a buffer of few samples, which then grows") {
    DataDemand demand;
    demand.sample_bytes = 1e6;
    demand.batch = 10;
    demand.compute = std::chrono::seconds(1);
    LoaderSpec spec;
    spec.workers = 4;
    spec.shuffle_buffer = 1000;
    const LoaderHosts hosts{2, 8, 100};
    DataSupply supply;
    supply.store_bandwidth = 1.6e9;  // ten times what steps take
    const DataEpoch whole = DataLoader(demand, spec, hosts).epoch(supply, 1000);
    spec.shuffle_initial = 100;
    const DataLoader loader(demand, spec, hosts);
    CHECK(loader.shuffle_bytes() == doctest::Approx(64e9));
    CHECK(loader.shuffle_initial_bytes() == doctest::Approx(6.4e9));
    const DataEpoch early = loader.epoch(supply, 1000);
    CHECK(whole.first_batch_s - early.first_batch_s == doctest::Approx(57.6e9 / 1.6e9));
    CHECK(whole.duration_s - early.duration_s == doctest::Approx(57.6e9 / 1.6e9));
    // A store of 1.5 times what steps take: while buffers grow, 360 steps of 160 MB, each reads 320 MB.
    supply.store_bandwidth = 240e6;
    CHECK(loader.epoch(supply, 1000).duration_s - loader.epoch(supply, 1000).first_batch_s ==
          doctest::Approx(640 + 360 * 320e6 / 240e6));
}

TEST_CASE(
    "a start waits for the initial samples only, and no longer where the store is fast enough") {
    // 16 GB/s for steps that read 8 GB in a second: two for each that leaves, and no step waits.
    const ReplicaResult r = run(with(three_crashes, {"job.data.shuffle_initial=50"}));
    CHECK(metric(r, "data_first_batch_time") == doctest::Approx(4 * fill / 4));
    CHECK(metric(r, "data_wait_time") == doctest::Approx(4 * fill / 4));
    const ReplicaResult all = run(with(three_crashes, {"job.data.shuffle_initial=200"}));
    CHECK(metric(all, "data_first_batch_time") == doctest::Approx(4 * fill));
}

TEST_CASE("a buffer that grows takes half of a store that is not twice as fast as the steps") {
    // 12 GB/s: 8 GB fill for 2/3 s. Then 24 GB grow in as many that leave, at 6 GB/s: 3 steps of 4/3 s.
    const ReplicaResult r =
        run(with("", {"job.data.shuffle_initial=50", "storage.server_read_bandwidth=12 GB/s"}));
    CHECK(metric(r, "data_first_batch_time") == doctest::Approx(8.0 / 12));
    CHECK(metric(r, "data_wait_time") == doctest::Approx(8.0 / 12 + 3 * (4.0 / 3 - 1)));
}

TEST_CASE("while a buffer grows a neighbour's reads cost twice as much") {
    // Half of 24 GB/s: the arithmetic of the store of 12 GB/s, with nobody else there.
    const std::string neighbour =
        "[[neighbour]]\nname = \"other\"\nreads = \"100 GB/s\"\nnodes = 1\n";
    const ReplicaResult r = run(
        with(neighbour, {"job.data.shuffle_initial=50", "storage.server_read_bandwidth=24 GB/s"}));
    CHECK(metric(r, "data_first_batch_time") == doctest::Approx(8.0 / 12));
    CHECK(metric(r, "data_wait_time") == doctest::Approx(8.0 / 12 + 3 * (4.0 / 3 - 1)));
}

TEST_CASE("epochs with buffers that grow read what they read, and end with what is at hand") {
    // Bound by its steps: each epoch is a quarter of a fill longer.
    const ReplicaResult fast =
        run(with("", {"job.data.dataset=800 GB", "job.data.shuffle_initial=50"}));
    CHECK(metric(fast, "steps") == doctest::Approx(36'000 * 100 / (100 + fill / 4)).epsilon(1e-3));
    // Bound by a store of 4 GB/s, as with whole buffers.
    const ReplicaResult slow =
        run(with("", {"job.data.dataset=800 GB", "storage.server_read_bandwidth=4 GB/s",
                      "job.data.shuffle_initial=50"}));
    CHECK(metric(slow, "steps") == doctest::Approx(36'000 * 100 / 204.0).epsilon(5e-3));
    // Buffers as large as the data set: half of the epoch's steps read all of it.
    const Scenario whole = with("", {"job.data.dataset=800 GB", "job.data.shuffle_buffer=100000",
                                     "job.data.shuffle_initial=1"});
    CHECK(whole.data->shuffle_buffers == Bytes::of(800'000'000'000));
    CHECK(metric(run(whole), "steps") == doctest::Approx(36'000.0).epsilon(1e-3));
}

TEST_CASE("buffers on the nodes' own drives grow at the pace of what leaves them") {
    const Scenario s = with("", {"job.data.source=local", "job.data.shuffle_initial=50"});
    const double rate = s.data->supply.local_bandwidth;
    CHECK(metric(run(s), "data_first_batch_time") == doctest::Approx(8e9 / rate));
    REQUIRE(rate > 16e9);
    CHECK(metric(run(s), "data_wait_time") == doctest::Approx(8e9 / rate));
}

TEST_CASE("buffers on the nodes' own drives fill as fast as these give") {
    const Scenario s = with("", {"job.data.source=local"});
    const double rate = s.data->supply.local_bandwidth;
    CHECK(metric(run(s), "data_first_batch_time") == doctest::Approx(32e9 / rate));
}

TEST_CASE("a buffer holds no more than a worker's share of the data set") {
    const Scenario s = with("", {"job.data.dataset=16 GB", "job.data.shuffle_buffer=1000000000"});
    CHECK(s.data->shuffle_buffers == Bytes::of(16'000'000'000));
}

TEST_CASE("what a job keeps in a node's memory is added up") {
    const std::vector<std::string> settings = {"job.nodes=1",
                                               "job.data.dataset=4 TB",
                                               "job.data.page_cache=1 TB",
                                               "job.checkpoint.mode=async",
                                               "job.checkpoint.size=100 GB",
                                               "job.checkpoint.buffers=2"};
    const Scenario s = with(
        "[[job.checkpoint.tier]]\nplace = \"peer_memory\"\nkeep = 3\n"
        "[[job.checkpoint.tier]]\nplace = \"storage\"\n",
        [&] {
            std::vector<std::string> two = settings;
            two.insert(two.end(), {"cluster.nodes=2", "job.nodes=2"});
            return two;
        }());
    double sum = 0;
    for (const HostMemoryUse& use : host_memory_uses(s)) sum += use.bytes;
    // Page cache, queues of 2 batches, buffers; snapshots and copies of 50 GB a node.
    CHECK(sum == doctest::Approx(1e12 + 2 * 8e9 + 32e9 + 2 * 50e9 + 2 * 3 * 50e9));
    std::vector<std::string> more = settings;
    more.push_back("job.data.shuffle_buffer=6000");  // 960 GB
    CHECK_THROWS_WITH_AS(with("", more),
                         doctest::Contains("do not fit into the 2.05 TB of memory of each node"),
                         ScenarioError);
}
