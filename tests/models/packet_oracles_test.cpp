// The packet engine against others' figures: ns-3's RDMA model, closed forms, fluid models, testbeds.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/rng.h"
#include "tests/laws/oracles/dcqcn_runs.h"
#include "tests/laws/oracles/network_runs.h"
#include "tests/laws/oracles/ns3_runs.h"
#include "tests/models/topologies.h"

using namespace railyard;

namespace {

// 32 of 128 NICs send 4 MiB to the first, in a three-tier fat-tree of 400 Gbit/s: last and mean end, us.
std::pair<double, double> fat_tree_incast(const char* cc, std::uint64_t seed) {
    const Topology topology = built(uniform_topology("fat_tree", 128, 8, gbit(400), 3));
    Ns3Network r(Ns3Control::of(cc).value(), 32'000'000);
    r.spec.payload_bytes = 4096;
    r.marked_as_gbit = 100;
    r.network = PacketNetwork::of(topology, r.buffer_bytes);
    for (PacketLink& l : r.network.links) l.latency = Picoseconds(us);
    Router router(topology, {Routing::ecmp});
    RandomStream random(1, 0, "test/incast");
    std::vector<VertexId> from;
    while (from.size() < 32) {
        const auto nic = static_cast<VertexId>(1 + random.below(127));
        if (std::find(from.begin(), from.end(), nic) == from.end()) from.push_back(nic);
    }
    for (const VertexId nic : from) {
        std::vector<Usage> usages;
        router.route(nic, 0, 0, usages);
        std::vector<LinkId> path;
        for (const Usage& u : usages) path.push_back(u.link);
        r.flow(path, 4 << 20);
    }
    PacketEngine e = r.engine(seed);
    REQUIRE(e.run(Picoseconds(100'000 * us)));
    CHECK(e.totals().lost_lossless == 0);
    CHECK(e.audit() == "");
    std::vector<double> fct;
    for (std::size_t f = 0; f < r.flows.size(); ++f) {
        fct.push_back(static_cast<double>(e.end(f).count()) * 1e-6 - 1000);
    }
    return {*std::max_element(fct.begin(), fct.end()), mean(fct)};
}

}  // namespace

TEST_CASE("32 to 1 in a fat-tree of 128 ends when it does in ns-3") {
    // ns-3 with the HPCC authors' model: last flow and mean, us. Its ECN thresholds at 400 Gbit/s are not
    // recorded; README.md has why they must have been those of 100 Gbit/s.
    struct Published {
        const char* cc;
        double last_us;
        double mean_us;
        int draws;
    };
    for (const Published& published :
         {Published{"pfc_only_no_cc", 2725, 2095, 1}, Published{"hpcc_defaults", 2918, 2384, 1},
          Published{"dcqcn_hpccrepo_defaults", 4528, 3677, 5}}) {
        CAPTURE(published.cc);
        double last_us = 0;
        double mean_us = 0;
        for (int seed = 1; seed <= published.draws; ++seed) {
            const auto [last, all] =
                fat_tree_incast(published.cc, static_cast<std::uint64_t>(seed));
            last_us += last / published.draws;
            mean_us += all / published.draws;
        }
        CHECK(last_us == doctest::Approx(published.last_us).epsilon(0.10));
        CHECK(mean_us == doctest::Approx(published.mean_us).epsilon(0.10));
    }
}

// Tables 42, 43, 44 and 73 are held by tests/validation/run.py, through the program of tests/laws/oracles.

TEST_CASE("DCQCN gives a victim of PFC its rate back (figure 9 of its paper)") {
    CHECK(victim_rate(false, 0) == doctest::Approx(10).epsilon(0.05));
    CHECK(victim_rate(true, 0) == doctest::Approx(20).epsilon(0.15));
}

TEST_CASE("a burst to another port pauses a bystander, and costs it half its rate for long") {
    const BurstRun run = burst_past_bystander(1);
    CHECK(run.bystander_before == doctest::Approx(20).epsilon(0.15));
    CHECK(run.pauses_before == 0);
    CHECK(run.paused_ms > 1);  // as long as the burst lasts
    CHECK(run.bystander_least < 0.5 * run.bystander_before);
    CHECK(run.underused_ms > 10);
}

TEST_CASE("DCQCN settles where its fluid model says") {
    // Zhu et al., CoNEXT 2016, for small p: cuts and increases balance where
    // p^3 = R_AI N^2 / (tau C^2) (1/B + N/(T C))^2, in packets and seconds.
    const auto marked_share = [](const FluidPoint& point) {
        const double packet_bits = 8 * static_cast<double>(point.packet_bytes);
        const double of_line = point.flows * packet_bits / (static_cast<double>(point.gbits) * 1e9);
        const double counted =
            static_cast<double>(point.packet_bytes) / static_cast<double>(point.byte_counter);
        const auto s = [](Picoseconds time) { return static_cast<double>(time.count()) * 1e-12; };
        return std::cbrt(point.additive_bits_per_s / packet_bits / s(point.cnp_interval) * of_line *
                         of_line * std::pow(counted + of_line / s(point.increase_timer), 2));
    };
    for (const auto& [flows, gbits] : {std::pair{4, 40}, {10, 40}, {16, 40}, {16, 100}}) {
        CAPTURE(flows);
        CAPTURE(gbits);
        FluidPoint point;
        point.flows = flows;
        point.gbits = gbits;
        const FluidRun run = settle(point);
        CHECK(run.marked_share == doctest::Approx(marked_share(point)).epsilon(0.12));
        for (const double rate : run.rates) {
            CHECK(rate == doctest::Approx(static_cast<double>(gbits) / flows).epsilon(0.20));
        }
    }
}

TEST_CASE("what the worst traffic holds beyond XOFF is there and back, and two packets") {
    for (const std::int64_t mtu : {1500, 4096, 9100}) {
        for (const std::int64_t ns : {50, 500, 5000}) {
            CAPTURE(mtu);
            CAPTURE(ns);
            CHECK(headroom_needed(gbit(400), Picoseconds(1000 * ns), mtu) == 2 * ns * 50 + 2 * mtu);
        }
    }
}

TEST_CASE("a queue of a lossy class takes what it has room for") {
    PacketSpec spec;
    spec.classes = {{FlowControl::none, false}, {FlowControl::none, false}};
    spec.ack_class = -1;
    spec.lossy_queue_bytes = 10'000;
    constexpr int senders = 8;
    const Star star(senders, 16'000'000, gbit(400));
    PacketEngine e(star.network, spec);
    for (std::size_t i = 0; i < senders; ++i) e.add(star.flow(i, 4096));
    CHECK_FALSE(e.run(Picoseconds(100 * us)));
    // One goes out at once, two wait.
    CHECK(e.totals().lost_lossy == senders - 3);
    CHECK(e.queue_bytes_max(star.down, 1) == 2 * (4096 + 58));
    CHECK(e.audit() == "");
}
