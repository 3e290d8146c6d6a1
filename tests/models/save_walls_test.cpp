// The walls of a save alone against the same save on the campaign's clock.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <tuple>

#include "tests/models/whole_campaign.h"

using namespace railyard;

namespace {

// A save of `size` every hour to a store of 10 GB/s whose write buffer passes on 2 GB/s.
Scenario saving(const std::string& size, const std::string& buffer) {
    return load_scenario(fmt::format(R"(
[run]
replicas = 1
duration = "20 h"
[cluster]
nodes = 4
[storage]
system = "vast"
servers = 4
server_write_bandwidth = "5 GB/s"
client_bandwidth = "100 GB/s"
[storage.vast]
dboxes = 4
dbox_write_bandwidth = "50 GB/s"
drain_bandwidth = "0.5 GB/s"
write_buffer = "{}"
[job]
step.time = "1 s"
[job.checkpoint]
mode = "sync"
size = "{}"
interval = "18 h"
[failures]
profile = "none"
)",
                                     buffer, size),
                         "saving");
}

double simulated(const Scenario& s) {
    const CampaignResult r = run_campaign(s, {});
    return r.metric("checkpoint_time_to_stall_end").summary.mean;
}

double walls(const Scenario& s) {
    return seconds(
        longest(save_walls(s, shared_store, write_caps(s, s.stores[shared_store].limits, true)))
            .time);
}

}  // namespace

TEST_CASE(
    "the longest wall of a save is what it takes, with a write buffer that fills or does not") {
    const Scenario fits = saving("1 TB", "2 TB");
    const double least = 1e12 / fits.stores[shared_store].supply.write.bytes_per_second();
    CHECK(walls(fits) == doctest::Approx(least));
    CHECK(simulated(fits) == doctest::Approx(least));
    const Scenario fills = saving("4 TB", "1 TB");
    const StoreSupply& supply = fills.stores[shared_store].supply;
    const double left = 4e12 - static_cast<double>(supply.write_buffer.count());
    const double drained = left / supply.drain.bytes_per_second();
    CHECK(drained > 4e12 / supply.write.bytes_per_second());
    CHECK(walls(fills) == doctest::Approx(drained));
    CHECK(simulated(fills) == doctest::Approx(drained));
    CHECK(seconds(fills.job.checkpoint.stall_alone) == walls(fills));
}

TEST_CASE("files that are made slower than their bytes come are a save's wall") {
    Scenario s = saving("1 GB", "2 TB");
    s.checkpoint_writers.files = 1'000'000;
    const StoreSetup& store = s.stores[shared_store];
    const double threads = 32 / seconds(store.limits.create_latency);
    REQUIRE(store.supply.creates_per_s > threads);
    const auto all =
        save_walls(s, shared_store, write_caps(s, s.stores[shared_store].limits, true));
    const auto slowest = std::ranges::max_element(all, {}, &SaveWall::time);
    CHECK(slowest->wall == Wall::metadata);
    CHECK(seconds(slowest->time) == doctest::Approx(1e6 / threads));
    s.checkpoint_writers.ranks = 1'000;
    CHECK(seconds(longest(save_walls(s, shared_store, {})).time) ==
          doctest::Approx(1e6 / store.supply.creates_per_s));
}

TEST_CASE(
    "a save to the nodes' own drives or memory waits for the longest of its walls, as any other") {
    for (const char* system : {"local_nvme_raid0", "host_memory"}) {
        for (const auto& each : {std::tuple("100 GB/s", 1, Wall::local),
                                 std::tuple("0.1 GB/s", 1, Wall::serialisation),
                                 std::tuple("100 GB/s", 1'000'000, Wall::metadata)}) {
            const auto [serialization, files, wall] = each;
            CAPTURE(system);
            CAPTURE(std::get<0>(each));
            Scenario s = load_scenario(
                fmt::format("[run]\nreplicas = 1\nduration = \"4 h\"\n[cluster]\nnodes = 4\n"
                            "[storage]\nsystem = \"{}\"\n[job]\nstep.time = \"1 s\"\n"
                            "[job.checkpoint]\nsize = \"1 TB\"\ninterval = \"1 h\"\n"
                            "serialization = \"{}\"\nfiles_per_rank = {}\n"
                            "[failures]\nprofile = \"none\"\n",
                            system, serialization, files),
                "on the nodes");
            const StoreLimits& limits = s.stores[shared_store].limits;
            const auto walls = node_save_walls(s, limits.client_write, limits.create_latency);
            CHECK(longest(walls).wall == wall);
            CHECK(simulated(s) == doctest::Approx(seconds(longest(walls).time)));
            const WholeCampaign r = run_whole(s);
            CHECK(r.each[0].job.checkpoint.stall.largest() == wall);
        }
    }
}

TEST_CASE("what a neighbour's memory holds are tensors as they are: nothing is serialised") {
    for (const char* serialization : {"100 GB/s", "0.1 GB/s"}) {
        const Scenario s = load_scenario(
            fmt::format("[run]\nreplicas = 1\nduration = \"4 h\"\n[cluster]\nnodes = 4\n"
                        "[storage]\nsystem = \"lustre\"\nservers = 4\n[job]\nstep.time = \"1 s\"\n"
                        "[job.checkpoint]\nsize = \"1 TB\"\ninterval = \"1 h\"\n"
                        "serialization = \"{}\"\n[[job.checkpoint.tier]]\nplace = \"peer_memory\"\n"
                        "write_bandwidth = \"50 GB/s\"\n[failures]\nprofile = \"none\"\n",
                        serialization),
            "in memory");
        CHECK(simulated(s) == doctest::Approx(5));
    }
}
