#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "sim/rng.h"
#include "tests/models/topologies.h"

using namespace railyard;

namespace {

TopologySpec spec_of(const char* kind, std::int64_t nodes, std::int64_t nics, std::int64_t ports) {
    TopologySpec spec =
        uniform_topology(kind, nodes, ports, Bandwidth::bits_per_second(400'000'000'000));
    spec.nics_per_node = nics;
    return spec;
}

std::int64_t switches_at(const Topology& t, int level) {
    std::int64_t count = 0;
    for (VertexId v = 0; v < t.vertex_count(); ++v) count += t.level(v) == level;
    return count;
}

std::vector<Usage> path(Router& router, VertexId from, VertexId to, std::uint64_t label = 0) {
    std::vector<Usage> out;
    REQUIRE(router.route(from, to, label, out));
    return out;
}

// Max-min fairness by its definition: no link over its capacity, every flow with a bottleneck.
void check_fair(const std::vector<double>& capacity, const std::vector<std::vector<Usage>>& flows,
                const std::vector<double>& rates) {
    std::vector<double> load(capacity.size());
    std::vector<double> fastest(capacity.size());
    for (std::size_t f = 0; f < flows.size(); ++f) {
        for (const Usage& u : flows[f]) {
            load[u.link] += double{u.share} * rates[f];
            fastest[u.link] = std::max(fastest[u.link], rates[f]);
        }
    }
    for (std::size_t l = 0; l < capacity.size(); ++l) CHECK(load[l] <= capacity[l] * (1 + 1e-9));
    for (std::size_t f = 0; f < flows.size(); ++f) {
        const bool has_bottleneck =
            std::any_of(flows[f].begin(), flows[f].end(), [&](const Usage& u) {
                return load[u.link] >= capacity[u.link] * (1 - 1e-8) &&
                       rates[f] >= fastest[u.link] * (1 - 1e-8);
            });
        CHECK(has_bottleneck);
    }
}

}  // namespace

TEST_CASE("a k-ary fat-tree has k^3/4 NICs, k^2/2 leaves and spines, k^2/4 core switches") {
    for (const std::int64_t k : {4, 8, 16, 32}) {
        const Topology t = built(spec_of("fat_tree", k * k * k / 4, 1, k));
        CHECK(t.levels() == 3);
        CHECK(switches_at(t, 1) == k * k / 2);
        CHECK(switches_at(t, 2) == k * k / 2);
        CHECK(switches_at(t, 3) == k * k / 4);
        CHECK(unreachable(t).empty());
        for (VertexId v = 0; v < t.vertex_count(); ++v)
            CHECK(t.ports_used(v) == (t.level(v) == 0 ? 1 : k));
        CHECK(bisection_bytes_per_s(t) ==
              doctest::Approx(50e9 * static_cast<double>(k * k * k) / 8));
    }
}

TEST_CASE("two tiers of radix k join k^2/2 NICs, and not one more") {
    CHECK(built(spec_of("fat_tree", 2048, 1, 64)).levels() == 2);
    TopologySpec more = spec_of("fat_tree", 2049, 1, 64);
    CHECK(built(more).levels() == 3);
    more.tiers = 2;
    std::string problem;
    Topology::build(more, problem);
    CHECK(problem.find("65 leaves are more than the 64 ports") != std::string::npos);
}

TEST_CASE("spines of pods and core switches are as few as their ports allow") {
    const auto check = [](const TopologySpec& spec, std::vector<std::int64_t> tiers, double tbit) {
        const Topology t = built(spec);
        CHECK(std::vector{switches_at(t, 1), switches_at(t, 2), switches_at(t, 3)} == tiers);
        CHECK(bisection_bytes_per_s(t) * 8e-12 == doctest::Approx(tbit));
        CHECK(unreachable(t).empty());
        for (auto v = static_cast<VertexId>(t.nic_count()); v < t.vertex_count(); ++v) {
            CHECK(t.ports_used(v) <= spec.leaf.ports);
        }
    };
    check(spec_of("rail_optimized", 257, 8, 64), {72, 87, 36}, 409.6);
    TopologySpec spec = spec_of("fat_tree", 64, 8, 128);
    spec.nodes_per_leaf = 8;
    spec.tiers = 3;
    check(spec, {8, 8, 4}, 102.4);
    spec.oversubscription = 2;
    spec.spine_oversubscription = 4;
    check(spec, {8, 4, 1}, 51.2);
    spec = spec_of("fat_tree", 64, 8, 128);
    spec.nodes_per_leaf = 8;
    spec.sites = 2;
    check(spec, {8, 8, 4}, 102.4);
    spec.site_oversubscription = 16;
    check(spec, {8, 8, 1}, 6.4);
}

TEST_CASE("cables of core switches that several spines of a pod share are loaded alike") {
    const Topology t = built(spec_of("fat_tree", 150, 2, 16));
    const auto nics = static_cast<VertexId>(t.nic_count());
    for (const Routing policy : {Routing::destination, Routing::spray, Routing::adaptive}) {
        Router router(t, {policy});
        std::vector<double> load(t.links().size());
        for (VertexId nic = 0; nic < nics; ++nic) {
            for (const Usage& u : path(router, nic, (nic + nics / 2) % nics)) {
                load[u.link] += double{u.share};
            }
        }
        for (LinkId l = 0; l < load.size(); ++l) {
            if (t.level(t.links()[l].from) == 3) CHECK(load[l] < 1.001);
        }
    }
}

TEST_CASE("what fits on one switch takes all its ports, and needs no spine") {
    const Bandwidth rate = Bandwidth::bits_per_second(400'000'000'000);
    const auto switches = [&](const char* kind, std::int64_t nodes, std::int64_t nics) {
        TopologySpec spec = uniform_topology(kind, nodes, 8, rate);
        spec.nics_per_node = nics;
        const Topology t = built(spec);
        return t.vertex_count() - t.nic_count();
    };
    CHECK(switches("fat_tree", 8, 1) == 1);
    CHECK(switches("fat_tree", 9, 1) > 3);
    CHECK(switches("fat_tree", 2, 3) == 1);  // six NICs, and no node in two halves
    CHECK(switches("rail_only", 8, 4) == 4);
    CHECK(switches("rail_only", 9, 4) > 12);
    CHECK(switches("rail_optimized", 2, 4) > 4);  // rails meet above their leaves
    CHECK(built(uniform_topology("fat_tree", 8, 8, rate, 2)).levels() == 2);  // as it is asked for
}

TEST_CASE("oversubscription takes its part of the bisection") {
    TopologySpec spec = spec_of("fat_tree", 960, 1, 64);
    const double full = bisection_bytes_per_s(built(spec));
    spec.oversubscription = 3;
    CHECK(bisection_bytes_per_s(built(spec)) < full / 2.8);
    CHECK(bisection_bytes_per_s(built(spec)) > full / 3.3);
}

TEST_CASE(
    "a rail-optimised unit keeps each rail on one leaf; a plain fat-tree keeps each node on one") {
    const Topology rails = built(spec_of("rail_optimized", 32, 8, 64));
    const Topology plain = built(spec_of("fat_tree", 32, 8, 64));
    const auto leaf = [](const Topology& t, std::int64_t node, std::int64_t nic) {
        return t.links()[t.up_links(t.nic(node, nic))[0]].to;
    };
    CHECK(leaf(rails, 0, 3) == leaf(rails, 31, 3));
    CHECK(leaf(rails, 0, 3) != leaf(rails, 0, 4));
    CHECK(leaf(plain, 0, 3) == leaf(plain, 0, 4));
    CHECK(leaf(plain, 0, 3) != leaf(plain, 31, 3));
}

TEST_CASE("storage servers stand on every leaf of rails, and on the last leaves of a fat-tree") {
    // A rail apart fits on one leaf.
    const std::vector<std::pair<std::string, std::size_t>> leaves_with_servers = {
        {"rail_optimized", 16}, {"rail_only", 8}, {"dual_plane", 8}, {"fat_tree", 1}};
    for (const auto& [kind, expected] : leaves_with_servers) {
        CAPTURE(kind);
        TopologySpec spec = spec_of(kind.c_str(), 32, 8, 64);
        spec.servers = 16;
        spec.nics_per_server = 2;
        const Topology t = built(spec);
        CHECK(t.nic_count() == 32 * 8 + 32);
        CHECK(unreachable(t).empty());
        CHECK(t.find("server-15.nic-1") == t.server_nic(15, 1));
        std::set<VertexId> leaves;
        for (VertexId nic = t.server_nic(0, 0); nic < t.nic_count(); ++nic) {
            leaves.insert(t.links()[t.up_links(nic)[0]].to);
        }
        CHECK(leaves.size() == expected);
        Router router(t, {});
        path(router, t.nic(7, 0), t.server_nic(8, 0));
    }
}

TEST_CASE("rails of a rail-only network do not meet, and two planes double the paths") {
    const Topology rails = built(spec_of("rail_only", 64, 8, 64));
    CHECK(unreachable(rails).empty());  // over NVLink
    Router router(rails, {});
    std::vector<Usage> usages;
    CHECK(router.route(rails.nic(0, 0), rails.nic(1, 0), 0, usages));
    CHECK_FALSE(router.route(rails.nic(0, 0), rails.nic(1, 1), 0, usages));

    const Topology planes = built(spec_of("dual_plane", 64, 8, 64));
    CHECK(planes.up_links(0).size() == 2);
    Router spray(planes, {Routing::spray});
    double most = 0;
    for (const Usage& u : path(spray, planes.nic(0, 0), planes.nic(1, 0)))
        most = std::max(most, double{u.share});
    CHECK(most == 0.5);
}

TEST_CASE("every policy takes a shortest path that joins both ends, and spray loses no byte") {
    const Topology t = built(spec_of("fat_tree", 128, 1, 8));
    for (const auto policy :
         {Routing::destination, Routing::ecmp, Routing::adaptive, Routing::spray}) {
        Router router(t, {policy, 1, 7});
        for (const auto& [from, to, hops] :
             {std::tuple(0U, 1U, 2), std::tuple(0U, 5U, 4), std::tuple(0U, 127U, 6)}) {
            const std::vector<Usage> p = path(router, from, to);
            double into = 0;
            double all = 0;
            for (const Usage& u : p) {
                if (t.links()[u.link].to == to) into += double{u.share};
                all += double{u.share};
            }
            CHECK(into == doctest::Approx(1));
            // Where packets choose, one cable stands for all that are alike.
            if (policy != Routing::adaptive) CHECK(all == doctest::Approx(hops));
        }
    }
}

TEST_CASE("a dead link is routed around, and one without alternative is reported") {
    Topology t = built(spec_of("fat_tree", 128, 1, 8));
    Router before(t, {});
    const std::vector<Usage> p = path(before, 0, 127);
    for (const Usage& u : p) {
        if (t.level(t.links()[u.link].to) == 2) t.degrade(u.link, 0);
    }
    Router after(t, {});
    for (const Usage& u : path(after, 0, 127)) CHECK(t.links()[u.link].bytes_per_s > 0);
    t.degrade(t.up_links(0)[0], 0);
    Router cut(t, {});
    std::vector<Usage> none;
    CHECK_FALSE(cut.route(0, 127, 0, none));
    CHECK(none.empty());
    REQUIRE(unreachable(t).size() == 1);
}

TEST_CASE(
    "hashed paths collide as balls in bins do; more queue pairs help; adaptive does not collide") {
    // 16 flows from one leaf to as many other leaves over 16 uplinks.
    const Topology t = built(spec_of("fat_tree", 256, 1, 32));
    const auto fullest = [&](Routing policy, std::int64_t queue_pairs, std::uint64_t seed) {
        Router router(t, {policy, queue_pairs, seed});
        std::vector<double> load(t.links().size());
        for (VertexId i = 0; i < 16; ++i) {
            for (const Usage& u : path(router, i, 16 + i * 15)) {
                if (t.level(t.links()[u.link].from) == 1 && t.level(t.links()[u.link].to) == 2) {
                    load[u.link] += double{u.share};
                }
            }
        }
        return *std::max_element(load.begin(), load.end());
    };
    double one = 0;
    double eight = 0;
    constexpr int draws = 400;
    for (std::uint64_t seed = 0; seed < draws; ++seed) {
        one += fullest(Routing::ecmp, 1, seed) / draws;
        eight += fullest(Routing::ecmp, 8, seed) / draws;
    }
    CHECK(one == doctest::Approx(3.08).epsilon(0.05));  // E[max] of 16 balls in 16 bins
    CHECK(eight < 0.65 * one);
    CHECK(fullest(Routing::adaptive, 1, 1) == 1);
    CHECK(fullest(Routing::spray, 1, 1) == doctest::Approx(1));
}

TEST_CASE(
    "packets that choose never meet where nothing is oversubscribed; flows that choose once do") {
    // Three tiers: a leaf sees no collision that two of its flows' ways have further on.
    const Topology t = built(spec_of("fat_tree", 1024, 1, 16));
    REQUIRE(t.levels() == 3);
    const auto fullest = [&](Routing policy, std::uint64_t seed) {
        RandomStream stream(seed, 0, "permutation");
        std::vector<VertexId> to(1024);
        for (VertexId i = 0; i < 1024; ++i) to[i] = i;
        for (std::size_t i = 1024; i > 1; --i) std::swap(to[i - 1], to[stream.below(i)]);
        Router router(t, {policy, 1, seed});
        std::vector<double> load(t.links().size());
        for (VertexId i = 0; i < 1024; ++i) {
            for (const Usage& u : path(router, i, to[i])) load[u.link] += double{u.share};
        }
        return *std::max_element(load.begin(), load.end());
    };
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
        CAPTURE(seed);
        CHECK(fullest(Routing::adaptive, seed) < 1 + 1e-5);
        CHECK(fullest(Routing::flowlet, seed) > 1.5);
    }
}

TEST_CASE("a cable that stands for all that are alike gives packets that choose the rates of all") {
    for (const char* kind : {"fat_tree", "rail_optimized", "rail_only", "dual_plane"}) {
        CAPTURE(std::string(kind));
        for (const double oversubscription : {1.0, 3.0}) {
            CAPTURE(oversubscription);
            TopologySpec spec = spec_of(kind, 70, 2, 16);
            spec.oversubscription = oversubscription;
            const Topology t = built(spec);
            const auto rates = [&](Routing policy) {
                RandomStream stream(5, 0, "flows");
                Router router(t, {policy, 2, 1});
                MaxMin shares(capacities(t));
                std::vector<FlowId> flows;
                for (int f = 0; f < 300; ++f) {
                    const auto from = t.nic(static_cast<std::int64_t>(stream.below(70)), 0);
                    const auto to = t.nic(static_cast<std::int64_t>(stream.below(70)), 0);
                    if (from != to) flows.push_back(shares.add(path(router, from, to)));
                }
                shares.solve();
                std::vector<double> out;
                for (const FlowId f : flows) out.push_back(shares.rate(f));
                return out;
            };
            const std::vector<double> sprayed = rates(Routing::spray);
            const std::vector<double> chosen = rates(Routing::adaptive);
            REQUIRE(sprayed.size() == chosen.size());
            for (std::size_t f = 0; f < sprayed.size(); ++f) {
                CHECK(chosen[f] == doctest::Approx(sprayed[f]).epsilon(1e-4));
            }
        }
    }
}

TEST_CASE("packets that choose take from a slow cable what it can carry, near or far") {
    // As packet by packet: 4 / 3.25 times the time (packet_routing_test.cpp).
    for (const bool near : {true, false}) {
        CAPTURE(near);
        Topology t = built(spec_of("fat_tree", 32, 1, 8));
        const VertexId leaf = t.links()[t.up_links(near ? 0 : 4)[0]].to;
        REQUIRE(t.up_links(leaf).size() == 4);
        t.degrade(t.up_links(leaf)[0], 0.25);
        Router router(t, {Routing::adaptive});
        MaxMin shares(capacities(t));
        std::vector<FlowId> flows;
        for (VertexId i = 0; i < 4; ++i) flows.push_back(shares.add(path(router, i, 4 + i)));
        shares.solve();
        for (const FlowId f : flows) {
            CHECK(shares.rate(f) == doctest::Approx(50e9 * 3.25 / 4).epsilon(1e-5));
        }
    }
}

TEST_CASE("the parking lot: one long flow and a cross flow per hop share each hop evenly") {
    MaxMin shares({100, 100, 100});
    const std::vector<Usage> long_path = {{0}, {1}, {2}};
    const FlowId long_flow = shares.add(long_path);
    std::vector<FlowId> cross;
    for (const LinkId l : {0U, 1U, 2U}) cross.push_back(shares.add(std::vector<Usage>{{l}}));
    shares.solve();
    CHECK(shares.rate(long_flow) == 50);
    for (const FlowId f : cross) CHECK(shares.rate(f) == 50);
    shares.remove(long_flow);
    shares.solve();
    for (const FlowId f : cross) CHECK(shares.rate(f) == 100);
}

TEST_CASE("a flow that uses a link twice over gets half of what is left") {
    MaxMin shares({90});
    const FlowId twice = shares.add(std::vector<Usage>{{0, 2}});
    const FlowId once = shares.add(std::vector<Usage>{{0, 1}});
    shares.solve();
    CHECK(shares.rate(twice) == 30);
    CHECK(shares.rate(once) == 30);
}

TEST_CASE("after any coming and going, rates are those of the definition") {
    RandomStream random(3, 0, "max_min");
    for (int round = 0; round < 60; ++round) {
        const std::size_t links = 2 + random.below(20);
        std::vector<double> capacity;
        for (std::size_t l = 0; l < links; ++l)
            capacity.push_back(random.below(8) == 0 ? 0 : 1 + random.uniform() * 9);
        MaxMin shares(capacity);
        std::vector<std::vector<Usage>> flows;
        std::vector<FlowId> ids;
        for (int change = 0; change < 40; ++change) {
            if (!ids.empty() && random.below(3) == 0) {
                const std::size_t i = random.below(ids.size());
                shares.remove(ids[i]);
                ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(i));
                flows.erase(flows.begin() + static_cast<std::ptrdiff_t>(i));
            } else {
                std::set<LinkId> on;
                for (std::uint64_t n = 1 + random.below(4); n > 0; --n)
                    on.insert(static_cast<LinkId>(random.below(links)));
                std::vector<Usage> usages;
                for (const LinkId l : on) usages.push_back({l, random.below(2) ? 1.0F : 0.25F});
                flows.push_back(usages);
                ids.push_back(shares.add(usages));
            }
            if (random.below(2)) continue;
            shares.solve();
            std::vector<double> rates;
            for (const FlowId f : ids) rates.push_back(shares.rate(f));
            check_fair(capacity, flows, rates);
        }
    }
}

TEST_CASE("a transfer ends when its bytes are through, not earlier, and followers wait for it") {
    FlowSimulation simulation({50e9, 50e9});
    const auto transfer = [](std::vector<Usage> usages, double bytes, std::int64_t start_ns,
                             std::int64_t after) {
        Transfer t;
        t.usages = std::move(usages);
        t.bytes = bytes;
        t.start = std::chrono::nanoseconds(start_ns);
        t.latency = std::chrono::microseconds(1);
        t.after = after;
        return t;
    };
    const auto a = simulation.add(transfer({{0}}, 50e3, 0, -1));       // 1 us alone
    const auto b = simulation.add(transfer({{0}, {1}}, 50e3, 0, -1));  // they share link 0
    const auto c = simulation.add(transfer({{1}}, 50e3, 0, static_cast<std::int64_t>(b)));
    const auto d = simulation.add(transfer({}, 0, 10, -1));
    Transfer joins = transfer({{0}}, 50e3, 0, static_cast<std::int64_t>(c));
    joins.behind = static_cast<std::int64_t>(a);
    const auto e = simulation.add(joins);
    std::swap(joins.after, joins.behind);
    joins.usages = {{1}};
    const auto f = simulation.add(joins);
    simulation.run();
    CHECK(simulation.end(a) == std::chrono::microseconds(3));
    CHECK(simulation.end(b) == std::chrono::microseconds(3));
    CHECK(simulation.end(c) == std::chrono::microseconds(5));
    CHECK(simulation.end(d) == std::chrono::nanoseconds(1010));
    CHECK(simulation.end(e) == std::chrono::microseconds(7));  // behind c, the later of its two
    CHECK(simulation.end(f) ==
          std::chrono::microseconds(6));  // its first byte right behind c's last
}

TEST_CASE("a transfer over a dead link never ends, and neither does what waits for it") {
    FlowSimulation simulation({0, 50e9});
    Transfer dead;
    dead.usages = {{0}};
    dead.bytes = 1;
    const auto stuck = simulation.add(dead);
    Transfer follower;
    follower.usages = {{1}};
    follower.bytes = 50e3;
    const auto free = simulation.add(follower);
    follower.after = static_cast<std::int64_t>(stuck);
    const auto waits = simulation.add(follower);
    simulation.run();
    CHECK(simulation.end(stuck) == FlowSimulation::never);
    CHECK(simulation.end(waits) == FlowSimulation::never);
    CHECK(simulation.end(free) == std::chrono::microseconds(1));
}

TEST_CASE("a rack's NICs at the same place in each tray are on one rail") {
    TopologySpec spec = spec_of("rail_optimized", 8, 72, 64);
    spec.rails = 4;
    const Topology racks = built(spec);
    const auto leaf_of = [&](std::int64_t node, std::int64_t nic) {
        return racks.links()[racks.up_links(racks.nic(node, nic))[0]].to;
    };
    CHECK(leaf_of(0, 0) == leaf_of(0, 68));  // 18 trays
    CHECK(leaf_of(0, 0) != leaf_of(0, 1));
    CHECK(leaf_of(0, 0) != leaf_of(1, 0));  // a leaf has room for 32
    CHECK(racks.down_links(leaf_of(0, 0)).size() == 18);
}
