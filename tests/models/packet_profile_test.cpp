#include "models/fabric/packet_profile.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "models/fabric/fair_window.h"
#include "models/fabric/materials.h"
#include "sim/config.h"
#include "tests/models/windows.h"
#include "tests/packets.h"

using namespace railyard;

TEST_CASE("switches with other cables or rates have plans of their own, equal ones share one") {
    // Two leaves and two spines of one model, with as many ports each; one cable is far longer.
    const char* text = R"(
[[switch]]
name = "leaf-a"
[[switch]]
name = "leaf-b"
[[switch]]
name = "spine-a"
tier = 2
[[switch]]
name = "spine-b"
tier = 2
[[cable]]
from = "leaf-a"
to = "spine-a"
[[cable]]
from = "leaf-b"
to = "spine-a"
[[cable]]
from = "leaf-a"
to = "spine-b"
[[cable]]
from = "leaf-b"
to = "spine-b"
length = "400 m"
[[attach]]
switch = "leaf-a"
first_node = 0
last_node = 1
[[attach]]
switch = "leaf-b"
first_node = 2
last_node = 3
)";
    Diagnostics diagnostics;
    ValueReader values(diagnostics, "plans");
    Catalogue catalogue(values, ValueChoice::corrected, nullptr);
    Document document = parse_document(text, "plans", diagnostics);
    Section top(values, &document.root, "", {});
    TopologySpec spec;
    spec.kind = "custom";
    spec.nodes = 4;
    spec.nics_per_node = 1;
    spec.nic_bandwidth = Bandwidth::bits_per_second(400'000'000'000);
    spec.propagation_s_per_m = 5e-9;
    spec.leaf = read_switch(catalogue, "sn5600_spectrum4");
    const Topology topology = Topology::read(top, spec, catalogue);
    REQUIRE(diagnostics.ok());

    PacketProfile profile;
    profile.headroom = Bytes::of(300'000);  // enough for all but the long cable
    const auto short_of_it = [&] {
        std::vector<std::string> names;
        for (const BufferPlan& plan : plan_buffers(catalogue, topology, profile)) {
            if (plan.headroom < plan.headroom_need) names.push_back(topology.name(plan.at));
        }
        return names;
    };
    CHECK(short_of_it() == std::vector<std::string>{"leaf-b", "spine-b"});
    // leaf-a and spine-a have the same worst cable each as nobody else: a plan for each kind of port counts.
    CHECK(plan_buffers(catalogue, topology, profile).size() == 4);
    profile.headroom = Bytes::of(10'000'000);
    CHECK(short_of_it().empty());
}

TEST_CASE("what a window draws follows the run's seed") {
    const std::string text = one_switch + R"(
[[window.traffic]]
kind = "ring"
bytes = "4 MB"
[[window.fault]]
kind = "bit_errors"
nic = "node-0.nic-0"
bit_error_rate = 1e-7
)";
    const auto digest = [&](const char* seed) { return run_first_window(text, {seed}).digest; };
    CHECK(digest("run.seed=1") == digest("run.seed=1"));
    CHECK(digest("run.seed=1") != digest("run.seed=2"));
}

TEST_CASE("a switch that pauses another priority loses the job's packets, its headroom lies idle") {
    const std::string text = one_switch + R"(
[fabric.compute.congestion]
control = "none"
[fabric.compute.buffer]
size = "4 MB"
[fabric.compute.pfc]
headroom = "200 kB"
[[window.traffic]]
kind = "incast"
bytes = "4 MB"
)";
    const auto run = [&](const std::vector<std::string>& settings) {
        return run_first_window(text, settings);
    };
    const auto with = [](const std::string& keys) {
        return fmt::format("fabric.compute.switch=[{{name=\"leaf-0\",{}}}]", keys);
    };
    const WindowResult sound = run({});
    CHECK(sound.totals.lost_lossless == 0);
    CHECK(sound.totals.pause_frames > 0);
    CHECK(run({with("pfc_priority=3")}).ends == sound.ends);
    CHECK(run({"fabric.compute.pfc.priority=5", with("pfc_priority=5")}).ends == sound.ends);

    const WindowResult wrong = run({with("pfc_priority=4")});
    CHECK(wrong.totals.pause_frames == 0);
    CHECK(wrong.totals.lost_lossless > 0);
    CHECK(wrong.ends != run({with("pfc=false")}).ends);
    // It does not heed a NIC that pauses either: nothing waits, nothing is detected, all is lost there.
    const WindowResult storm = run({with("pfc_priority=4"), R"(window.traffic.0.senders=1)",
                                    R"(window.fault=[{kind="pause",nic="node-0.nic-0"}])"});
    CHECK(storm.totals.storms_detected == 0);
    CHECK(storm.totals.lost_lossless > 0);
    CHECK(storm.failures == 1);
    for (const WindowLink& link : storm.links) CHECK(link.pauses == 0);
    // As a switch without PFC that has so much less: 200 kB for each of eight ports.
    CHECK(wrong.ends == run({with("pfc=false"), "fabric.compute.buffer.size=2.4 MB"}).ends);
}

TEST_CASE("HPCC keeps a cable of 10 km busy, wherever it is") {
    const WindowResult run = run_first_window(
        one_switch + R"(
[[window.traffic]]
kind = "permutation"
bytes = "64 MiB"
)",
        {"cluster.nodes=2", "cluster.nics_per_node=1", "fabric.compute.topology=custom",
         "fabric.compute.file=" RAILYARD_ROOT "/tests/models/custom_long_cable.toml",
         "fabric.compute.congestion.control=hpcc"});
    // 95 % of the line, and the way there and back. A window for the other leaf's cable takes 20 times that.
    const double bits = 8.0 * 64 * 1048576 * (4096 + 58) / 4096;
    const double alone_ms = bits / (0.95 * 400e6) + 2 * 0.05;
    for (const Picoseconds end : run.ends) {
        CHECK(static_cast<double>(end.count()) * 1e-9 == doctest::Approx(alone_ms).epsilon(0.03));
    }
}

// People may write switches and rates for which no buffer is known; none of them may break.
TEST_CASE("packets on any switch at any rate run, or are refused in words") {
    int ran = 0;
    int without_buffer = 0;
    const auto run = [&](const std::vector<std::string>& settings) {
        CAPTURE(settings);
        try {
            run_first_window(one_switch + "[fabric.compute.pfc]\npriority = 3\n", settings);
            ++ran;
        } catch (const ScenarioError& refused) {
            const std::string why = refused.what();
            CHECK(why.find(": error: fabric.compute") != std::string::npos);
            without_buffer += why.find("the catalogue knows no buffer of") != std::string::npos;
        }
    };
    for (const char* kind : {"infiniband", "roce", "tcp"}) {
        const std::string of_kind = fmt::format("fabric.compute.kind={}", kind);
        for (const char* rate :
             {"1 bit/s", "10 Mbit/s", "999 Mbit/s", "25 Gbit/s", "37 Gbit/s", "100 Gbit/s",
              "333 Gbit/s", "800 Gbit/s", "801 Gbit/s", "1600 Gbit/s", "1 Pbit/s"}) {
            run({of_kind, fmt::format("fabric.compute.nic_bandwidth={}", rate),
                 "window.time_max=1 ms"});
        }
        for (const std::string& name : Catalogue::names("switch")) {
            run({of_kind, fmt::format("fabric.compute.leaf={}", name)});
        }
    }
    CHECK(ran > 20);
    CHECK(without_buffer > 3);
}

TEST_CASE("a network that can't be cabled takes no other part of the scenario with it") {
    const std::string text = one_switch + R"(
[[window.fault]]
kind = "bit_errors"
nic = "node-0.nic-0"
bit_error_rate = 1e-9
[[window.route]]
from = "node-0.nic-0"
to = "node-1.nic-0"
via = ["leaf-0"]
)";
    for (const char* topology : {"fat_tree", "rail_optimized", "dual_plane", "single_switch"}) {
        ScenarioChanges changes;
        changes.packets = true;
        changes.settings = {"cluster.nodes=65536",
                            fmt::format("fabric.compute.topology={}", topology)};
        try {
            const Scenario s = load_scenario(text, "window.toml", changes);
            CHECK(packet_windows(s).size() == 1);
        } catch (const ScenarioError& refused) {
            CHECK(std::string(refused.what()).find("fabric.compute") != std::string::npos);
        }
    }
}

TEST_CASE("rings and all-to-alls in groups stay among nodes that follow one another") {
    const std::string text = one_switch + R"(
[[window.traffic]]
kind = "ring"
group = 2
bytes = "1 MB"
steps = 3
[[window.traffic]]
kind = "all_to_all"
group = 2
bytes = "1 MB"
)";
    ScenarioChanges changes;
    changes.packets = true;
    const Scenario s = load_scenario(text, "groups", changes);
    const NetworkWindow w = packet_windows(s)[0];
    const Topology& t = w.network->topology;
    CHECK(w.window.flows.size() == 4 * 2 * 3 + 4 * 2 * 1);
    for (const PacketFlow& flow : w.window.flows) {
        const VertexId from = t.links()[flow.path.front()].from;
        const VertexId to = t.links()[flow.path.back()].to;
        CHECK(from / 4 == to / 4);  // NICs of two nodes
        CHECK(from % 2 == to % 2);  // on their rail
    }
}

namespace {

// Two leaves and a spine, two nodes; switches of 64 ports of 800 Gbit/s. What is attached is the caller's.
struct TwoLeaves {
    Diagnostics diagnostics;
    ValueReader values{diagnostics, "own"};
    Catalogue catalogue{values, ValueChoice::corrected, nullptr};
    Topology topology;

    explicit TwoLeaves(const std::string& attached) {
        Document document = parse_document(R"(
[[switch]]
name = "a"
[[switch]]
name = "b"
[[switch]]
name = "top"
tier = 2
[[cable]]
from = "a"
to = "top"
bandwidth = "800 Gbit/s"
[[cable]]
from = "b"
to = "top"
bandwidth = "800 Gbit/s"
)" + attached,
                                           "own", diagnostics);
        Section top(values, &document.root, "", {});
        TopologySpec spec;
        spec.kind = "custom";
        spec.nodes = 2;
        spec.nic_bandwidth = gbit(400);
        spec.leaf = read_switch(catalogue, "sn5600_spectrum4");
        topology = Topology::read(top, spec, catalogue);
    }
    std::string problem() const {
        if (diagnostics.ok()) return "";
        return diagnostics.errors()[0].path + " " + diagnostics.errors()[0].message;
    }
};

const std::string at_a = "[[attach]]\nswitch = \"a\"\n";
const std::string at_b = "[[attach]]\nswitch = \"b\"\n";
const std::string by_half = "bandwidth = \"200 Gbit/s\"\n";

}  // namespace

TEST_CASE("ports of a custom network's NIC are together no faster than it") {
    CHECK(TwoLeaves(at_a).problem() == "");
    CHECK(TwoLeaves(at_a + by_half + at_b + by_half).problem() == "");
    const std::string beyond =
        ".bandwidth node-0.nic-0 has ports of 800 Gbit/s together, its line rate is 400 Gbit/s";
    CHECK(TwoLeaves(at_a + at_b).problem() == "attach[1]" + beyond);
    CHECK(TwoLeaves(at_a + "bandwidth = \"800 Gbit/s\"\n").problem() == "attach[0]" + beyond);
}

TEST_CASE("free ports are what is left for the fastest cables, however slow ones split ports") {
    TwoLeaves own(at_a + by_half + at_b + by_half);
    const Materials materials = materials_of(own.topology, own.catalogue);
    REQUIRE(materials.switches.size() == 2);
    // Each leaf has two cables of 200 Gbit/s, half of a port, and one of 800: 62 ports are left.
    CHECK(materials.switches[0].ports_used == 2 * 3);
    CHECK(materials.switches[0].ports - materials.switches[0].ports_used == 2 * 62);
    CHECK(materials.switches[1].ports_used == 2);
    CHECK(materials.switches[1].ports - materials.switches[1].ports_used == 62);
}

TEST_CASE("a slow NIC of the cluster is slow in packet windows too") {
    const std::string text = one_switch + R"(
[[window.traffic]]
kind = "ring"
bytes = "2 MB"
)";
    const auto end = [&](const std::vector<std::string>& settings) {
        return static_cast<double>(run_first_window(text, settings).end.count());
    };
    const double sound = end({});
    const double slow = end({"cluster.fault=[{part=\"nic\", node=1, index=0, speed=0.25}]"});
    CHECK(slow > 3 * sound);
    CHECK(slow < 8 * sound);
    CHECK(end({"cluster.fault=[{part=\"gpu\", node=1, index=0, speed=0.25}]"}) == sound);
}

TEST_CASE(
    "keys that the tiers of a network do not ask for are warned about, and what was built said") {
    const auto warned = [](std::vector<std::string> settings) {
        ScenarioChanges changes;
        changes.packets = true;
        settings.insert(settings.begin(), {"cluster.nics_per_node=1", "cluster.nodes=32",
                                           "fabric.compute.topology=fat_tree"});
        changes.settings = settings;
        std::string out;
        for (const Diagnostic& d : load_scenario(one_switch, "keys.toml", changes).warnings) {
            out += d.path + ": " + d.message + "\n";
        }
        return out;
    };
    const std::vector<std::pair<const char*, const char*>> keys = {{"tiers", "2"},
                                                                   {"oversubscription", "2"},
                                                                   {"switch_cable", "9 m"},
                                                                   {"spine_oversubscription", "2"},
                                                                   {"switch_optics", "dr"},
                                                                   {"spine", "sn5600_spectrum4"},
                                                                   {"core", "sn5600_spectrum4"}};
    const auto tells_of = [&](const char* key, const char* value, const std::string& more) {
        const std::string path = fmt::format("fabric.compute.{}", key);
        return warned({path + "=" + value, more}).find(path + ": has no effect") !=
               std::string::npos;
    };
    for (const auto& [key, value] : keys) {
        CAPTURE(key);
        const bool of_three =
            std::string(key) == "core" || key == std::string("spine_oversubscription");
        CHECK(tells_of(key, value, "run.seed=1"));  // one leaf
        CHECK(tells_of(key, value, "fabric.compute.nodes_per_leaf=8") == of_three);
    }
    CHECK(tells_of("switch_cable", "9 m", "fabric.compute.topology=single_switch"));
    // Eight nodes have one cable up at least.
    CHECK(warned({"fabric.compute.nodes_per_leaf=8", "fabric.compute.oversubscription=16"})
              .find("is 8 as built: the fullest leaf has 8 cables down and 1 up") !=
          std::string::npos);
    CHECK(warned({"fabric.compute.nodes_per_leaf=8", "fabric.compute.oversubscription=4"}) == "");
    // A packet that chooses by load asks for no hash.
    CHECK(tells_of("hash_seed", "3", "fabric.compute.routing=adaptive"));
    CHECK(!tells_of("hash_seed", "3", "fabric.compute.routing=ecmp"));
}

TEST_CASE("InfiniBand's packets have headers of their own, and queue pairs at most 4096 B") {
    const auto load = [](std::vector<std::string> settings) {
        ScenarioChanges changes;
        changes.packets = true;
        changes.settings = std::move(settings);
        return load_scenario(one_switch, "headers.toml", changes).networks[0].packets.spec;
    };
    CHECK(load({"fabric.compute.kind=infiniband"}).header_bytes == 26);
    CHECK(load({}).header_bytes == 58);
    for (const char* kind : {"infiniband", "roce"}) {
        const auto sent = [&](const std::string& mtu) {
            return load({fmt::format("fabric.compute.kind={}", kind), "fabric.compute.mtu=" + mtu})
                .payload_bytes;
        };
        CHECK(sent("256 B") == 256);
        CHECK(sent("4 KiB") == 4096);
        CHECK(sent("1000 B") == 1000);  // with a warning: simulations have it
        for (const char* mtu : {"8192 B", "9000 B"}) CHECK_THROWS_AS(sent(mtu), ScenarioError);
    }
    CHECK(load({"fabric.compute.kind=tcp", "fabric.compute.mtu=9000 B"}).payload_bytes == 9000);
}

TEST_CASE("a TCP connection is no faster than a core by fair shares either") {
    ScenarioChanges changes;
    changes.packets = true;
    changes.settings = {"fabric.compute.kind=tcp"};
    const Scenario s = load_scenario(one_switch + R"(
[[window.traffic]]
kind = "incast"
senders = 1
bytes = "64 MB"
)",
                                     "window.toml", changes);
    const NetworkWindow w = packet_windows(s)[0];
    StandaloneCatalogue own = s.open_catalogue();
    const PacketProfile& profile = w.network->packets;
    const auto fair = fair_ends(own.catalogue, w.network->topology, profile, w.window);
    REQUIRE(fair);
    const double stream = read_tcp(own.catalogue).stream_bits_per_s;
    const double packets = 64e6 / static_cast<double>(profile.spec.payload_bytes);
    const double bits = 8 * (64e6 + packets * static_cast<double>(profile.spec.header_bytes));
    CHECK(static_cast<double>((*fair)[0].count()) * 1e-12 ==
          doctest::Approx(bits / stream).epsilon(0.001));
    // Slow start is all that packets add.
    const WindowResult r = run_to_its_end(s, w);
    CHECK(static_cast<double>(r.ends[0].count()) ==
          doctest::Approx(static_cast<double>((*fair)[0].count())).epsilon(0.03));
}

TEST_CASE("ports that share a cage share its lane buffers, so a switch full of them has room") {
    ScenarioChanges changes;
    changes.packets = true;
    const auto lane = [&](const std::string& topology) {
        const Scenario s = load_scenario(R"(
[run]
duration = "1 h"
[cluster]
node = "dgx_h100"
nodes = 64
[fabric.compute]
kind = "infiniband"
leaf = "qm9700_ndr"
topology = ")" + topology + R"("
[job]
step.time = "1 s"
checkpoint.mode = "none"
[window]
)",
                                         "window.toml", changes);
        const ClusterNetwork& network = s.networks[0];
        const Topology& t = network.topology;
        return lane_buffer(t, network.packets, t.up_links(0)[0]).count();
    };
    CHECK(lane("rail_optimized") == 128'000);
    CHECK(lane("dual_plane") == 64'000);
}
