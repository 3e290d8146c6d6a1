// The packet studies that ship, in the small: what each one's header claims.

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "models/campaign/store_traffic.h"
#include "tests/models/windows.h"

using namespace railyard;

namespace {

struct Traffic {
    std::int64_t flows = 0;
    std::int64_t failed = 0;
    Picoseconds last{};
    double mean_us = 0;
};

struct Outcome {
    WindowResult network;          // the compute network's
    std::vector<Traffic> traffic;  // in the order of [[window.traffic]]
    std::int64_t pauses = 0;
};

Outcome run_study(const char* name, std::vector<std::string> settings) {
    ScenarioChanges changes;
    changes.must_run = false;
    changes.packets = true;
    changes.settings = std::move(settings);
    const Scenario s = load_scenario_file(
        std::string(RAILYARD_ROOT "/scenarios/studies/") + name + ".toml", changes);
    Outcome out;
    out.traffic.resize(s.window.traffic.size());
    for (const NetworkWindow& window : packet_windows(s)) {
        const WindowResult r = run_to_its_end(s, window);
        for (std::size_t f = 0; f < window.traffic.size(); ++f) {
            Traffic& t = out.traffic[window.traffic[f]];
            ++t.flows;
            t.failed += r.failed[f];
            if (r.ends[f] == PacketEngine::never) continue;
            t.last = std::max(t.last, r.ends[f]);
            t.mean_us += 1e-6 * static_cast<double>((r.ends[f] - r.begun[f]).count());
        }
        if (window.network->name == "compute") out.network = r;
    }
    for (Traffic& t : out.traffic) t.mean_us /= static_cast<double>(t.flows);
    for (const WindowLink& link : out.network.links) out.pauses += link.pauses;
    return out;
}

using std::chrono::milliseconds;

constexpr const char* no_storm = "failures.storm=[]";

}  // namespace

TEST_CASE(
    "study: without a watchdog a NIC that pauses freezes the fabric, with one the rest goes on") {
    const auto arm = [](const char* watchdog) {
        return run_study("pfc_storm",
                         {no_storm, std::string("fabric.compute.watchdog.") + watchdog});
    };
    const Outcome none = arm("action=none");
    CHECK(none.network.frozen_after < Picoseconds(milliseconds(1)));
    CHECK(none.network.ending == WindowEnding::stuck);  // some never move again
    CHECK(none.traffic[1].failed == none.traffic[1].flows);
    CHECK(none.traffic[0].failed > 1);
    const Outcome quick = arm("detection=100 ms");
    const Outcome slow = arm("detection=400 ms");
    for (const Outcome* each : {&quick, &slow}) {
        CHECK(each->network.ending == WindowEnding::resolved);
        CHECK(each->traffic[0].failed <= 1);  // the one that sends to that NIC
        CHECK(each->traffic[1].failed == each->traffic[1].flows);
    }
    CHECK(quick.traffic[0].last > Picoseconds(milliseconds(100)));
    CHECK(slow.traffic[0].last > 3 * quick.traffic[0].last);
}

TEST_CASE("study: the watchdog's losses cost more than a storm of a second") {
    const auto last = [](const char* watchdog) {
        const Outcome o =
            run_study("pfc_storm", {no_storm, "window.fault.0.duration=1 s",
                                    std::string("fabric.compute.watchdog.") + watchdog});
        CHECK(o.network.failures == 0);
        return o.traffic[1].last;
    };
    CHECK(last("action=none") < Picoseconds(milliseconds(1100)));
    CHECK(last("detection=100 ms") > Picoseconds(milliseconds(4000)));  // a retransmission timeout
}

TEST_CASE("study: the later the marks, the more pauses and the sooner the data") {
    const auto arm = [](const char* kmin, const char* kmax) {
        return run_study("ecn_threshold", {std::string("fabric.compute.ecn.kmin=") + kmin,
                                           std::string("fabric.compute.ecn.kmax=") + kmax});
    };
    const Outcome early = arm("100 kB", "400 kB");
    const Outcome middle = arm("1.6 MB", "6.4 MB");
    const Outcome late = arm("6.4 MB", "25.6 MB");
    CHECK(early.pauses < middle.pauses);
    CHECK(middle.pauses < late.pauses);
    CHECK(early.traffic[0].mean_us > middle.traffic[0].mean_us);
    CHECK(middle.traffic[0].mean_us > late.traffic[0].mean_us);
    const Outcome never = run_study("ecn_threshold", {"fabric.compute.ecn.profile=none"});
    CHECK(never.pauses > 2 * late.pauses);
    CHECK(never.traffic[0].mean_us > late.traffic[0].mean_us);  // pauses make victims
}

TEST_CASE(
    "study: InfiniBand loses nothing and spreads a tree, RoCE holds it, a hop without PFC loses") {
    const auto arm = [](std::vector<std::string> settings) {
        settings.emplace_back(no_storm);
        settings.emplace_back("window.fault=[]");
        return run_study("ib_vs_roce", std::move(settings));
    };
    const Outcome ndr = arm({"fabric.compute.kind=infiniband"});
    const Outcome roce = arm({"fabric.compute.kind=roce"});
    const Outcome unmarked = arm({"fabric.compute.switch=[{name=\"leaf-0\", ecn=false}]"});
    const Outcome bare = arm({"fabric.compute.switch=[{name=\"leaf-0\", ecn=false, pfc=false}]"});
    const Outcome tcp = arm({"fabric.compute.kind=tcp"});
    for (const Outcome* lossless : {&ndr, &roce, &unmarked}) CHECK(lossless->network.lost() == 0);
    CHECK(unmarked.pauses > 10 * roce.pauses);
    CHECK(ndr.traffic[0].mean_us > 3 * roce.traffic[0].mean_us);  // victims of the tree
    CHECK(unmarked.traffic[0].mean_us > 1.5 * roce.traffic[0].mean_us);
    CHECK(bare.network.totals.lost_lossless > 0);
    CHECK(bare.traffic[1].last > Picoseconds(milliseconds(4000)));
    CHECK(tcp.network.totals.lost_lossy > 0);
    CHECK(tcp.traffic[1].last > Picoseconds(milliseconds(200)));  // its least timeout
}

TEST_CASE(
    "study: one route that bounces is a detour, two freeze a fabric, and its circle is named") {
    const auto arm = [](std::vector<std::string> settings) {
        settings.emplace_back("fabric.compute.buffer.size=8 MB");  // full sooner
        settings.emplace_back("window.traffic.0.bytes=10 MB");
        return run_study("bounced_routes", std::move(settings));
    };
    const Outcome sound = arm({"window.route=[]"});
    const Outcome one = arm({R"(window.route.1.via=["leaf-1","spine-1","leaf-2"])"});
    const Outcome both = arm({"fabric.compute.watchdog.action=none"});
    const Outcome broken = arm({});
    for (const Outcome* ended : {&sound, &one, &broken}) {
        CHECK(ended->network.ending == WindowEnding::resolved);
        CHECK(ended->network.deadlock.empty() == (ended != &broken));
        CHECK_FALSE(ended->network.deadlock_left);
    }
    CHECK(broken.network.deadlock == both.network.deadlock);  // seen until the watchdog broke it
    CHECK(both.network.deadlock_left);
    CHECK(one.traffic[0].last > sound.traffic[0].last);
    CHECK(one.network.lost() == 0);
    CHECK(both.network.ending == WindowEnding::stuck);
    CHECK(both.network.deadlock ==
          "leaf-0 -> spine-0, spine-0 -> leaf-1, leaf-1 -> spine-1, spine-1 -> leaf-0");
    CHECK(broken.network.totals.lost_to_watchdog > 0);
    CHECK(broken.traffic[0].last > Picoseconds(milliseconds(4000)));  // a retransmission timeout
}

TEST_CASE(
    "study: a checkpoint on the compute network slows the ring, on its own network it does not") {
    const std::string apart = "storage.network=own";
    const std::string roce = "fabric.storage.kind=roce";
    const auto arm = [](std::vector<std::string> settings) {
        for (const char* smaller :
             {"cluster.nodes=8", "window.traffic.0.bytes=2 MiB", "window.traffic.0.steps=4"}) {
            settings.emplace_back(smaller);
        }
        return run_study("incast_checkpoint", std::move(settings));
    };
    const Outcome isolated = arm({apart, roce});
    const Outcome small = arm({apart, roce, "window.traffic.1.bytes=1 MiB"});
    const Outcome converged = arm({});
    const Outcome unchecked = arm({"fabric.compute.congestion.control=none"});
    CHECK(isolated.traffic[0].last == small.traffic[0].last);
    CHECK(converged.traffic[0].last > 1.1 * isolated.traffic[0].last);
    CHECK(unchecked.traffic[0].last > 1.1 * converged.traffic[0].last);
}

TEST_CASE("study: a checkpoint beside a ring, by flow within a tenth of the packets") {
    const Outcome isolated =
        run_study("incast_checkpoint", {"storage.network=own", "fabric.storage.kind=roce"});
    const Outcome converged = run_study("incast_checkpoint", {});
    REQUIRE(converged.pauses == 0);  // pauses hold up more than who fills a link

    ScenarioChanges changes;
    changes.must_run = false;
    changes.settings = {"run.fidelity=flow"};
    const Scenario s =
        load_scenario_file(RAILYARD_ROOT "/scenarios/studies/incast_checkpoint.toml", changes);
    const Topology& topology = s.networks[0].topology;
    std::vector<NodeIndex> nodes(static_cast<std::size_t>(s.nodes.nodes));
    std::iota(nodes.begin(), nodes.end(), NodeIndex{0});
    GpuGroup all(static_cast<std::size_t>(s.gpus()));
    std::iota(all.begin(), all.end(), 0);
    GpuNetwork network = gpu_network(s, Fidelity::flow, {}, false);
    network.keep_loads(true);
    TransferSpec write;
    write.cap = unlimited;
    SharedLinks links;
    links.join(
        0, std::make_shared<StepTraffic>(endless_traffic(network.ring(GpuGroups::List{all}).loads)),
        0);
    links.join(1,
               std::make_shared<StepTraffic>(
                   endless_traffic(transfer_loads(s, write, nodes, topology, {}))),
               0);
    links.settle();
    const auto us = [](Picoseconds time) { return 1e-6 * static_cast<double>(time.count()); };
    CHECK(us(converged.traffic[0].last) ==
          doctest::Approx(us(isolated.traffic[0].last) * (1 + links.longer_s(0))).epsilon(0.1));
    CHECK(links.longer_s(0) > 0);
}

TEST_CASE("study: more queue pairs beat one, and packets that choose beat them all") {
    const auto last = [](const std::string& key) {
        return run_study("ecmp_collisions",
                         {"window.traffic.0.bytes=1 MiB", "fabric.compute." + key})
            .traffic[0]
            .last;
    };
    const Picoseconds one = last("queue_pairs=1");
    const Picoseconds four = last("queue_pairs=4");
    const Picoseconds sixteen = last("queue_pairs=16");
    const Picoseconds spray = last("routing=spray");
    CHECK(four < one);
    CHECK(sixteen < four);
    CHECK(spray < sixteen);
    CHECK(last("routing=adaptive") < sixteen);
}
