#include <doctest/doctest.h>

#include <map>

#include "tests/models/topologies.h"

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
