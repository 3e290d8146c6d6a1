#include "models/campaign/store_traffic.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/models/quantities.h"

using namespace railyard;

namespace {

const char* const base = R"(
[run]
fidelity = "flow"
[cluster]
node = "dgx_h100"
nodes = 32
nic_bandwidth = "400 Gbit/s"
[storage]
system = "weka"
servers = 16
nics_per_server = 1
[job]
length = "1 h"
step.time = "1 s"
checkpoint.mode = "none"
[fabric.storage]
nic_bandwidth = "400 Gbit/s"
)";

Scenario scenario(std::vector<std::string> settings) {
    ScenarioChanges changes;
    changes.settings = std::move(settings);
    return load_scenario(base, "store", changes);
}

StoreTraffic traffic_of(double store_gb_s) {
    StoreTraffic t;
    t.store.limits.read = t.store.limits.write = {{"servers", gb_per_s(store_gb_s)}};
    t.store.limits.client_read = t.store.limits.client_write = unlimited;
    t.store.limits.file_read = t.store.limits.file_write = unlimited;
    t.bytes_per_rank = Bytes::of(10'000'000'000);
    return t;
}

}  // namespace

TEST_CASE("a job reaches the least of its store and what stands between") {
    const Scenario s = scenario({});
    REQUIRE(storage_network(s) != nullptr);
    const StoreReach servers = reach(s, traffic_of(100));
    CHECK(servers.write.bytes_per_second() == doctest::Approx(100e9).epsilon(1e-5));
    CHECK(servers.write_limit == "store (servers)");
    // 16 servers with a NIC of 50 GB/s each.
    const StoreReach nics = reach(s, traffic_of(1e6));
    CHECK(nics.read.bytes_per_second() <= 800e9 * s.node.wire_share * (1 + 1e-5));
    CHECK(nics.read_wall == Wall::network);
}

TEST_CASE("an oversubscribed storage network is the wall of a fast store") {
    const StoreReach thin =
        reach(scenario({"fabric.storage.nodes_per_leaf=8", "fabric.storage.oversubscription=4"}),
              traffic_of(1e6));
    const StoreReach full = reach(scenario({"fabric.storage.nodes_per_leaf=8"}), traffic_of(1e6));
    CHECK(thin.write.bytes_per_second() < 0.6 * full.write.bytes_per_second());
    CHECK(thin.write_wall == Wall::network);
    CHECK(thin.write_limit.find("leaf-") != std::string::npos);
}

TEST_CASE("without a network that was built, the closed form answers") {
    for (const char* setting : {"run.fidelity=\"analytic\"", "storage.system=\"weka\""}) {
        Scenario s = scenario({setting});
        if (s.fidelity == Fidelity::flow) s.networks.resize(1);
        CHECK(storage_network(s) == nullptr);
        StoreTraffic t = traffic_of(1e6);
        t.store.limits.client_write = gb_per_s(7);
        const StoreReach r = reach(s, t);
        CHECK(r.write.bytes_per_second() == doctest::Approx(32 * 7e9).epsilon(1e-6));
        CHECK(r.write_wall == Wall::client);
    }
}

TEST_CASE("files of one stripe meet on servers that a hash picks; with more stripes none is idle") {
    const auto written = [](const char* system, int stripes) {
        const Scenario s = scenario({fmt::format("storage.system={}", system), "storage.servers=8",
                                     fmt::format("storage.{}.stripe_count={}", system, stripes),
                                     "job.checkpoint.mode=sync", "job.checkpoint.size=2 TB",
                                     "job.checkpoint.files_per_rank=1"});
        const TransferSpec& write = s.job.checkpoint.tiers[0].write;
        return write.cap.bytes_per_second() /
               least(s.store().limits({}).write).bandwidth.bytes_per_second();
    };
    for (const char* system : {"lustre", "beegfs"}) {
        CAPTURE(system);
        // 256 files, 32 on each of 8 servers and 5.3 more or less; the slowest ends last.
        CHECK(written(system, 1) < 0.9);
        CHECK(written(system, 1) > 0.5);
        CHECK(written(system, 8) >= 1 - 1e-5);
    }
}
