// Storage systems: their rules of capacity, their minimum footprints, which part bounds them, and what they
// lose.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "models/campaign/scenario.h"

using namespace railyard;

namespace {

std::shared_ptr<const StorageSystem> store(const std::vector<std::string>& settings) {
    const char* text =
        "[run]\nduration = \"1 h\"\n[cluster]\nnodes = 8\n[job]\nstep.time = \"1 s\"\n"
        "checkpoint.mode = \"none\"\n";
    std::vector<std::string> all;
    for (const std::string& each : settings) all.push_back("storage." + each);
    return load_scenario(text, "store", {all, {}}).stores[0].system;
}

double gb_per_s(Bandwidth b) {
    return b.bytes_per_second() * 1e-9;
}

std::string refusal(const std::vector<std::string>& settings) {
    try {
        store(settings);
    } catch (const ScenarioError& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("WEKA's net capacity follows its rule exactly") {
    const auto weka = store({"system=weka", "servers=20", "drives_per_server=10",
                             "drive_capacity=10 TB", "weka.data_drives=16"});
    // 2 PB x 16/18 x 18/20 x 0.9
    CHECK(weka->capacity().net == Bytes::of(1'440'000'000'000'000));
    CHECK(weka->capacity().rule == "raw x 16/18 x (20-2)/20 x 0.9");
}

TEST_CASE("VAST's widest stripe costs 2.7 % of its data") {
    const StoreCapacity c = store({"system=vast", "vast.dboxes=15"})->capacity();
    const double raw = static_cast<double>(c.raw.count());
    CHECK(raw / static_cast<double>(c.net.count()) - 1 == doctest::Approx(4.0 / 146));
}

TEST_CASE("a stripe that survives a DBox has no more strips on one than parity restores") {
    const auto vast = store({"system=vast", "vast.dbox_ha=true"});
    CHECK(vast->protection().boxes == 15);
    CHECK(vast->protection().stripe_drives == 60);  // 4 on each of 15
    CHECK(least(vast->limits({.boxes_down = 1}).read).bandwidth > Bandwidth());
    CHECK(
        least(store({"system=vast", "vast.dboxes=15"})->limits({.boxes_down = 1}).read).bandwidth ==
        Bandwidth());
}

TEST_CASE("a full write buffer leaves the drain") {
    const auto vast = store({"system=vast", "servers=100", "vast.dboxes=10"});
    const StoreLimits empty = vast->limits({});
    const StoreLimits full = vast->limits({.write_buffer_full = true});
    CHECK(least(empty.write).what == "write buffer");
    // 10 GB/s a box, RAID 6 over ten boxes
    CHECK(gb_per_s(least(empty.write).bandwidth) == doctest::Approx(10 * 10 * 0.8));
    CHECK(gb_per_s(least(full.write).bandwidth) == doctest::Approx(10 * 5 * 146 / 150.0));
}

TEST_CASE("minimum footprints are refused with what would be allowed") {
    CHECK(refusal({"system=weka", "servers=5"}).find("needs 8 servers, or 6") != std::string::npos);
    CHECK(refusal({"system=weka", "servers=7"}).find("hot_spares = 0") != std::string::npos);
    CHECK(refusal({"system=weka", "servers=6", "weka.hot_spares=0"}) == "");
    CHECK(store({"system=weka", "servers=6", "weka.hot_spares=0"})->protection().stripe_drives ==
          6);
    CHECK(refusal({"system=vast", "vast.dbox_ha=true", "vast.dboxes=14"}).find("needs 15 DBoxes") !=
          std::string::npos);
    CHECK(refusal({"system=vast", "vast.dbox_ha=true", "vast.dboxes=15", "vast.model=maverick"})
              .find("needs 22 DBoxes") != std::string::npos);
    CHECK(refusal({"system=vast", "vast.dboxes=1"}) == "");
}

TEST_CASE("13,019 files take one thread 156 s on Lustre and 2 s on NVMe") {
    const SmallFiles files{.files = 13'019};
    CHECK(create_seconds(store({"system=lustre"})->limits({}), files) ==
          doctest::Approx(156).epsilon(0.005));
    CHECK(create_seconds(store({"system=local_nvme_raid0"})->limits({}), files) ==
          doctest::Approx(2).epsilon(0.005));
}

TEST_CASE("with enough threads files come at the rate of the metadata servers") {
    const StoreLimits one = store({"system=lustre"})->limits({});
    const StoreLimits two = store({"system=lustre", "lustre.mds=2"})->limits({});
    const SmallFiles storm{.files = 16'384 * 4, .clients = 2048, .threads = 16'384};
    CHECK(create_seconds(one, storm) == doctest::Approx(16'384 * 4 / 28e3));
    CHECK(create_seconds(two, storm) == doctest::Approx(16'384 * 4 / 56e3));
}

TEST_CASE("threads move one file each, and none faster than one file goes") {
    const StoreLimits limits = store({"system=lustre"})->limits({});
    const double bandwidth = least(limits.write).bandwidth.bytes_per_second();
    const double of_a_file = limits.file_write.bytes_per_second();
    REQUIRE(of_a_file < bandwidth / 2);
    const Bytes bytes = Bytes::of(1'000'000'000'000);
    SmallFiles files{.files = 1, .bytes = bytes, .clients = 64, .threads = 1};
    const double one = create_seconds(limits, files);
    CHECK(one == doctest::Approx(1e12 / of_a_file).epsilon(0.01));
    files.threads = 64;  // one file all the same
    CHECK(create_seconds(limits, files) == doctest::Approx(one).epsilon(0.01));
    files.files = 2;
    CHECK(create_seconds(limits, files) == doctest::Approx(one / 2).epsilon(0.01));
    files.files = 64;
    CHECK(create_seconds(limits, files) == doctest::Approx(1e12 / bandwidth).epsilon(0.01));
    files.threads = 2;
    CHECK(create_seconds(limits, files) == doctest::Approx(one / 2).epsilon(0.02));
    CHECK(open_seconds(limits, files) ==
          doctest::Approx(1e12 / (2 * limits.file_read.bytes_per_second())).epsilon(0.02));
}

TEST_CASE("a Lustre file is as fast as the targets it is striped over") {
    const StoreLimits one = store({"system=lustre", "servers=8"})->limits({});
    const StoreLimits eight =
        store({"system=lustre", "servers=8", "lustre.stripe_count=8"})->limits({});
    CHECK(gb_per_s(one.file_write) == doctest::Approx(18.0 / 2));  // two targets a server
    CHECK(gb_per_s(eight.file_write) == doctest::Approx(8 * 18.0 / 2));
    CHECK(least(eight.write).bandwidth == least(one.write).bandwidth);
}

TEST_CASE("where files stay put a lost server costs half, where data is spread its own part") {
    const auto left = [](const std::vector<std::string>& settings) {
        const auto s = store(settings);
        return gb_per_s(least(s->limits({.servers_down = 1}).write).bandwidth) /
               gb_per_s(least(s->limits({}).write).bandwidth);
    };
    CHECK(left({"system=lustre", "servers=16"}) == doctest::Approx(0.5));
    CHECK(left({"system=gpfs", "servers=16", "server_write_bandwidth=30 GB/s"}) ==
          doctest::Approx(0.5));
    CHECK(left({"system=weka", "servers=16"}) == doctest::Approx(15.0 / 16));
    CHECK(left({"system=ceph_nvme", "servers=16"}) == doctest::Approx(15.0 / 16));
    CHECK(left({"system=nfs_single"}) == 0);
}

TEST_CASE("reads of what a lost server held cost the blocks of a stripe") {
    const auto weka = store({"system=weka", "servers=20", "weka.data_drives=16"});
    const double sound = gb_per_s(least(weka->limits({}).read).bandwidth);
    const double degraded = gb_per_s(least(weka->limits({.servers_down = 1}).read).bandwidth);
    CHECK(degraded / sound == doctest::Approx(0.95 / (1 + 0.05 * 15)));
}

TEST_CASE(
    "a lost drive costs a group of its own half its reads, a declustered array as little as it is "
    "wide") {
    const auto left = [](const std::string& system, const StoreState& state) {
        const auto s = store({"system=" + system, "servers=4", "server_read_bandwidth=1 TB/s",
                              "server_write_bandwidth=1 TB/s", "drives_per_server=24"});
        const auto reads = [&](const StoreState& of) {
            return gb_per_s(least(s->limits(of).read).bandwidth);
        };
        const auto writes = [&](const StoreState& of) {
            return gb_per_s(least(s->limits(of).write).bandwidth);
        };
        return std::pair(reads(state) / reads({}), writes(state) / writes({}));
    };
    const StoreState one{.drives_down = 1};
    CHECK(left("lustre", one).first == doctest::Approx(9.0 / 10 / (1 + 7.0 / 10)));
    CHECK(left("lustre", one).second == doctest::Approx(9.0 / 10));
    CHECK(left("gpfs", one).first == doctest::Approx(47.0 / 48 / (1 + 7.0 / 48)));
    CHECK(left("gpfs", one).second == doctest::Approx(47.0 / 48));
    // Two building blocks: the third drive is the second of one of them.
    CHECK(left("gpfs", {.drives_down = 2}).first == left("gpfs", one).first);
    CHECK(left("gpfs", {.drives_down = 3}).first == doctest::Approx(46.0 / 48 / (1 + 14.0 / 48)));

    const Protection p = store({"system=gpfs", "servers=4"})->protection();
    CHECK(p.groups == 2);
    CHECK(p.group_drives == 48);
    CHECK(p.stripe_drives == 10);
}

TEST_CASE("Storage Scale's drives carry what its servers give") {
    CHECK(least(store({"system=gpfs"})->limits({}).read).what == "servers");
}

TEST_CASE("a rebuild takes its reads and writes from the clients") {
    const auto weka = store({"system=weka", "servers=20", "weka.data_drives=16"});
    const double write = gb_per_s(least(weka->limits({.rebuilds = 1}).write).bandwidth);
    const double read = gb_per_s(least(weka->limits({.rebuilds = 1}).read).bandwidth);
    CHECK(write == doctest::Approx(20 * 20 - 20));  // 1 GB/s a server
    CHECK(read == doctest::Approx(20 * 45 - 20 * 16));
}

TEST_CASE("the smallest of servers, NICs and drives bounds a store") {
    const std::vector<std::string> base = {"servers=4", "server_read_bandwidth=30 GB/s",
                                           "server_write_bandwidth=30 GB/s"};
    const auto bound = [&](std::vector<std::string> more) {
        more.insert(more.end(), base.begin(), base.end());
        return least(store(more)->limits({}).read);
    };
    CHECK(bound({}).what == "servers");
    CHECK(bound({"drives_per_server=4"}).what == "drives");
    CHECK(gb_per_s(bound({"drives_per_server=4"}).bandwidth) == doctest::Approx(4 * 4 * 7.05));
    CHECK(bound({"nics_per_server=1"}).what == "servers");  // 400 Gbit/s
    CHECK(bound({"nics_per_server=1", "drive_read_bandwidth=1 GB/s", "drives_per_server=2"}).what ==
          "drives");
}

TEST_CASE("an object store's client moves as many parts at once as it has connections") {
    const StoreLimits l =
        store({"system=s3", "object.connections=10", "object.part_size=85 MB"})->limits({});
    // 120 ms to the first byte, then 85 MB at 85 MB/s
    CHECK(gb_per_s(l.client_write) == doctest::Approx(10 * 0.085 / 1.12));
    CHECK(gb_per_s(least(l.write).bandwidth) == doctest::Approx(3500 * 0.085));
}

TEST_CASE("what leaves a cloud is paid by the byte") {
    CHECK(store({"system=s3"})->prices().per_egress_byte == 0);
    CHECK(store({"system=s3", "object.egress=true"})->prices().per_egress_byte * 1e12 ==
          doctest::Approx(90));
    CHECK(refusal({"system=object", "object.egress=true"}).find("no known price") !=
          std::string::npos);
}

TEST_CASE("every system of the table is built by its name, and gives and holds something") {
    for (const StorageKind& kind : storage_kinds()) {
        CAPTURE(kind.name);
        const auto s = store(
            {fmt::format("system={}", kind.name), "client_bandwidth=1 GB/s",
             kind.place == StorePlace::servers ? "server_write_bandwidth=1 GB/s" : "network=own"});
        CHECK(least(s->limits({}).read).bandwidth > Bandwidth());
        CHECK(least(s->limits({}).write).bandwidth > Bandwidth());
        CHECK(s->capacity().net <= s->capacity().raw);
        // Nothing that is lost makes a store faster.
        for (const StoreState& state : {StoreState{.servers_down = 1}, StoreState{.drives_down = 1},
                                        StoreState{.boxes_down = 1}, StoreState{.rebuilds = 1}}) {
            CHECK(least(s->limits(state).read).bandwidth <= least(s->limits({}).read).bandwidth);
            CHECK(least(s->limits(state).write).bandwidth <= least(s->limits({}).write).bandwidth);
        }
    }
}

TEST_CASE(
    "a tier in an object store ends with its clients' requests, not with the shared store's "
    "clients") {
    const char* text = R"(
[run]
duration = "1 day"
[cluster]
nodes = 8
[storage]
client_bandwidth = "20 GB/s"
server_write_bandwidth = "1 TB/s"
[object_store]
client_bandwidth = "0.5 GB/s"
prefixes = 10
[job]
step.time = "1 s"
checkpoint.size = "400 GB"
[[job.checkpoint.tier]]
place = "storage"
[[job.checkpoint.tier]]
place = "object_store"
)";
    const Scenario s = load_scenario(text, "two stores", {});
    REQUIRE(s.stores.size() == 2);
    CHECK(s.stores[1].name == "s3");
    CHECK(s.stores[1].capacity == Bytes{});  // no end to it
    const TierSpec& tier = s.job.checkpoint.tiers[1];
    CHECK(gb_per_s(tier.write.cap) == doctest::Approx(8 * 0.5));
    CHECK(tier.write.cap_wall == Wall::client);
    CHECK(s.checkpoint_upload == Duration{});  // safe when the stall ends, before it is there
}

TEST_CASE("who writes a checkpoint, and into how many files, is as the scenario says") {
    const auto writers = [](const std::vector<std::string>& checkpoint) {
        const char* text =
            "[run]\nduration = \"1 h\"\n[cluster]\nnodes = 4\n[job]\nstep.time = \"1 s\"\n"
            "checkpoint = { size = \"1 TB\", files_per_rank = 2, serialization = \"3 GB/s\" }\n";
        std::vector<std::string> all;
        for (const std::string& each : checkpoint) all.push_back("job.checkpoint." + each);
        return load_scenario(text, "writers", {all, {}}).checkpoint_writers;
    };
    CHECK(writers({}).ranks == 32);
    CHECK(writers({}).nodes == 4);
    CHECK(writers({}).files == 64);
    CHECK(gb_per_s(writers({}).serialization) == doctest::Approx(3));
    CHECK(writers({"layout=consolidated"}).ranks == 1);
    CHECK(writers({"layout=consolidated"}).nodes == 1);
    CHECK(writers({"layout=consolidated"}).files == 2);
}
