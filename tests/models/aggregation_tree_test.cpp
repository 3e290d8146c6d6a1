// Reduction in the network: the trees, and what they make of packets.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tests/models/topologies.h"
#include "tests/models/windows.h"

using namespace railyard;

namespace {

constexpr std::int64_t piece = 1 << 20;
constexpr std::int64_t pieces = 16;

// One NIC of 400 Gbit/s a node, four nodes a leaf.
Scenario all_reduce(std::int64_t nodes, double oversubscription, const std::string& more = "") {
    const std::string text = fmt::format(
        "[run]\nduration = \"1 h\"\n[cluster]\nnodes = {}\nnics_per_node = 1\n"
        "[job]\nstep.time = \"1 s\"\ncheckpoint.mode = \"none\"\n[failures]\nprofile = \"none\"\n"
        "[fabric.compute]\nkind = \"infiniband\"\nsharp = true\ntopology = \"fat_tree\"\n"
        "nodes_per_leaf = 4\noversubscription = {}\n"
        "[[window.traffic]]\nkind = \"sharp\"\nbytes = \"{} B\"\nsteps = {}\n{}",
        nodes, oversubscription, piece, pieces, more);
    ScenarioChanges changes;
    changes.packets = true;
    return load_scenario(text, "sharp.toml", changes);
}

double seconds_of(const Scenario& s) {
    const NetworkWindow w = packet_windows(s)[0];
    const WindowResult r = run_to_its_end(s, w);
    REQUIRE(r.ending == WindowEnding::resolved);
    REQUIRE(r.failures == 0);
    CHECK(r.lost() == 0);
    for (std::size_t f = 0; f < r.received_bytes.size(); ++f) {
        REQUIRE(r.received_bytes[f] == w.window.flows[f].bytes);
    }
    return static_cast<double>(r.end.count()) * 1e-12;
}

std::vector<VertexId> nics_of(const Topology& t) {
    std::vector<VertexId> nics;
    for (VertexId v = 0; v < t.nic_count(); ++v) nics.push_back(v);
    return nics;
}

}  // namespace

TEST_CASE("an aggregation tree has one way up from each vertex, and the lowest root") {
    const Topology t = three_tiers();
    const auto tree = aggregation_tree(t, nics_of(t), 0);
    REQUIRE(tree);
    CHECK(t.level(tree->root) == 3);
    CHECK(tree->branches.size() == 64 + 16 + 4);  // NICs, leaves, a spine of each pod
    std::set<VertexId> children;
    for (const AggregationTree::Branch& b : tree->branches) {
        CHECK(children.insert(b.child).second);
        CHECK(t.links()[b.up].from == b.child);
        CHECK(t.links()[b.up].to == b.parent);
        CHECK(t.level(b.parent) == t.level(b.child) + 1);
        CHECK((t.level(b.parent) < 3 || b.parent == tree->root));
    }
    CHECK(tree->usages().size() == 2 * tree->branches.size());

    const std::vector<VertexId> neighbours = {0, 1, 3};
    const auto small = aggregation_tree(t, neighbours, 0);
    REQUIRE(small);
    CHECK(t.level(small->root) == 1);
    CHECK(small->branches.size() == 3);
    std::set<VertexId> roots;
    for (std::uint64_t number = 0; number < 16; ++number) {
        roots.insert(aggregation_tree(t, nics_of(t), number)->root);
    }
    CHECK(roots.size() == 8);  // all there are
}

TEST_CASE("a tree avoids cables that are dead, and there is none without a common switch") {
    Topology t = three_tiers();
    const std::vector<VertexId> nics = {0, 5, 63};
    const auto before = aggregation_tree(t, nics, 0);
    REQUIRE(before);
    const LinkId first = before->branches[3].up;  // of the first leaf
    t.degrade(first, 0);
    const auto after = aggregation_tree(t, nics, 0);
    REQUIRE(after);
    for (const AggregationTree::Branch& b : after->branches) CHECK(b.up != first);
    for (const LinkId l : t.up_links(t.links()[first].from)) t.degrade(l, 0);
    CHECK(!aggregation_tree(t, nics, 0));
}

// A byte goes up once and down once, at the same time: S / B, and on the way up and down a piece is gathered
// at each switch before it goes on (four times in two tiers) and latencies. A ring takes 2 (n - 1) / n S / B
// and 2 (n - 1) latencies.
TEST_CASE("SHARP's all-reduce takes S / B, whatever the number of NICs and the oversubscription") {
    const double wire = (4096.0 + 58) / 4096;  // at most: InfiniBand's headers are smaller
    const double line = 50e9;
    const double once = pieces * piece / line;
    const double filled = once + 3.0 * piece / line;  // a piece begins down when it is up
    const double four = seconds_of(all_reduce(4, 1));
    const double eight = seconds_of(all_reduce(8, 1));
    const double many = seconds_of(all_reduce(32, 1));
    MESSAGE("4 NICs " << four / once << ", 8 " << eight / once << ", 32 " << many / once
                      << " times S / B");
    CHECK(four > once);
    CHECK(many > filled);
    CHECK(many < filled * wire + 40e-6);
    CHECK(many == doctest::Approx(eight).epsilon(0.01));
    // A leaf sends one stream up, whatever is below it.
    CHECK(seconds_of(all_reduce(32, 4)) == doctest::Approx(many).epsilon(0.01));
}

TEST_CASE("a branch that dies fails the reduction for all, and nothing hangs") {
    const std::string fault =
        "[[window.fault]]\nkind = \"link_down\"\nnic = \"node-2.nic-0\"\nstart = \"100 us\"\n";
    const Scenario s = all_reduce(8, 1, fault);
    const NetworkWindow w = packet_windows(s)[0];
    const WindowResult r = run_to_its_end(s, w);
    CHECK(r.ending == WindowEnding::resolved);
    const std::size_t last = w.window.flows.size() - 1;  // of the last piece, to a NIC
    CHECK(r.failed[last]);
    CHECK(std::count(r.failed.begin(), r.failed.end(), true) > 8);
    CHECK(source_name(w.network->topology, w.window, w.window.flows[last]).ends_with(".sharp"));
    CHECK(target_name(w.network->topology, w.window, w.window.flows[last]) == "node-0.nic-0");
}

TEST_CASE("a NIC that takes a quarter of the rate holds the reduction up for all") {
    const std::string fault =
        "[[window.fault]]\nkind = \"slow_receiver\"\nnic = \"node-2.nic-0\"\n"
        "rate = \"100 Gbit/s\"\n";
    const Scenario s = all_reduce(8, 1, fault);
    const NetworkWindow w = packet_windows(s)[0];
    WindowRecord record;
    const WindowResult r = run_to_its_end(s, w, &record);
    REQUIRE(r.ending == WindowEnding::resolved);
    const double once = pieces * piece / 50e9;
    const double took = static_cast<double>(r.end.count()) * 1e-12;
    CHECK(took > 4 * once);
    CHECK(took < 4 * once * 1.1 + 3.0 * piece / 50e9);
    // Only links of the topology: those of aggregation nodes have no name.
    REQUIRE(!record.pauses.empty());
    for (const PauseEdge& e : record.pauses) {
        REQUIRE(e.link < w.network->topology.links().size());
    }
}
