// Jobs that save to one store: what sharing it costs, by hand, and nothing else changes.

#include <doctest/doctest.h>

#include "models/campaign/campaign.h"
#include "tests/joint_window.h"
#include "tests/models/small_world.h"
#include "tests/scenario_text.h"

using namespace railyard;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""h;

namespace {

constexpr Bandwidth own_rate = Bandwidth::bits_per_second(8'000'000'000);  // of one job

// Each save takes 10 min alone, each restore 5.
struct Sharing : SmallWorld {
    Sharing(std::int64_t nodes, std::size_t cause_count, Bandwidth store)
        : SmallWorld(nodes, cause_count) {
        StoreSupply supply;
        supply.read = store * std::int64_t{2};
        supply.write = store;
        spec.stores = {{"store", supply}};
        spec.kinds[0].checkpoint_interval = 1h;
        auto saved = std::make_shared<CheckpointSpec>();
        saved->size = Bytes::of(600'000'000'000);
        saved->stall_alone = 10min;
        TierSpec& tier = saved->tiers.emplace_back();
        tier.keep = 100;
        tier.read.direction = Direction::read;
        tier.write.cap = own_rate;
        tier.read.cap = own_rate * std::int64_t{2};
        spec.kinds[0].saving = {[saved](std::int64_t, std::int64_t) { return saved; }};
    }
    // The same with saves and restores that take what they take alone.
    void forget_the_store() {
        spec.stores.clear();
        spec.kinds[0].saving = {};
        spec.kinds[0].checkpoint_stall = 10min;
        spec.kinds[0].restore = 5min;
    }
};

}  // namespace

TEST_CASE("with room for all a shared store is what fixed stalls are") {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        Sharing f(6, 2, own_rate * std::int64_t{100});
        f.spec.kinds[0].restart = 3min;
        f.spec.health.prolog_time = 1min;
        f.spec.kinds[0].own_failure_rate_per_gpu = Rate{1.0 / (8 * 40 * 3600.0)};
        const auto job = static_cast<Duration::rep>(seed);
        for (int i = 0; i < 9; ++i)
            f.submit(i % 2 == 0 ? 8 : 16, (3 + i) * 1h + job * 7s, i * 11min);
        f.inject(3h + 25min + 3s, 0);
        f.inject(5h + 4min + 17s, 1);
        f.inject(9h + 40min + 31s, 2, 1);  // at no instant at which a save ends
        f.causes[0].detection = 5min;
        SUBCASE("nodes that break") {}
        SUBCASE("slow parts, some of which are left") {
            f.spec.slowdowns = {0.5};
            f.causes[1].slow = SlowPart{};
            f.spec.search.check_every = 2h;
        }
        SUBCASE("silent corruption") {
            f.causes[1].silent = true;
            f.causes[1].detection = 2h;
        }
        CAPTURE(seed);
        const WorldRunResult shared = f.run(60h, seed);
        f.forget_the_store();
        const WorldRunResult fixed = f.run(60h, seed);
        for (std::size_t c = 0; c < category_count; ++c) {
            CAPTURE(category_name(static_cast<Category>(c)));
            CHECK(node_hours(shared, static_cast<Category>(c)) ==
                  doctest::Approx(node_hours(fixed, static_cast<Category>(c))).epsilon(1e-9));
        }
        for (std::size_t j = 0; j < f.jobs.jobs.size(); ++j) {
            CAPTURE(j);
            CHECK(shared.outcome.runs[j].end == fixed.outcome.runs[j].end);
            CHECK(shared.outcome.runs[j].kept == fixed.outcome.runs[j].kept);
            CHECK(shared.outcome.runs[j].interruptions == fixed.outcome.runs[j].interruptions);
        }
    }
}

TEST_CASE("jobs that save at once each take as many times as long as there are") {
    for (const std::int64_t n : {1, 2, 7, 40}) {
        Sharing f(n, 0, own_rate);
        for (std::int64_t i = 0; i < n; ++i) f.submit(8, 3h);
        const WorldRunResult r = f.run(1000h);
        for (const WorldJobRun& run : r.outcome.runs) {
            const Duration late = run.end - Instant(3h + n * 20min);
            CHECK(late > Duration(-10'000));  // rates are whole bits per second
            CHECK(late < Duration(10'000));
        }
        CHECK(node_hours(r, Category::checkpoint_stall) ==
              doctest::Approx(static_cast<double>(n * n) / 3).epsilon(1e-9));
    }
}

TEST_CASE("jobs that save one after another are not in each other's way") {
    Sharing f(4, 0, own_rate);
    for (int i = 0; i < 4; ++i) f.submit(8, 3h, i * 12min);
    const WorldRunResult r = f.run(1000h);
    for (int i = 0; i < 4; ++i) {
        CHECK(r.outcome.runs[static_cast<std::size_t>(i)].end == Instant(i * 12min + 3h + 20min));
    }
}

TEST_CASE("a save that a failure breaks off is lost, and leaves the store to the others") {
    Sharing f(3, 1, own_rate);
    f.submit(8, 90min);
    f.submit(8, 90min);
    f.inject(1h + 10min, 1);  // both have written half
    const WorldRunResult r = f.run(100h);
    CHECK(r.outcome.runs[0].end == Instant(1h + 10min + 5min + 30min));
    CHECK(node_hours(r, Category::lost_work) == doctest::Approx(1).epsilon(1e-9));
    // Begins again, with nothing to read.
    CHECK(r.outcome.runs[1].end == Instant(1h + 10min + 90min + 10min));
}

namespace {

// A job of 1,000 steps of a second, which saves each 100 of them: 5 s to host memory, then 40 s to the store,
// beside steps that take a tenth longer.
struct Behind : Sharing {
    std::shared_ptr<CheckpointSpec> saved = std::make_shared<CheckpointSpec>();

    explicit Behind(std::size_t cause_count) : Sharing(4, cause_count, own_rate) {
        WorldJobKind& kind = spec.kinds[0];
        kind.given_step = 1s;
        kind.checkpoint_interval = 100s;
        kind.checkpoint_steps = 100;
        saved->mode = CheckpointMode::async;
        saved->size = Bytes::of(40'000'000'000);
        saved->snapshot = saved->stall_alone = 5s;
        saved->upload_step_penalty = 100ms;
        TierSpec& store = saved->tiers.emplace_back();
        store.read.direction = Direction::read;
        store.write.cap = own_rate;
        store.read.cap = own_rate * std::int64_t{2};
        const auto given = saved;
        kind.saving = {[given](std::int64_t, std::int64_t) { return given; }};
    }
    void save_to_drives_first() {
        TierSpec drives;
        drives.place = Place::local_nvme;
        drives.write_time = 10s;
        drives.read_time = 10s;
        saved->tiers.insert(saved->tiers.begin(), drives);
        saved->tiers[1].every = 2;
    }
};

}  // namespace

TEST_CASE("saves behind the steps cost their snapshots, and the steps beside their uploads") {
    Behind f(0);
    f.submit(8, 1000s);
    const WorldRunResult r = f.run(100h);
    const double stalls_s = 9 * (5 + 40 * 0.1 / 1.1);
    CHECK(seconds(r.outcome.runs[0].end - Instant(1000s)) ==
          doctest::Approx(stalls_s).epsilon(1e-9));
    CHECK(node_hours(r, Category::checkpoint_stall) ==
          doctest::Approx(stalls_s / 3600).epsilon(1e-9));
    CHECK(node_hours(r, Category::productive) == doctest::Approx(1000.0 / 3600).epsilon(1e-12));
}

TEST_CASE("uploads of several jobs share the store, and those behind wait for a buffer") {
    Behind f(0);
    for (int i = 0; i < 4; ++i) f.submit(8, 250s);
    const WorldRunResult r = f.run(100h);
    // Each upload takes 160 s. From the first to the second save there are 100 steps of 1.1 s, then 50 s in
    // which the buffer is not free; after it 50 steps beside the second upload.
    for (const WorldJobRun& run : r.outcome.runs) {
        CHECK(seconds(run.end - Instant{}) ==
              doctest::Approx(100 + 5 + 160 + 5 + 50 * 1.1).epsilon(1e-9));
    }
}

TEST_CASE("a job that fails goes back to what its nodes don't take with them") {
    Behind f(1);
    f.save_to_drives_first();
    f.submit(8, 350s);
    const double slowed = 0.1 / 1.1;  // of an upload's time
    SUBCASE("a drive's copy is gone with the job's nodes, the store's is not") {
        f.inject(340s, 0);  // saves at 100, 200 and 300 steps; the second is in the store
        const WorldRunResult r = f.run(100h);
        // From the store 20 s, then 150 steps with a save at 300, the fourth, that goes to the store too.
        CHECK(seconds(r.outcome.runs[0].end - Instant(340s)) ==
              doctest::Approx(20 + 150 + 5 + (10 + 40) * slowed).epsilon(1e-9));
        CHECK(node_hours(r, Category::restore) == doctest::Approx(20.0 / 3600).epsilon(1e-9));
        // All but three stalls and the 200 steps, with what the first upload cost them.
        CHECK(node_hours(r, Category::lost_work) * 3600 ==
              doctest::Approx(340 - 3 * 5 - 200 - 10 * slowed).epsilon(1e-9));
    }
    SUBCASE("nothing is in the store yet: it begins again") {
        f.inject(150s, 0);
        const WorldRunResult r = f.run(100h);
        CHECK(node_hours(r, Category::restore) == 0);
        CHECK(seconds(r.outcome.runs[0].end - Instant(150s)) ==
              doctest::Approx(350 + 3 * 5 + (3 * 10 + 2 * 40) * slowed).epsilon(1e-9));
    }
}

TEST_CASE("wrong numbers take back what has been saved since, and no more") {
    Behind f(1);
    f.causes[0].silent = true;
    f.causes[0].detection = 150s;
    f.saved->tiers[0].keep = 10;
    f.submit(8, 1000s);
    f.inject(250s, 0);  // two states are clean; at 400 s there are three
    const WorldRunResult r = f.run(100h);
    CHECK(r.outcome.corruptions_found == 1);
    CHECK(node_hours(r, Category::restore) == doctest::Approx(20.0 / 3600).epsilon(1e-9));
    CHECK(node_hours(r, Category::productive) == doctest::Approx(1000.0 / 3600).epsilon(1e-12));
    // Found at 400 s, back at 200 steps, 800 more with seven saves, and no other time than these.
    CHECK(seconds(r.outcome.runs[0].end - Instant(400s)) ==
          doctest::Approx(20 + 800 + 7 * (5 + 40 * 0.1 / 1.1)).epsilon(1e-9));
}

namespace {

// With the job's own tables, which JOB stands for.
ReplicaResult replica_of(std::string text, const std::string& job) {
    for (std::size_t at = 0; (at = text.find("JOB", at)) != std::string::npos;) {
        text.replace(at, 3, job);
    }
    const Scenario s = load_scenario(text, "either way", {});
    return s.world ? run_world_replica(s, 0, false) : run_replica(s, 0, false);
}
Ledger ledger_of(const std::string& text, const std::string& job) {
    return replica_of(text, job).ledger;
}

}  // namespace

TEST_CASE("one job saves alike, written as a [job] or as the only one of a kind") {
    std::string saves = "interval = '7 min'\nmode = 'async'\n";
    SUBCASE("behind its steps") {}
    SUBCASE("while it stands still") {
        saves = "interval = '31 steps'\n";
    }
    SUBCASE("by the wall clock, what has changed") {
        saves += "clock = 'wall'\nfull_every = 3\nchanged_fraction = 0.5\n";
    }
    SUBCASE("into the neighbours' memory, the store now and then") {
        saves += "buffers = 2\n[[JOB.checkpoint.tier]]\nplace = 'peer_memory'\nkeep = 1\n";
        saves += "[[JOB.checkpoint.tier]]\nplace = 'storage'\nevery = 2\n";
    }
    SUBCASE("more often than they can be written") {
        saves = "interval = '90 s'\nmode = 'async'\nupload_slowdown = 0.2\n";
    }
    SUBCASE("into an object store behind the shared one") {
        saves += "[[JOB.checkpoint.tier]]\nplace = 'storage'\nkeep = 1\n";
        saves += "[[JOB.checkpoint.tier]]\nplace = 'object_store'\nevery = 2\n";
    }
    const std::string cluster =
        "run.replicas = 1\ncluster.nodes = 4\nstorage.system = 'vast'\n"
        "object_store.system = 's3'\n";
    const std::string job = "nodes = 4\nlength = '3 h'\nstep.time = '9 s'\n";
    const std::string rest = job + "[JOB.checkpoint]\nsize = '2 TB'\n" + saves;
    const Ledger one = ledger_of(cluster + "[job]\n" + rest, "job");
    const Ledger many =
        ledger_of(cluster + "[scheduler]\n[[jobs.kind]]\nname = 'one'\n" + rest, "jobs.kind");
    CHECK(one.booked(Category::checkpoint_stall) > 0);
    for (const Category same : {Category::productive, Category::checkpoint_stall}) {
        CHECK(static_cast<double>(one.booked(same)) == static_cast<double>(many.booked(same)));
    }
}

TEST_CASE("what uploads cost steps is no training time, of one job or of many") {
    const std::string cluster = "run.replicas = 1\ncluster.nodes = 4\nstorage.system = 'vast'\n";
    const std::string rest =
        "nodes = 4\nlength = '3 h'\nstep.time = '9 s'\n[JOB.checkpoint]\n"
        "size = '2 TB'\ninterval = '90 s'\nmode = 'async'\n"
        "upload_slowdown = 0.2\n";
    const ReplicaResult one = replica_of(cluster + "[job]\n" + rest, "job");
    const ReplicaResult many =
        replica_of(cluster + "[scheduler]\n[[jobs.kind]]\nname = 'one'\n" + rest, "jobs.kind");
    CHECK(metric(one, "ettr") < 0.95);
    CHECK(metric(many, "ettr_gpus_32") == doctest::Approx(metric(one, "ettr")).epsilon(1e-3));
}

TEST_CASE("an upload costs one job's own steps alike on one fabric, written either way") {
    const std::string cluster = R"(
run.replicas = 1
run.fidelity = "flow"
cluster.nodes = 10
storage = { system = "weka", servers = 8, network = "compute" }
fabric.compute = { topology = "fat_tree", nodes_per_leaf = 4, oversubscription = 4, routing = "spray" }
)";
    const std::string job = R"(nodes = 10
model = "llama2_70b"
length = "18 h"
parallel = { tensor = 8, global_batch = 40, sequence_length = 4096, zero = 3 }
checkpoint = { mode = "async", interval = "30 min" }
)";
    const Ledger one = ledger_of(cluster + "failures.profile = 'none'\n[job]\n" + job, "");
    const Ledger many = ledger_of(cluster + "[scheduler]\n[[jobs.kind]]\nname = 'a'\n" + job, "");
    CHECK(
        static_cast<double>(many.booked(Category::checkpoint_stall)) ==
        doctest::Approx(static_cast<double>(one.booked(Category::checkpoint_stall))).epsilon(0.1));
    CHECK(static_cast<double>(many.booked(Category::productive)) ==
          static_cast<double>(one.booked(Category::productive)));
}

TEST_CASE("one job reads alike, written as a [job] or as the only one of a kind") {
    std::string more = "[JOB.checkpoint]\nmode = 'none'\n";
    std::string data = "sample_size = '10 MB'\nbatch = 100\nworkers = 2\nprefetch = 2\n";
    std::string store = "24 GB/s";
    bool waits = true;
    SUBCASE("from a store that keeps up") {
        waits = false;
    }
    SUBCASE("from one that does not") {
        store = "9 GB/s";
    }
    SUBCASE("through shuffle buffers, which fill before each epoch") {
        data += "shuffle_buffer = 200\ndataset = '9 TB'\n";
    }
    SUBCASE("from the nodes' own drives, through shuffle buffers") {
        data += "shuffle_buffer = 200\nsource = 'local'\n";
    }
    SUBCASE("that the nodes' memory keeps, after the first epoch") {
        store = "9 GB/s";
        data += "dataset = '9 TB'\ncache = '4 TB'\nsampler = 'node_shard'\n";
    }
    SUBCASE("from an object store that does not keep up") {
        data += "source = 'object_store'\n";
    }
    SUBCASE("beside saves that take the store's time") {
        more = "[JOB.checkpoint]\nsize = '2 TB'\ninterval = '7 min'\nmode = 'async'\n";
    }
    SUBCASE("beside saves, through shuffle buffers, which fill while it stands still") {
        more = "[JOB.checkpoint]\nsize = '2 TB'\ninterval = '7 min'\n";
        data += "shuffle_buffer = 200\ndataset = '9 TB'\n";
    }
    const std::string cluster =
        "run.replicas = 1\ncluster.nodes = 2\n[storage]\n"
        "server_read_bandwidth = '" +
        store +
        "'\n"
        "server_write_bandwidth = '16 GB/s'\n"
        "client_bandwidth = '100 GB/s'\n"
        "[object_store]\nsystem = 'object'\nservers = 6\nserver_read_bandwidth = '1500 MB/s'\n"
        "client_bandwidth = '100 GB/s'\n";
    const std::string job = "nodes = 2\nlength = '3 h'\nstep.time = '1 s'\n";
    const std::string rest = job + more + "[JOB.data]\n" + data;
    const Ledger one = ledger_of(cluster + "[job]\n" + rest, "job");
    const Ledger many =
        ledger_of(cluster + "[scheduler]\n[[jobs.kind]]\nname = 'one'\n" + rest, "jobs.kind");
    CHECK((one.booked(Category::data_wait) > 0) == waits);
    for (const Category same :
         {Category::productive, Category::data_wait, Category::checkpoint_stall}) {
        CAPTURE(category_name(same));
        CHECK(static_cast<double>(one.booked(same)) == static_cast<double>(many.booked(same)));
    }
}

TEST_CASE("jobs that read from one store wait as long as it takes to give all of them a batch") {
    // Each reads 8 GB for a step of 1 s.
    const char* const text = R"(
run.replicas = 1
cluster.nodes = 3
storage.server_read_bandwidth = "12 GB/s"
storage.client_bandwidth = "100 GB/s"
[scheduler]
[[jobs.kind]]
name = "reads"
count = 3
nodes = 1
work = "10 h"
step.time = "1 s"
data = { sample_size = "10 MB", batch = 100, prefetch = 2 }
)";
    const Ledger r = ledger_of(text, "");
    const double waits = static_cast<double>(r.booked(Category::data_wait));
    CHECK(waits / static_cast<double>(r.booked(Category::productive)) ==
          doctest::Approx(3 * 8.0 / 12 - 1).epsilon(0.001));
}

TEST_CASE("a job that fails finds its loaders' queues empty, and leaves the store to the others") {
    const char* const text = R"(
run.replicas = 1
cluster.nodes = 2
storage.server_read_bandwidth = "16 GB/s"
storage.client_bandwidth = "100 GB/s"
[scheduler]
[failures]
profile = "none"
[[jobs.kind]]
name = "reads"
count = 2
nodes = 1
work = "1 h"
step.time = "1 s"
restart = "100 s"
data = { sample_size = "10 MB", batch = 100, workers = 2, prefetch = 2, shuffle_buffer = 200 }
[[inject]]
at = "30 min"
cause = "software"
)";
    const Ledger r = ledger_of(text, "");
    // 32 GB: 4 s of half the store when both start, 2 s of all of it, or less what the other's steps take
    // of it, when one comes back.
    const double waits = static_cast<double>(r.booked(Category::data_wait)) * 1e-9 / 8;
    CHECK(waits >= 2 * 4 + 2);
    CHECK(waits <= 2 * 4 + 4);
    CHECK(r.booked(Category::lost_work) > 0);
}

TEST_CASE("restores share the store as well") {
    Sharing f(2, 1, own_rate);
    f.causes[0].remedy = Remedy::restart;
    f.submit(8, 90min);
    f.submit(8, 90min);
    f.inject(1h + 25min, 0);  // five minutes after the save of both
    f.inject(1h + 25min, 1);
    const WorldRunResult r = f.run(100h);
    for (const WorldJobRun& run : r.outcome.runs)
        CHECK(run.end == Instant(1h + 25min + 10min + 30min));
    CHECK(node_hours(r, Category::restore) == doctest::Approx(2.0 / 6).epsilon(1e-9));
}

TEST_CASE("a state of so many bytes comes back as fast as one of [jobs.kind.checkpoint]") {
    const std::string fails = R"(
run = { replicas = 1, duration = "1 day" }
cluster.nodes = 4
storage = { server_write_bandwidth = "4 GB/s", server_read_bandwidth = "4 GB/s" }
[failures]
[[failures.cause]]
name = "crash"
rate_per_node = "0 /day"
remedy = "restart"
[[inject]]
at = "5.5 h"
cause = "crash"
node = 1
[scheduler]
kind = "fifo"
[[jobs.kind]]
name = "a"
nodes = 4
length = "20 h"
step.time = "10 s"
)";
    const Ledger size = ledger_of(
        fails + "checkpoint_interval = '1 h'\ncheckpoint_size = '2 TB'\nrestart = '0 s'\n", "");
    const Ledger saves = ledger_of(fails +
                                       "recovery.restart = '0 s'\n[jobs.kind.checkpoint]\n"
                                       "interval = '1 h'\nsize = '2 TB'\n",
                                   "");
    CHECK(size.booked(Category::restore) > 0);
    CHECK(static_cast<double>(size.booked(Category::restore)) ==
          doctest::Approx(static_cast<double>(saves.booked(Category::restore))).epsilon(1e-6));
}

TEST_CASE("each start reads its images, and starts that come together share the store") {
    const std::string text = R"(
run = { replicas = 1, duration = "5 h" }
cluster.nodes = 8
[storage]
server_read_bandwidth = "10 GB/s"
server_write_bandwidth = "1 TB/s"
client_bandwidth = "100 GB/s"
[scheduler]
[failures]
profile = "none"
[[inject]]
at = "2 h"
cause = "software"
[[jobs.kind]]
name = "starts"
count = 4
nodes = 2
work = "3 h"
step.time = "1 s"
[jobs.kind.recovery]
policy = "requeue"
restart = "10 s"
image = "40 GB"
dataset_index = "1250 MB"
)";
    // Two nodes and 16 ranks read 100 GB: 40 s while four start, 10 s for the one that comes back.
    double restores = 4 * 40 + 10;
    std::string saves;
    SUBCASE("of jobs that save nothing") {}
    SUBCASE("beside what they have saved") {
        saves = "[jobs.kind.checkpoint]\nsize = '50 GB'\ninterval = '30 min'\n";
        restores += 5;
    }
    const Ledger r = ledger_of(text + saves, "");
    CHECK(static_cast<double>(r.booked(Category::restore)) * 1e-9 / 16 ==
          doctest::Approx(restores).epsilon(0.002));
}

TEST_CASE("a store that loses its data takes from one of many jobs what it takes from one alone") {
    // Nine checkpoints of 36 steps are on it. Drives 0 to 2 are of one RAID-6 group.
    std::string when = "10.5 h";
    std::string failure = "11 h";
    double lost_steps = 0;
    SUBCASE("while it runs: when it fails it has nothing to go back to") {
        lost_steps = 10 * 36;
    }
    SUBCASE("while it reads back what it has") {
        when = "633 min";
        failure = "630 min";
        lost_steps = 345;
    }
    std::string cluster = R"(
run = { replicas = 1, duration = "20 h" }
cluster.nodes = 3
[storage]
system = "lustre"
servers = 2
client_bandwidth = "0.25 GB/s"
failures.random = false
)";
    for (const char* drive : {"0", "1", "2"}) {
        cluster += "[[storage.failures.inject]]\nat = '" + when +
                   "'\npart = 'drive'\nindex = " + drive + "\n";
    }
    cluster +=
        "[[inject]]\nat = '" + failure + "'\ncause = 'software'\n[failures]\nprofile = 'none'\n";
    const std::string job = R"(nodes = 3
length = "30 h"
step.time = "100 s"
[JOB.checkpoint]
size = "270 GB"
interval = "1 h"
serialization = "1 TB/s"
[JOB.recovery]
restart = "0 s"
)";
    const ReplicaResult one = replica_of(cluster + "[job]\n" + job, "job");
    const ReplicaResult many = replica_of(
        cluster + "[scheduler]\n[[jobs.kind]]\nname = 'a'\n" + job + "policy = 'requeue'\n",
        "jobs.kind");
    CHECK(metric(one, "storage_data_losses") == 1);
    CHECK(metric(many, "storage_data_losses") == 1);
    const auto lost_s = [](const ReplicaResult& r) {
        return static_cast<double>(r.ledger.booked(Category::lost_work)) * 1e-9 / 24;
    };
    CHECK(lost_s(one) == lost_s(many));
    CHECK(std::floor(lost_s(many) / 100) == lost_steps);
}

TEST_CASE("what many jobs pay for objects is what one job pays for the same") {
    const std::string cluster = R"(
run.replicas = 1
cluster.nodes = 4
storage.system = "vast"
object_store = { system = "s3", egress = true }
)";
    const std::string job = "nodes = 4\nlength = '3 h'\nstep.time = '9 s'\n";
    const std::string rest = job + R"([JOB.checkpoint]
size = "2 TB"
interval = "31 steps"
[[JOB.checkpoint.tier]]
place = "object_store"
[JOB.data]
sample_size = "10 MB"
batch = 100
source = "object_store"
)";
    const ReplicaResult one = replica_of(cluster + "[job]\n" + rest, "job");
    const ReplicaResult many =
        replica_of(cluster + "[scheduler]\n[[jobs.kind]]\nname = 'one'\n" + rest, "jobs.kind");
    for (const char* same : {"object_store_requests_cost", "object_store_egress_cost",
                             "data_fetched", "data_egress_cost", "data_requests_cost"}) {
        CAPTURE(std::string(same));
        CHECK(metric(many, same) == doctest::Approx(metric(one, same)).epsilon(1e-9));
    }
    CHECK(metric(many, "object_store_requests_cost") > 0);
    CHECK(metric(many, "data_egress_cost") > 0);
}

namespace {

constexpr double link_bytes_per_s = 1e9;

// A job of one node whose steps compute and send for half a second each, beside one that saves for 10 min in
// each hour; `part` of the link between them is what that takes alone.
struct OneFabric : Sharing {
    explicit OneFabric(double part) : Sharing(2, 0, own_rate * std::int64_t{100}) {
        spec.kinds.push_back({.name = "steps"});
        WorldJobKind& steps = spec.kinds[1];
        steps.steps = 20'000;
        steps.step = [](const auto&, std::uint32_t, const NetworkNow&) {
            StepTime step;
            step.compute = step.exposed_communication = 500ms;
            return step;
        };
        const auto traffic = std::make_shared<StepTraffic>();
        traffic->step_s = 1;
        TrafficPart sends;
        sends.busy_s = 0.5;
        sends.loads = {{{0, 1, link_bytes_per_s}}, link_bytes_per_s};
        for (const double slowdown : traffic_slowdowns()) {
            sends.longer_s.push_back(0.5 * (slowdown - 1));
        }
        traffic->parts.push_back(sends);
        steps.traffic = [traffic](const auto&, const NetworkNow&) { return traffic; };
        const auto upload = std::make_shared<StepTraffic>(
            endless_traffic({{{0, 1, link_bytes_per_s}}, part * link_bytes_per_s}));
        spec.kinds[0].transfer_traffic = [upload](const auto&, const NetworkNow&,
                                                  const TransferSpec&) { return upload; };
        submit(8, 3h);
        submit(8, {});
        jobs.jobs.back().kind = 1;
    }
};

}  // namespace

TEST_CASE("a save on the network of steps makes both longer, while it lasts") {
    const WorldRunResult r = OneFabric(1).run(100h);
    // While it sends, the job with steps has half of the link: 1.5 s a step. Of these the other has all of
    // the link for one half second and half of it for a second: two saves take 15 min each, not 10.
    CHECK(seconds(r.outcome.runs[0].end - Instant(3h + 30min)) == doctest::Approx(0).epsilon(2));
    CHECK(node_hours(r, Category::checkpoint_stall) == doctest::Approx(0.5).epsilon(1e-3));
    // In 30 min 1,200 steps, of 1.5 s each.
    CHECK(seconds(r.outcome.runs[1].end - Instant(20'000s + 600s)) ==
          doctest::Approx(0).epsilon(3));
    CHECK(node_hours(r, Category::contention) == doctest::Approx(600.0 / 3600).epsilon(0.01));
    CHECK(r.outcome.contention_by.at(1, 0) / r.outcome.contention_by.at(1, 1) > 1e6);
}

TEST_CASE("an upload on the network of steps slows whoever sends there, as a joint window has it") {
    OneFabric f(1);
    const auto saved = std::make_shared<CheckpointSpec>(*f.spec.kinds[0].saving->checkpoint(8, 1));
    saved->mode = CheckpointMode::async;
    saved->stall_alone = {};
    f.spec.kinds[0].saving = {[saved](std::int64_t, std::int64_t) { return saved; }};
    f.spec.kinds[0].uploads_on_links = true;
    const StepTraffic steps = *f.spec.kinds[1].traffic({}, {});
    const StepTraffic upload = *f.spec.kinds[0].transfer_traffic({}, {}, {});
    SUBCASE("of another job") {
        const WorldRunResult r = f.run(100h);
        CHECK(r.outcome.runs[0].end == Instant(3h));  // its own work sends nothing
        CHECK(node_hours(r, Category::checkpoint_stall) == 0);
        const std::vector<StepTraffic> both = {steps, upload};
        const std::vector<double> offsets = {0, 0.1};
        const double window_s = joint_window(both, offsets, {.jitter = 0.05})[0];
        // Two uploads, which have what the steps leave them: 10 min each alone, 15 beside steps.
        const double longer_s = 3600 * node_hours(r, Category::contention);
        CHECK(longer_s == doctest::Approx(30 * 60 / window_s * (window_s - 1)).epsilon(0.1));
        CHECK(seconds(r.outcome.runs[1].end - Instant(20'000s)) ==
              doctest::Approx(longer_s).epsilon(1e-6));
        CHECK(r.outcome.contention_by.at(1, 0) == doctest::Approx(8 * longer_s).epsilon(1e-6));
    }
    SUBCASE("of its own, which is part of saving") {
        f.jobs.jobs.erase(f.jobs.jobs.begin());
        f.spec.kinds[1].saving = f.spec.kinds[0].saving;
        f.spec.kinds[1].checkpoint_steps = 5000;
        f.spec.kinds[1].transfer_traffic = f.spec.kinds[0].transfer_traffic;
        f.spec.kinds[1].uploads_on_links = true;
        const WorldRunResult r = f.run(100h);
        CHECK(node_hours(r, Category::contention) == 0);
        // Three saves of 15 min, in each of which 600 steps take 1.5 s.
        CHECK(node_hours(r, Category::checkpoint_stall) == doctest::Approx(0.25).epsilon(0.01));
    }
}

TEST_CASE("a save that leaves the links room costs the steps on them nothing") {
    OneFabric f(0.01);
    f.spec.kinds[1].traffic = [](const auto&, const NetworkNow&) {
        return std::make_shared<StepTraffic>();
    };
    const WorldRunResult r = f.run(100h);
    CHECK(r.outcome.runs[0].end == Instant(3h + 20min));
    CHECK(r.outcome.runs[1].end == Instant(20'000s));
    CHECK(node_hours(r, Category::contention) == 0);
}

TEST_CASE("jobs that save at once over one network share it as they share the store") {
    for (const std::int64_t n : {1, 2, 7}) {
        Sharing f(n, 0, own_rate);
        const auto upload = std::make_shared<StepTraffic>(
            endless_traffic({{{0, 1, link_bytes_per_s}}, link_bytes_per_s}));
        f.spec.kinds[0].transfer_traffic = [upload](const auto&, const NetworkNow&,
                                                    const TransferSpec&) { return upload; };
        for (std::int64_t i = 0; i < n; ++i) f.submit(8, 3h);
        const WorldRunResult r = f.run(1000h);
        for (const WorldJobRun& run : r.outcome.runs) {
            const Duration late = run.end - Instant(3h + n * 20min);
            CHECK(late > Duration(-10'000));
            CHECK(late < Duration(10'000));
        }
    }
}
