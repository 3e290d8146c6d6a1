#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "tests/models/topologies.h"
#include "tests/models/windows.h"

using namespace railyard;

TEST_CASE("a connection's queue pairs take the same links as packets and as shares") {
    const Topology t = three_tiers();
    for (const Routing policy : {Routing::ecmp, Routing::destination}) {
        for (const std::int64_t queue_pairs : {1, 2, 5}) {
            RoutingSpec spec;
            spec.policy = policy;
            spec.queue_pairs = queue_pairs;
            spec.hash_seed = 3;
            Router router(t, spec);
            MessageFlows messages(t, spec);
            for (VertexId from = 0; from < 64; from += 7) {
                for (std::uint64_t connection = 0; connection < 4; ++connection) {
                    const VertexId to = (from + 33) % 64;
                    std::vector<Usage> shares;
                    REQUIRE(router.route(from, to, connection, shares));
                    MessageFlows::Message m{from, to, 1'000'000};
                    m.label = connection;
                    REQUIRE(messages.send(m) != MessageFlows::nothing);
                    std::map<LinkId, float> packets;
                    for (const PacketFlow& flow : messages.take()) {
                        for (const LinkId l : flow.path) {
                            packets[l] += 1 / static_cast<float>(queue_pairs);
                        }
                    }
                    std::map<LinkId, float> fluid;
                    for (const Usage& u : shares) fluid[u.link] = u.share;
                    CHECK(packets == fluid);
                }
            }
        }
    }
}

TEST_CASE("a message waits for all queue pairs of the one before it") {
    // The first node's port in one of two planes is slow, and so one of the queue pairs of what it sends.
    const WindowResult r =
        run_first_window(one_switch + R"(
[[fabric.compute.fault]]
from = "node-0.nic-0"
to = "leaf-0"
capacity = 0.1
[[window.traffic]]
kind = "ring"
bytes = "1 MB"
steps = 2
)",
                         {"cluster.nodes=2", "cluster.nics_per_node=1", "fabric.compute.planes=2",
                          "fabric.compute.queue_pairs=2"});
    // Two messages of two queue pairs in each of two steps; the last is what the second node sends.
    REQUIRE(r.ends.size() == 8);
    const Picoseconds came = std::max(r.ends[0], r.ends[1]);
    CHECK(came > 2 * std::min(r.ends[0], r.ends[1]));
    for (const std::size_t f : {6, 7}) {
        CHECK(r.begun[f] == came);
        CHECK(r.ends[f] > came);
    }
}

TEST_CASE("stripes use all NICs of every server alike") {
    for (const std::int64_t stripes : {1, 2, 4}) {
        ScenarioChanges changes;
        changes.packets = true;
        changes.settings = {"cluster.nodes=24",
                            fmt::format("window.traffic.0.stripes={}", stripes)};
        const Scenario s = load_scenario(one_switch + R"(
[storage]
servers = 4
nics_per_server = 2
[fabric.storage]
kind = "roce"
topology = "single_switch"
[[window.traffic]]
kind = "checkpoint"
bytes = "24 MiB"
)",
                                         "stripes.toml", changes);
        const NetworkWindow w = packet_windows(s)[0];
        const Topology& t = w.network->topology;
        std::map<VertexId, int> written;
        for (const PacketFlow& f : w.window.flows) ++written[t.links()[f.path.back()].to];
        REQUIRE(written.size() == 8);
        for (const auto& [nic, count] : written) CHECK(count == 3 * stripes);
    }
}
