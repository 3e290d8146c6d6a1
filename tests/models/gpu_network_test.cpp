#include "models/collective/gpu_network.h"

#include <doctest/doctest.h>

#include "models/collective/collective.h"
#include "models/training/training.h"

using namespace railyard;

namespace {

struct Cluster : StandaloneCatalogue {
    Node node = read_node(catalogue, "dgx_h100");
    TopologySpec spec;
    Topology topology;

    Cluster(const char* kind, std::int64_t nodes, const char* switches = "qm9700_ndr") {
        spec.kind = kind;
        spec.nodes = nodes;
        spec.nics_per_node = node.nics;
        spec.nic_bandwidth = node.nic_line_rate;
        spec.leaf = spec.spine = spec.core = read_switch(catalogue, switches);
        build();
    }
    void build() {
        std::string problem;
        topology = Topology::build(spec, problem);
        REQUIRE_MESSAGE(problem.empty(), problem);
    }
    GpuNetwork network(Routing policy = Routing::ecmp) const { return {node, topology, {policy}}; }
    double nic() const { return node.nic_bandwidth.bytes_per_second(); }
};

// Groups of `ranks` GPUs that are `stride` apart, of `gpus` in all.
std::vector<GpuGroup> groups(std::int64_t gpus, std::int64_t stride, std::int64_t ranks) {
    std::vector<GpuGroup> out;
    for (std::int64_t base = 0; base < gpus; base += stride * ranks) {
        for (std::int64_t offset = 0; offset < stride; ++offset) {
            out.emplace_back();
            for (std::int64_t k = 0; k < ranks; ++k)
                out.back().push_back(base + offset + k * stride);
        }
    }
    return out;
}

}  // namespace

TEST_CASE("on rails, a ring over all GPUs of a unit gets every NIC in full") {
    const Cluster c("rail_optimized", 32);
    const GroupRate all = c.network().ring(groups(256, 1, 256));
    CHECK(all.bytes_per_s == doctest::Approx(8 * c.nic()));
    CHECK(all.extra_hop_s == 0);  // one leaf
    // Eight data-parallel groups, one rank a node, have a NIC each.
    CHECK(c.network().ring(groups(256, 8, 32)).bytes_per_s == doctest::Approx(c.nic()));
}

TEST_CASE("the same ring on a plain fat-tree loses to hash collisions, and to nothing else") {
    const Cluster c("fat_tree", 32);
    const GroupRate hashed = c.network().ring(groups(256, 1, 256));
    CHECK(hashed.bytes_per_s < 0.6 * 8 * c.nic());
    CHECK(hashed.bottleneck.find("spine") != std::string::npos);
    CHECK(hashed.extra_hop_s > 0);
    CHECK(c.network(Routing::adaptive).ring(groups(256, 1, 256)).bytes_per_s ==
          doctest::Approx(8 * c.nic()));
    CHECK(c.network(Routing::spray).ring(groups(256, 1, 256)).bytes_per_s ==
          doctest::Approx(8 * c.nic()));
}

TEST_CASE("where all ways are alike, one cable of each hop stands for all that a spray takes") {
    for (const char* kind : {"fat_tree", "rail_optimized"}) {
        for (const double oversubscription : {1.0, 3.0}) {
            CAPTURE(std::string(kind));
            CAPTURE(oversubscription);
            Cluster c(kind, 64);
            c.spec.tiers = 3;
            c.spec.oversubscription = oversubscription;
            c.build();
            GpuNetwork every = c.network(Routing::spray);
            every.keep_loads();  // of each cable
            GpuNetwork one = c.network(Routing::spray);
            const auto same = [](const GroupRate& a, const GroupRate& b) {
                CHECK(b.loads.links.empty());
                CHECK(a.bytes_per_s == doctest::Approx(b.bytes_per_s).epsilon(1e-6));
                CHECK(a.extra_hop_s == b.extra_hop_s);
            };
            same(every.ring(groups(512, 1, 512)), one.ring(groups(512, 1, 512)));
            same(every.tree(groups(512, 4, 128)), one.tree(groups(512, 4, 128)));
            same(every.send(groups(512, 8, 64)), one.send(groups(512, 8, 64)));
            same(every.all_to_all(groups(512, 8, 64)), one.all_to_all(groups(512, 8, 64)));
        }
    }
}

TEST_CASE("an all-to-all is counted by leaf as it is by pairs of ranks, link by link") {
    for (const char* kind : {"fat_tree", "rail_optimized", "dual_plane"}) {
        CAPTURE(std::string(kind));
        Cluster c(kind, 48);
        if (std::string(kind) != "dual_plane") c.spec.tiers = 3;
        c.spec.oversubscription = 3;
        c.node.pcie.acs = true;
        c.build();
        for (const bool loads : {false, true}) {
            GpuNetwork by_leaf = c.network(Routing::spray);
            by_leaf.degrade({Part::pcie, 3, 0, 0.5});
            if (loads) by_leaf.keep_loads(true);
            GpuNetwork by_pair = by_leaf;  // who notes cables asks for each way
            by_pair.note_cables(std::make_shared<CablesUsed>(c.topology, Routing::spray));
            const auto all = groups(384, 1, 384);  // more than 100,000 pairs
            const GroupRate a = by_leaf.all_to_all(all);
            const GroupRate b = by_pair.all_to_all(all);
            CHECK(a.bytes_per_s == doctest::Approx(b.bytes_per_s).epsilon(1e-5));
            CHECK(a.extra_hop_s == b.extra_hop_s);
            REQUIRE(a.loads.links.size() == b.loads.links.size());
            CHECK(a.loads.links.empty() == !loads);
            for (std::size_t i = 0; i < a.loads.links.size(); ++i) {
                REQUIRE(a.loads.links[i].link == b.loads.links[i].link);
                const double flows = b.loads.links[i].flows;
                REQUIRE(a.loads.links[i].flows == doctest::Approx(flows).epsilon(1e-4));
            }
        }
    }
}

TEST_CASE("in a double tree of nodes the busiest sends to two, three or four, half the data each") {
    const double neighbours[] = {2, 3, 4, 4, 4, 4, 4, 4};
    for (std::int64_t nodes = 2; nodes < 10; ++nodes) {
        CAPTURE(nodes);
        Cluster c("rail_optimized", nodes);
        const double expected = 8 * c.nic() * 2 / neighbours[nodes - 2];
        CHECK(c.network().tree(groups(8 * nodes, 1, 8 * nodes)).bytes_per_s ==
              doctest::Approx(expected));
        // As the ideal network of the analytic fidelity has it, but for what PCIe takes of a NIC.
        const Communicator ideal = read_communicator(c.catalogue, c.node, {8 * nodes, 8, false});
        CHECK(ideal.tree_network == doctest::Approx(expected));
    }
}

TEST_CASE("PAT's far rounds cross an oversubscribed spine, and carry the fewest parts") {
    Cluster c("fat_tree", 16);
    c.spec.nodes_per_leaf = 4;
    c.spec.oversubscription = 4;
    c.build();
    GpuNetwork network = c.network(Routing::spray);
    const auto apart = groups(128, 8, 16);
    CHECK(network.ring(apart).bytes_per_s == doctest::Approx(c.nic()));
    // The next rank is on another leaf for one of four, the next but one for two, others for all. They carry
    // eight, four, two parts and one.
    CHECK(pat_bytes_per_s(network, apart) ==
          doctest::Approx(c.nic() * 15 / (8 + 4 * 2 + 2 * 4 + 1 * 4)));
    // With twelve ranks, seven places on are five places back; the rounds have 6, 3, 1 parts and 1.
    const auto twelve = groups(96, 8, 12);
    CHECK(pat_bytes_per_s(network, twelve) ==
          doctest::Approx(c.nic() * 11 / (6 + 3 * 2 + 1 * 4 + 1 * 4)));
    Cluster rails("rail_optimized", 12);
    GpuNetwork one_leaf = rails.network();
    CHECK(pat_bytes_per_s(one_leaf, twelve) == doctest::Approx(c.nic()));
}

TEST_CASE("trees lose to hash collisions as rings do, each queue pair by its own way") {
    const Cluster c("fat_tree", 32);
    const GroupRate hashed = c.network().tree(groups(256, 1, 256));
    CHECK(hashed.bytes_per_s < 0.7 * 4 * c.nic());
    CHECK(hashed.bottleneck.find("spine") != std::string::npos);
    CHECK(c.network(Routing::adaptive).tree(groups(256, 1, 256)).bytes_per_s ==
          doctest::Approx(4 * c.nic()));
}

TEST_CASE("without NVLink a chain goes up and down a node's PCIe: half of what a ring gets there") {
    Cluster c("rail_optimized", 1);
    remove_nvlink(c.node);
    CHECK(c.network().tree(groups(8, 1, 8)).bytes_per_s ==
          doctest::Approx(c.node.pcie.link_bytes_per_s * c.node.pcie.root_complex_share / 2));
}

TEST_CASE("oversubscription is paid by what crosses the spines") {
    Cluster c("fat_tree", 32);
    c.spec.oversubscription = 4;
    c.build();
    // A GPU has 255 peers, and 248 are in other nodes.
    CHECK(c.network(Routing::spray).all_to_all(groups(256, 1, 256)).bytes_per_s * 248 / 255 <
          0.4 * c.nic());
    c.spec.kind = "rail_optimized";
    c.build();
    CHECK(c.network(Routing::spray).all_to_all(groups(256, 1, 256)).bytes_per_s * 248 / 255 ==
          doctest::Approx(c.nic()));
}

TEST_CASE(
    "an all-to-all of many thousands has the rate of a smaller one on the same kind of network") {
    // 2,824 GPUs are solved stream by stream, 2,848 by what each link carries.
    const auto rate = [](const char* kind, std::int64_t nodes) {
        Cluster c(kind, nodes);
        c.spec.oversubscription = 4;
        c.build();
        return c.network(Routing::destination)
            .all_to_all(groups(8 * nodes, 1, 8 * nodes))
            .bytes_per_s;
    };
    CHECK(rate("fat_tree", 356) == doctest::Approx(rate("fat_tree", 353)).epsilon(0.02));
}

TEST_CASE("a group inside NVLink uses no link that is shared") {
    const Cluster c("rail_optimized", 4);
    CHECK(c.network().ring(groups(32, 1, 8)).bytes_per_s == 0);
}

TEST_CASE("access control sends peers to the root complex: NICs slow down, NVLink does not") {
    Cluster c("rail_optimized", 4);
    c.node.pcie.acs = true;
    const GroupRate ring = c.network().ring(groups(32, 1, 32));
    // Two GPUs and two NICs under a switch, each both ways: four streams up, four down.
    CHECK(ring.bytes_per_s == doctest::Approx(8 * c.node.pcie.link_bytes_per_s / 4));
    CHECK(ring.bytes_per_s ==
          doctest::Approx(8 * nic_bandwidth_under_load(c.node).bytes_per_second()));
    CHECK(ring.nvlink_left == 1);
    CHECK(ring.bottleneck.find("root complex") != std::string::npos);
}

TEST_CASE("refused peer-to-peer traffic bounces through host memory") {
    Cluster c("rail_optimized", 4);
    c.node.pcie.peer_to_peer = false;
    CHECK(c.network().ring(groups(32, 8, 4)).bytes_per_s <= c.node.pcie.bounce_bytes_per_s);
}

TEST_CASE("a box without NVLink goes round its GPUs over PCIe") {
    Cluster c("rail_optimized", 1);
    remove_nvlink(c.node);
    const GroupRate ring = c.network().ring(groups(8, 1, 8));
    CHECK(ring.bytes_per_s == doctest::Approx(c.node.pcie.socket_bytes_per_s));
    CHECK(ring.bytes_per_s == doctest::Approx(c.node.gpu.nvlink_bandwidth.bytes_per_second()));
}

TEST_CASE(
    "peers on two switches get what the root complex passes on, peers on one the whole link") {
    Cluster c("rail_optimized", 1);
    Pcie& pcie = c.node.pcie;
    pcie.sockets = 1;
    remove_nvlink(c.node);
    const auto ring = [&](std::int64_t gpus) {
        return c.network().ring(groups(gpus, 1, gpus)).bytes_per_s / pcie.link_bytes_per_s;
    };
    CHECK(pcie.root_complex_share < 0.8);
    CHECK(ring(8) == doctest::Approx(pcie.root_complex_share));
    CHECK(ring(2) == doctest::Approx(1));
    CHECK(c.node.gpu.nvlink_bandwidth.bytes_per_second() ==
          doctest::Approx(ring(8) * pcie.link_bytes_per_s));
    // Access control sends the second hop of each switch there too, at no loss but the link's.
    pcie.acs = true;
    CHECK(ring(8) == doctest::Approx(1 / (1 + 1 / pcie.root_complex_share)));
    CHECK(ring(8) * pcie.link_bytes_per_s ==
          doctest::Approx(pcie_ring_bytes_per_s(c.node, c.node.gpus)));
}

TEST_CASE("one slow part holds up every rank of its group, and is named") {
    const Cluster c("rail_optimized", 4);
    GpuNetwork nic = c.network();
    nic.degrade({Part::nic, 2, 5, 0.25});
    const GroupRate ring = nic.ring(groups(32, 1, 32));
    CHECK(ring.bytes_per_s == doctest::Approx(8 * 0.25 * c.nic()));
    CHECK(ring.bottleneck.find("node-2.nic-5") != std::string::npos);
    // Tensor-parallel groups don't notice.
    CHECK(nic.ring(groups(32, 1, 8)).bytes_per_s == 0);

    GpuNetwork lane = c.network();
    lane.degrade({Part::nvlink, 1, 3, 0.5});
    CHECK(lane.ring(groups(32, 1, 8)).nvlink_left == 0.5);
    CHECK(lane.ring(groups(32, 8, 4)).nvlink_left == 0.5);

    GpuNetwork pcie = c.network();
    pcie.degrade({Part::pcie, 0, 0, 0.25});
    CHECK(pcie.ring(groups(32, 1, 32)).bottleneck.find("PCIe") != std::string::npos);
}

TEST_CASE(
    "rails that don't meet are joined by NVLink: an all-to-all works, a ring across them does "
    "too") {
    const Cluster c("rail_only", 8);
    CHECK(c.network().all_to_all(groups(64, 1, 64)).bytes_per_s * 56 / 63 > 7.0 / 8 * c.nic());
    CHECK(c.network().ring(groups(64, 1, 64)).bytes_per_s == doctest::Approx(8 * c.nic()));
}

TEST_CASE("a send crosses rails that don't meet, and a GPU with four NICs uses all of them") {
    const Cluster rails("rail_only", 4);
    // From the last GPU of a node to the first of the next.
    CHECK(rails.network().send(groups(32, 1, 32)).bytes_per_s == doctest::Approx(rails.nic()));

    Cluster many("rail_optimized", 4);
    many.node.nics = many.spec.nics_per_node = 32;
    many.build();
    CHECK(many.network().send(groups(32, 8, 4)).bytes_per_s ==
          doctest::Approx(many.node.pcie.link_bytes_per_s));
    many.node.pcie.link_bytes_per_s = 1e12;
    CHECK(many.network().send(groups(32, 8, 4)).bytes_per_s == doctest::Approx(4 * many.nic()));
    CHECK(many.network().all_to_all(groups(32, 1, 32)).bytes_per_s * 24 / 31 ==
          doctest::Approx(4 * many.nic()));
}

TEST_CASE("one NIC for eight GPUs is shared by all that leave the node") {
    Cluster c("fat_tree", 4);
    c.node.nics = c.spec.nics_per_node = 1;
    c.build();
    CHECK(c.network().ring(groups(32, 1, 32)).bytes_per_s == doctest::Approx(c.nic()));
    CHECK(c.network().ring(groups(32, 8, 4)).bytes_per_s == doctest::Approx(c.nic() / 8));
    CHECK(c.network().send(groups(32, 8, 4)).bytes_per_s == doctest::Approx(c.nic() / 8));
}

TEST_CASE("a GPU reaches a NIC of the other socket over the link between the sockets") {
    Cluster c("fat_tree", 4);
    c.node.nics = c.spec.nics_per_node = 1;
    c.node.pcie.socket_bytes_per_s = c.nic() / 100;
    c.build();
    // Over NVLink it hands over to the GPU next to the NIC instead.
    CHECK(c.network().ring(groups(32, 8, 4)).bytes_per_s == doctest::Approx(c.nic() / 8));
    remove_nvlink(c.node);
    // The NIC is GPU 0's. The last four of eight cross the link, one of each group.
    const GroupRate all = c.network().ring(groups(32, 8, 4));
    CHECK(all.bytes_per_s == doctest::Approx(c.node.pcie.socket_bytes_per_s / 4));
    CHECK(all.bottleneck.find("between the sockets") != std::string::npos);
    const std::vector<GpuGroup> near = {{0, 8}, {1, 9}, {2, 10}, {3, 11}};
    CHECK(c.network().ring(near).bytes_per_s == doctest::Approx(c.nic() / 4));
    c.node.pcie.sockets = 1;
    CHECK(c.network().ring(groups(32, 8, 4)).bytes_per_s == doctest::Approx(c.nic() / 8));
}

TEST_CASE("two NICs without a path are named") {
    Cluster c("rail_optimized", 4);
    c.topology.degrade(c.topology.up_links(*c.topology.find("node-3.nic-6"))[0], 0);
    GpuNetwork network = c.network();
    try {
        network.ring(groups(32, 1, 32));
        FAIL("expected no path");
    } catch (const NoPath& e) {
        CHECK(std::string(e.what()).find("node-3.nic-6") != std::string::npos);
    }
}

// A ring's connections over a plain fat-tree are hashed onto its cables; a tree's are chosen.
TEST_CASE("SHARP's trees take the NICs' whole rate where hashed rings collide") {
    Cluster c("fat_tree", 32);
    GpuNetwork network = c.network();
    const auto all = groups(256, 1, 256);
    const GroupRate trees = network.reduction(all);
    const double nics = static_cast<double>(c.node.nics) * c.node.nic_line_rate.bytes_per_second();
    CHECK(trees.bytes_per_s <= nics);
    CHECK(trees.bytes_per_s > 0.9 * nics);
    CHECK(network.ring(all).bytes_per_s < 0.9 * trees.bytes_per_s);

    Communicator plain = read_communicator(c.catalogue, c.node, {256, 8, false});
    measure(network, all, Collective::all_reduce, plain);
    Communicator sharp = read_communicator(c.catalogue, c.node, {256, 8, true});
    measure(network, all, Collective::all_reduce, sharp);
    CHECK(sharp.network == plain.network);
    CHECK(sharp.sharp_network == trees.bytes_per_s);
    // Over one leaf there is nothing to choose; in one node nothing to reduce.
    CHECK(network.reduction(groups(8, 1, 8)).bytes_per_s == 0);
}

TEST_CASE("trees of one group share no cable while there are others, and use both planes") {
    for (const std::int64_t nodes_per_leaf : {1, 2, 4}) {
        Cluster c("fat_tree", 16);
        c.spec.nodes_per_leaf = nodes_per_leaf;
        c.build();
        CHECK(c.network().reduction(groups(128, 1, 128)).bytes_per_s ==
              doctest::Approx(8 * c.nic()));
    }
    Cluster c("dual_plane", 16);
    CHECK(c.network().reduction(groups(128, 1, 128)).bytes_per_s == doctest::Approx(8 * c.nic()));
    // Without one of its ports a NIC takes part by the other, and the rest wait for it.
    c.topology.degrade(c.topology.up_links(c.topology.nic(3, 1))[0], 0);
    CHECK(c.network().reduction(groups(128, 1, 128)).bytes_per_s == doctest::Approx(4 * c.nic()));
}

TEST_CASE("trees that share a cable share its rate, with each other and with what else is on it") {
    // On one leaf a NIC's cable is all that trees can share: k groups on it get a k-th each.
    Cluster c("single_switch", 8);
    c.node.nics = c.spec.nics_per_node = 1;
    c.build();
    const double nic = c.nic();
    for (const std::int64_t trees : {1, 2, 4, 8}) {
        std::vector<GpuGroup> some = groups(64, 8, 8);
        some.resize(static_cast<std::size_t>(trees));
        CHECK(c.network().reduction(some).bytes_per_s ==
              doctest::Approx(nic / static_cast<double>(trees)));
    }
    // Beside k flows into one of its NICs a tree gets 1 / (1 + k) of that cable, and so everywhere.
    const Topology& t = c.topology;
    std::vector<VertexId> nics;
    for (std::int64_t node = 0; node < 8; ++node) nics.push_back(t.nic(node, 0));
    const std::optional<AggregationTree> tree = aggregation_tree(t, nics, 0);
    REQUIRE(tree);
    for (const int others : {0, 1, 3}) {
        MaxMin rates(capacities(t));
        const auto of_tree = rates.add(tree->usages());
        const LinkId into = reverse_link(t.up_links(nics[0])[0]);
        for (int k = 0; k < others; ++k) rates.add(std::vector<Usage>{{into, 1}});
        rates.solve();
        CHECK(rates.rate(of_tree) == doctest::Approx(capacities(t)[into] / (1 + others)));
    }
}

TEST_CASE(
    "a switch that would be part of more trees than it can makes the network reduce nothing") {
    Cluster c("fat_tree", 16);
    const auto eight = groups(128, 8, 16);  // one tree each
    c.spec.leaf.sharp_trees = c.spec.spine.sharp_trees = 8;
    c.build();
    CHECK(c.network().reduction(eight).bytes_per_s == doctest::Approx(c.nic()));
    c.spec.leaf.sharp_trees = c.spec.spine.sharp_trees = 7;
    c.build();
    CHECK(c.network().reduction(eight).bytes_per_s == 0);
}

TEST_CASE("each NVLink domain of a node is a leaf of the tree") {
    Cluster c("fat_tree", 16);
    c.node.nvlink_domain = 4;
    // Two domains a node with four NICs each.
    CHECK(c.network().reduction(groups(128, 1, 128)).bytes_per_s == doctest::Approx(4 * c.nic()));
}

TEST_CASE("a measured communicator is never faster than on an ideal network") {
    Cluster c("fat_tree", 32);
    const Communicator ideal = read_communicator(c.catalogue, c.node, {256, 8, false});
    for (const Collective collective :
         {Collective::all_reduce, Collective::all_to_all, Collective::send_recv}) {
        Communicator measured = ideal;
        GpuNetwork network = c.network();
        measure(network, groups(256, 1, 256), collective, measured);
        for (const double bytes : {1e3, 1e6, 1e9}) {
            CHECK(seconds(collective, measured, bytes) >=
                  seconds(collective, ideal, bytes) * (1 - 1e-9));
        }
        CHECK_FALSE(measured.bottleneck.empty());
    }
}

TEST_CASE("a connection's queue pairs fill both ports of its NIC") {
    const Cluster c("dual_plane", 16);
    for (const Routing policy : {Routing::ecmp, Routing::destination, Routing::adaptive}) {
        CAPTURE(static_cast<int>(policy));
        GpuNetwork two{c.node, c.topology, {policy, 2}};
        CHECK(two.ring(groups(128, 1, 128)).bytes_per_s ==
              doctest::Approx(8 * c.nic()).epsilon(1e-6));
    }
    GpuNetwork one{c.node, c.topology, {Routing::ecmp, 1}};
    CHECK(one.ring(groups(128, 1, 128)).bytes_per_s == doctest::Approx(4 * c.nic()).epsilon(1e-6));
}

TEST_CASE("under adaptive routing a slow cable costs no more than a dead one") {
    Cluster c("fat_tree", 32);
    c.spec.nodes_per_leaf = 4;
    for (const std::uint64_t seed : {0, 1, 2}) {
        const auto rate = [&](double capacity) {
            c.build();
            c.topology.degrade(
                c.topology.up_links(c.topology.links()[c.topology.up_links(0)[0]].to)[0], capacity);
            GpuNetwork network{c.node, c.topology, {Routing::adaptive, 1, seed}};
            return network.ring(groups(256, 1, 256)).bytes_per_s;
        };
        CAPTURE(seed);
        const double dead = rate(0);
        for (const double capacity : {0.1, 0.5, 0.9}) {
            CAPTURE(capacity);
            CHECK(rate(capacity) >= 0.999 * dead);
        }
    }
}

TEST_CASE("a network with other hashes is the one that is made with them") {
    const auto pairs = groups(256, 8, 32);
    const Cluster c("fat_tree", 32);
    const auto made = [&](std::uint64_t seed) {
        return GpuNetwork(c.node, c.topology, {.policy = Routing::ecmp, .hash_seed = seed});
    };
    GpuNetwork first = made(0);
    bool differ = false;
    for (const std::uint64_t seed : {11, 12, 13}) {
        CAPTURE(seed);
        GpuNetwork copy = first.rehashed(seed);
        copy.note_cables(std::make_shared<CablesUsed>(c.topology, Routing::ecmp));  // measures anew
        const GroupRate a = first.rehashed(seed).ring(pairs);
        const GroupRate b = made(seed).ring(pairs);
        const GroupRate anew = copy.ring(pairs);
        CHECK(a.bytes_per_s == b.bytes_per_s);
        CHECK(a.bytes_per_s == anew.bytes_per_s);
        CHECK(a.bottleneck == anew.bottleneck);
        differ |= a.bottleneck != first.ring(pairs).bottleneck;
    }
    CHECK(differ);
}

TEST_CASE("a rehashed network has the faults of both, whether it or the first is measured first") {
    const auto pairs = groups(256, 8, 32);
    const Cluster c("fat_tree", 32);
    const PartFault before{Part::nic, 0, 0, 0.5};
    const PartFault after{Part::nic, 1, 0, 0.25};
    const auto rate = [&](bool base_first) {
        GpuNetwork base(c.node, c.topology, {Routing::ecmp});
        base.note_cables(std::make_shared<CablesUsed>(c.topology, Routing::ecmp));  // measures anew
        base.degrade(before);
        if (base_first) base.ring(pairs);
        GpuNetwork copy = base.rehashed(5);
        copy.degrade(after);
        return copy.ring(pairs).bytes_per_s;
    };
    CHECK(rate(true) == rate(false));
    CHECK(rate(false) == doctest::Approx(c.nic() * 0.25));
}

TEST_CASE("the groups of a rate that is known are not listed again") {
    const Cluster c("fat_tree", 32);
    int listed = 0;
    const auto rate = [&](std::int64_t stride) {
        Fingerprint name;
        name.add_all("groups of this test", stride);
        return c.network().ring({name, [&] {
                                     ++listed;
                                     return groups(256, stride, 32);
                                 }});
    };
    const double first = rate(8).bytes_per_s;
    CHECK(rate(8).bytes_per_s == first);
    CHECK(listed == 1);
    CHECK(rate(1).bytes_per_s == c.network().ring(groups(256, 1, 32)).bytes_per_s);
    CHECK(listed == 2);
}

TEST_CASE("what breaks in a copy of a network leaves the network as it was") {
    const Cluster c("fat_tree", 32);
    Topology copy = c.topology;
    CHECK(copy.likeness() == c.topology.likeness());
    const LinkId link = copy.up_links(0)[0];
    copy.degrade(link, 0.5);
    CHECK(copy.links()[link].bytes_per_s * 2 == c.topology.links()[link].bytes_per_s);
    CHECK(copy.likeness() != c.topology.likeness());
    copy.degrade(link, 2);
    CHECK(copy.likeness() == c.topology.likeness());
}

TEST_CASE("a rate is measured once for networks that are alike, and anew where anything differs") {
    const auto ring = groups(256, 1, 256);
    const auto pairs = groups(256, 8, 32);
    const auto measured = [&](GpuNetwork network, const Topology& topology) {
        network.note_cables(std::make_shared<CablesUsed>(topology, Routing::ecmp));  // every time
        return network;
    };
    const auto check = [&](const Cluster& c, RoutingSpec routing, const PartFault& fault) {
        GpuNetwork network(c.node, c.topology, routing);
        network.degrade(fault);
        GpuNetwork anew = measured(network, c.topology);
        for (const auto& asked : {ring, pairs}) {
            const GroupRate a = network.ring(asked);
            const GroupRate b = anew.ring(asked);
            CHECK(a.bytes_per_s == b.bytes_per_s);
            CHECK(a.bottleneck == b.bottleneck);
            CHECK(a.extra_hop_s == b.extra_hop_s);
            CHECK(a.nvlink_left == b.nvlink_left);
            CHECK(network.tree(asked).bytes_per_s == anew.tree(asked).bytes_per_s);
            CHECK(network.send(asked).bytes_per_s == anew.send(asked).bytes_per_s);
            CHECK(network.all_to_all(asked).bytes_per_s == anew.all_to_all(asked).bytes_per_s);
        }
    };
    const PartFault sound{Part::gpu, 0, 0, 1};
    for (int again = 0; again < 2; ++again) {
        CAPTURE(again);
        Cluster c("fat_tree", 32);
        check(c, {Routing::ecmp}, sound);
        check(c, {Routing::destination}, sound);
        check(c, {.policy = Routing::ecmp, .queue_pairs = 4}, sound);
        check(c, {.policy = Routing::ecmp, .hash_seed = 7}, sound);
        check(c, {.policy = Routing::ecmp, .hash_polarized = true}, sound);
        for (const Part part : {Part::nic, Part::pcie, Part::nvlink}) {
            check(c, {Routing::ecmp}, {part, 1, 0, 0.5});
            check(c, {Routing::ecmp}, {part, 2, 0, 0.25});
        }
        Cluster slow("fat_tree", 32);
        slow.node.nic_bandwidth =
            Bandwidth::bits_per_second(slow.node.nic_bandwidth.bits_per_second() / 2);
        check(slow, {Routing::ecmp}, sound);
        Cluster far("fat_tree", 32);
        far.node.pcie.peer_to_peer = false;
        check(far, {Routing::ecmp}, sound);
        Cluster oversubscribed("fat_tree", 32);
        oversubscribed.spec.oversubscription = 3;
        oversubscribed.build();
        check(oversubscribed, {Routing::ecmp}, sound);
        check(Cluster("rail_optimized", 32), {Routing::ecmp}, sound);
        c.topology.degrade(c.topology.up_links(0)[0], 0.5);
        check(c, {Routing::ecmp}, sound);
    }
}

TEST_CASE(
    "a ring over two buildings crosses twice a round, and its all-reduce pays for that alone") {
    Cluster c("rail_optimized", 32, "sn5400_spectrum4");
    const auto all = groups(256, 1, 256);
    const auto took = [&](double km, Collective collective, double bytes) {
        c.spec.sites = 2;
        c.spec.site_distance = km > 0 ? Metres{km * 1000} : c.spec.switch_cable;
        c.build();
        Communicator made = read_communicator(c.catalogue, c.node, {256, 8, false});
        GpuNetwork network = c.network(Routing::spray);
        measure(network, all, collective, made);
        CHECK(made.measured.far_share == (km > 0 ? doctest::Approx(2.0 / 32) : doctest::Approx(0)));
        return seconds(collective, made, bytes);
    };
    for (const double km : {2.0, 40.0}) {
        CAPTURE(km);
        const double delay = (km * 1000 - c.spec.switch_cable.value) * c.spec.propagation_s_per_m;
        // 2 (n - 1) hops between nodes, 2 of each n of them to the other building. At 1 GB the buffers of
        // NCCL's channels, not links, set the rate at 40 km.
        const double more =
            took(km, Collective::all_gather, 1e6) - took(0, Collective::all_gather, 1e6);
        CHECK(more == doctest::Approx(31 * 2.0 / 32 * delay).epsilon(0.01));
    }
}

TEST_CASE("an all-to-all over PCIe takes as long by hand as on links") {
    struct Case {
        const char* node;
        bool nvlink, acs;
        std::int64_t ranks, stride;  // a group's, of all GPUs' groups
    };
    for (const auto& [name, nvlink, acs, ranks, stride] : {Case{"h100_pcie_8", true, false, 8, 1},
                                                           {"h100_pcie_8", true, false, 16, 1},
                                                           {"h100_pcie_8", true, false, 64, 1},
                                                           {"h100_pcie_8", true, false, 4, 1},
                                                           {"h100_pcie_8", true, false, 16, 2},
                                                           {"h100_pcie_8", true, true, 32, 1},
                                                           {"l40s_4", true, false, 4, 1},
                                                           {"l40s_4", true, false, 16, 1},
                                                           {"l40s_4", true, false, 64, 1},
                                                           {"dgx_h100", false, false, 8, 1},
                                                           {"dgx_h100", false, false, 32, 1}}) {
        CAPTURE(std::string(name));
        CAPTURE(nvlink);
        CAPTURE(acs);
        CAPTURE(ranks);
        CAPTURE(stride);
        Cluster c("rail_optimized", 64);
        c.node = read_node(c.catalogue, name);
        c.node.pcie.acs = acs;
        if (!nvlink) remove_nvlink(c.node);
        const std::int64_t gpus = std::max(ranks * stride, c.node.gpus);
        c.spec.nodes = gpus / c.node.gpus;
        c.spec.nics_per_node = c.node.nics;
        c.spec.nic_bandwidth = c.node.nic_line_rate;
        c.build();
        const double g = static_cast<double>(std::min(ranks * stride, c.node.gpus) / stride);
        const double n = static_cast<double>(ranks);
        const double nics =
            static_cast<double>(c.node.nics) * c.nic() * g / static_cast<double>(c.node.gpus);
        constexpr double bytes = 1e12;
        const CollectiveConstants constants = read_collective_constants(c.catalogue, c.node);
        Communicators by_hand(constants, c.node);
        GpuNetwork network = c.network(Routing::spray);
        Communicator on_links = by_hand.of(Collective::all_to_all, stride, ranks);
        measure(network, groups(gpus, stride, ranks), Collective::all_to_all, on_links);
        const auto time = [&](const Communicator& of) {
            return collective_cost(of, Collective::all_to_all, bytes).seconds;
        };
        const double solved = time(on_links);
        CHECK(solved >= 0.999 * bytes * g * (n - g) / n / nics);
        CHECK(time(by_hand.of(Collective::all_to_all, stride, ranks)) ==
              doctest::Approx(solved).epsilon(0.1));
    }
}

TEST_CASE("a group alone is by hand as fast as on links, wherever its ranks are") {
    for (const char* name : {"dgx_h100", "dgx_a100", "seed_h100_node", "h100_pcie_8", "l40s_4",
                             "gh200_4", "mi250x_8"}) {
        CAPTURE(std::string(name));
        Cluster c("rail_optimized", 4);
        c.node = read_node(c.catalogue, name);
        c.spec.nics_per_node = c.node.nics;
        c.spec.nic_bandwidth = c.node.nic_line_rate;
        c.build();
        const std::int64_t each = c.node.gpus;
        for (const std::int64_t gpus :
             {each / 2, each - 1, each, each + 1, each + each / 2, 2 * each + 1, 4 * each}) {
            for (const Collective kind :
                 {Collective::all_gather, Collective::send_recv, Collective::all_to_all}) {
                CAPTURE(gpus);
                CAPTURE(collective_names[static_cast<std::size_t>(kind)]);
                const Communicator ideal =
                    read_communicator(c.catalogue, c.node, {gpus, each, false});
                Communicator on_links = ideal;
                GpuNetwork network = c.network(Routing::spray);
                measure(network, groups(gpus, 1, gpus), kind, on_links);
                const auto seconds = [&](const Communicator& of) {
                    return collective_cost(of, kind, 1e12).seconds;
                };
                // Over PCIe and full meshes a rest on the last node meets others on links that no one
                // number has.
                const bool rest =
                    gpus > each && gpus % each != 0 && (ideal.over_pcie() || !ideal.nvswitch);
                CHECK(seconds(ideal) ==
                      doctest::Approx(seconds(on_links)).epsilon(rest ? 0.35 : 0.1));
            }
        }
    }
}

TEST_CASE("inside a node PCIe has latencies of its own, whatever NICs there are, and no LL128") {
    Cluster c("rail_optimized", 4);
    c.node = read_node(c.catalogue, "h100_pcie_8");
    Node with_efa = c.node;
    set_nic(c.catalogue, with_efa, "efa_v1_100");
    const auto seconds = [&](const Node& node, std::int64_t ranks, double bytes) {
        const Communicator of = read_communicator(c.catalogue, node, {ranks, 8, false});
        CHECK(!available(of, Collective::all_reduce, {Algorithm::ring, Protocol::ll128}));
        return collective_cost(of, Collective::all_reduce, bytes).seconds;
    };
    for (const double bytes : {8.0, 1e6, 1e8}) {
        CHECK(seconds(with_efa, 8, bytes) == seconds(c.node, 8, bytes));
        CHECK(seconds(with_efa, 16, bytes) > seconds(c.node, 16, bytes));
    }
}
