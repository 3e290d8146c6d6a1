#include <doctest/doctest.h>

#include "sim/rng.h"
#include "tests/laws/oracles/ns3_runs.h"

using namespace railyard;

// ---- the clock ----

TEST_CASE("the timing wheel and the ladder queue agree on every event") {
    struct Number {
        std::uint32_t value;
    };
    for (const int shift : {4, 9}) {
        const int bits = shift == 4 ? 10 : 6;
        TimingWheel wheel(shift, bits);
        EventQueue<Number> ladder;
        RandomStream random(1, 0, "test/wheel");
        std::int64_t now = 0;
        std::uint32_t number = 0;
        for (int i = 0; i < 100'000; ++i) {
            // Mostly near, sometimes far, sometimes at once; many ties.
            const std::uint64_t reach = random.below(10) == 0 ? 1'000'000 : 700;
            for (std::uint64_t n = random.below(3); n-- > 0;) {
                const auto at = now + static_cast<std::int64_t>(random.below(reach));
                wheel.push(at, ++number, 3);
                ladder.push(at, {number});
            }
            TimingWheel::Event ours{};
            EventQueue<Number>::Event theirs{};
            // Looking no further than a moment must not disturb what comes.
            std::int64_t next = 0;
            const bool any = ladder.next_time(next);
            const std::int64_t until = now + static_cast<std::int64_t>(random.below(1000));
            REQUIRE(wheel.pop(until, ours) == (any && next <= until));
            if (!any || next > until) {
                now = until;
                continue;
            }
            ladder.pop(theirs);
            REQUIRE(ours.time == theirs.time);
            REQUIRE(ours.id == theirs.payload.value);
            now = ours.time;
        }
    }
}

// ---- one flow ----

TEST_CASE("a flow alone takes serialisation and propagation, to the picosecond") {
    const Chain chain({gbit(400), gbit(400), gbit(100), gbit(400)});
    PacketSpec spec;
    PacketEngine e(chain.network, spec);
    e.add(chain.flow(10 * 4096));
    REQUIRE(e.run(PacketEngine::never));
    // The slow link sends all of it; the first packet has crossed two fast ones before, the last one crosses
    // another after; then an acknowledgement goes back over all four.
    const std::int64_t full = 4096 + 58;
    const std::int64_t there = 2 * full * 20 + 10 * full * 80 + full * 20 + 4 * us;
    const std::int64_t back = 64 * (3 * 20 + 80) + 4 * us;
    CHECK(e.end(0).count() == there + back);
    CHECK(e.received_bytes(0) == 10 * 4096);
    CHECK(e.totals().data_hops == 10 * 4);
    CHECK(e.totals().ack_hops == 10 * 4);
}

TEST_CASE("cut-through saves all but a header at each switch that is not slower on its way in") {
    const auto end = [](bool cut_through, const std::vector<std::int64_t>& gbits) {
        std::vector<Bandwidth> rates;
        for (const std::int64_t n : gbits) rates.push_back(gbit(n));
        const Chain chain(rates);
        PacketSpec spec;
        spec.cut_through = cut_through;
        spec.ack_class = -1;
        PacketEngine e(chain.network, spec);
        e.add(chain.flow(4096));
        REQUIRE(e.run(PacketEngine::never));
        return e.end(0).count();
    };
    CHECK(end(false, {400, 400, 400}) - end(true, {400, 400, 400}) == 2 * 4096 * 20);
    CHECK(end(false, {100, 400, 400}) - end(true, {100, 400, 400}) == 4096 * 20);
}

TEST_CASE("acknowledgements come every so many packets, and after the last") {
    const Chain chain({gbit(400), gbit(400)});
    PacketSpec spec;
    spec.ack_every = 4;
    PacketEngine e(chain.network, spec);
    e.add(chain.flow(10 * 4096));
    REQUIRE(e.run(PacketEngine::never));
    CHECK(e.totals().ack_hops == 3 * 2);
}

TEST_CASE("a flow starts when the one that it waits for has ended") {
    const Chain chain({gbit(400), gbit(400)});
    PacketEngine e(chain.network, {});
    e.add(chain.flow(40960));
    PacketFlow second = chain.flow(40960);
    second.after = 0;
    e.add(second);
    REQUIRE(e.run(PacketEngine::never));
    CHECK(e.end(1) == 2 * e.end(0));
}

TEST_CASE("queue pairs of a NIC take turns, packet by packet") {
    constexpr std::int64_t count = 6;
    constexpr std::int64_t packet_ps = (4096 + 58) * 20;
    PlainNetwork network(gbit(400));
    const VertexId sw = network.add_switch(16'000'000);
    const LinkId up = network.up(sw);
    PacketSpec spec;
    spec.ack_class = -1;
    std::vector<PacketFlow> flows(count);
    for (PacketFlow& f : flows) f = flow_of({up, network.down(sw)}, 3 * 4096);
    PacketEngine e(network, spec);
    for (const PacketFlow& f : flows) e.add(f);
    REQUIRE(e.run(PacketEngine::never));
    // The first sends once before the others are there: 0, 0 to 5, 0 to 5, 1 to 5.
    for (std::size_t f = 1; f < flows.size(); ++f) {
        CHECK((e.end(f) - e.end(0)).count() ==
              (count - 1 + static_cast<std::int64_t>(f)) * packet_ps);
    }
}

// ---- PFC ----

TEST_CASE("the headroom formula gives the shipped SN5600 table to the byte") {
    StandaloneCatalogue c;
    int rows = 0;
    for (const std::string& name : Catalogue::names("headroom")) {
        if (c.catalogue.text("headroom", name, "switch") != "sn5600_spectrum4") continue;
        CAPTURE(name);
        const Bandwidth speed = c.catalogue.bandwidth("headroom", name, "speed");
        const Metres cable = c.catalogue.metres("headroom", name, "cable_length");
        const Headroom h =
            sonic_headroom(c.catalogue, "sn5600_spectrum4", speed, cable, speed == gbit(800));
        CHECK(h.xon == c.catalogue.data("headroom", name, "xon"));
        CHECK(h.xoff == c.catalogue.data("headroom", name, "xoff"));
        ++rows;
    }
    CHECK(rows == 12);
}

TEST_CASE("equally hot ports settle at alpha B / (1 + alpha N)") {
    for (const int n : {2, 4, 8}) {
        for (const double alpha : {0.125, 1.0}) {
            CAPTURE(n);
            CAPTURE(alpha);
            const Star star(n, 16'000'000, gbit(400), 200'000);
            PacketSpec spec;
            spec.buffer.alpha = alpha;
            PacketEngine e(star.network, spec);
            for (const LinkId up : star.ups) e.add(flow_of({up, star.down}, 1 << 30));
            e.storm(star.down, 1, {}, PacketEngine::never);
            CHECK_FALSE(e.run(Picoseconds(2000 * us)));
            const auto ports = static_cast<double>(n + 1);
            const double pool = 16e6 - ports * (200e3 + 2 * 4096);
            const double settled = alpha * pool / (1 + alpha * n);
            for (const LinkId up : star.ups) {
                CHECK(static_cast<double>(e.ingress(up, 1).bytes - 4096) ==
                      doctest::Approx(settled).epsilon(0.01));
                CHECK(e.paused(up, 1));
            }
            CHECK(e.totals().lost_lossless == 0);
            CHECK(e.audit() == "");
        }
    }
}

TEST_CASE("a pause spreads against the traffic, a hop in threshold / rate + delay") {
    Chain chain({gbit(100), gbit(100), gbit(100), gbit(100)});
    PacketSpec spec;
    spec.buffer.alpha = 0.125;
    PacketEngine e(chain.network, spec);
    e.add(chain.flow());
    e.storm(chain.path[3], 1, Picoseconds(100 * us), PacketEngine::never);
    // Alone it takes x = alpha (pool - x) of the pool, and its reserve.
    const double pool = 16e6 - 2 * (200e3 + 2 * 4096);
    const double share = pool * spec.buffer.alpha / (1 + spec.buffer.alpha) + 4096;
    const double hop_us = share / 12.5e3 + 1;
    double expected_us = 100 + 1;  // the storm's first frame
    for (std::size_t hop = 3; hop-- > 0;) {
        expected_us += hop_us;
        const auto before = Picoseconds(static_cast<std::int64_t>(0.99 * expected_us * us));
        const auto after = Picoseconds(static_cast<std::int64_t>(1.01 * expected_us * us));
        e.run(before);
        CHECK_FALSE(e.paused(chain.path[hop], 1));
        e.run(after);
        CHECK(e.paused(chain.path[hop], 1));
    }
    CHECK(e.totals().lost_lossless == 0);
    // A pause is renewed for as long as it must last, and time in it is counted.
    e.run(Picoseconds(10'000 * us));
    CHECK(e.paused(chain.path[0], 1));
    CHECK(e.pauses(chain.path[0], 1) == 1);
    CHECK(e.paused_time(chain.path[3], 1) > Picoseconds(9'800 * us));
    CHECK(e.audit() == "");
}

TEST_CASE("XON ends a pause") {
    Chain chain({gbit(100), gbit(100)});
    PacketEngine e(chain.network, {});
    e.add(chain.flow());
    e.storm(chain.path[1], 1, {}, Picoseconds(50 * us));
    e.run(Picoseconds(40 * us));
    CHECK(e.paused(chain.path[1], 1));
    e.run(Picoseconds(60 * us));
    CHECK_FALSE(e.paused(chain.path[1], 1));
    // Both frames take their 64 bytes and a microsecond.
    CHECK(e.paused_time(chain.path[1], 1) == Picoseconds(50 * us));
}

TEST_CASE(
    "of storms that overlap the last to end lets the link go on, with pauses as with credits") {
    for (const FlowControl control : {FlowControl::pfc, FlowControl::credits}) {
        CAPTURE(static_cast<int>(control));
        Chain chain({gbit(100), gbit(100)});
        for (PacketLink& l : chain.network.links) l.vl_buffer_bytes = 64 * 1024;
        PacketSpec spec;
        spec.classes = {{FlowControl::none, false, 0}, {control, true, 1}};
        PacketEngine e(chain.network, spec);
        e.add(chain.flow());
        const LinkId down = chain.path[1];
        e.storm(down, 1, Picoseconds(10 * us), Picoseconds(100 * us));
        e.storm(down, 1, Picoseconds(20 * us), Picoseconds(50 * us));
        e.storm(down, 1, Picoseconds(30 * us), Picoseconds(200 * us));
        for (const int at : {60, 110, 190}) {
            e.run(Picoseconds(at * us));
            CHECK(e.paused(down, 1));
        }
        e.run(Picoseconds(210 * us));
        CHECK_FALSE(e.paused(down, 1));
        CHECK(e.audit() == "");
    }
}

TEST_CASE("a receive buffer that has emptied ends no storm of its NIC") {
    Chain chain({gbit(100), gbit(100)});
    PacketEngine e(chain.network, {});
    e.add(chain.flow());
    const LinkId down = chain.path[1];
    e.slow_receiver(down, gbit(50), {}, Picoseconds(1000 * us));
    e.run(Picoseconds(50 * us));
    CHECK(e.paused(down, 1));  // by the buffer
    e.storm(down, 1, Picoseconds(55 * us), Picoseconds(500 * us));
    e.run(Picoseconds(490 * us));
    CHECK(e.paused(down, 1));
    e.run(Picoseconds(510 * us));
    CHECK_FALSE(e.paused(down, 1));
}

TEST_CASE("no headroom, no losslessness; and what was lost is sent again") {
    for (const std::int64_t headroom : {0, 2000, 200'000}) {
        CAPTURE(headroom);
        const Star star(2, 1'000'000, gbit(100), headroom);
        PacketSpec spec;
        spec.retransmission_timeout = Picoseconds(1000 * us);
        PacketEngine e(star.network, spec);
        for (std::size_t i = 0; i < 2; ++i) e.add(star.flow(i, 4'000'000));
        REQUIRE(e.run(Picoseconds(100'000 * us)));
        CHECK((e.totals().lost_lossless > 0) == (headroom < 200'000));
        CHECK((e.totals().retransmitted > 0) == (headroom < 200'000));
        for (std::size_t f = 0; f < 2; ++f) CHECK(e.received_bytes(f) == 4'000'000);
        CHECK(e.audit() == "");
    }
}

// ---- storms and the watchdog ----

TEST_CASE(
    "the watchdog needs the whole of its detection time stuck, and the whole of its rest quiet") {
    WatchdogSpec spec;
    spec.poll = Picoseconds(100);
    spec.detection = Picoseconds(200);
    spec.restoration = Picoseconds(200);
    spec.action = WatchdogAction::drop;
    PfcWatchdog dog;
    using Change = PfcWatchdog::Change;
    Picoseconds paused{};
    const auto poll = [&](bool waiting, std::int64_t sent, std::int64_t paused_ps) {
        paused += Picoseconds(paused_ps);
        return dog.poll(spec, {waiting, sent, paused});
    };
    CHECK(poll(true, 0, 100) == Change::none);
    CHECK(poll(true, 1, 100) == Change::none);  // one packet got out
    CHECK(poll(true, 1, 100) == Change::none);
    CHECK(poll(true, 1, 99) == Change::none);  // not more than 99 %
    CHECK(poll(true, 1, 100) == Change::none);
    CHECK(poll(false, 1, 100) == Change::none);  // nothing waits
    CHECK(poll(true, 1, 100) == Change::none);
    CHECK(poll(true, 1, 100) == Change::detected);
    CHECK(dog.stormed());
    CHECK(poll(false, 1, 0) == Change::none);
    CHECK(poll(false, 1, 1) == Change::none);
    CHECK(poll(false, 1, 0) == Change::none);
    CHECK(poll(false, 1, 0) == Change::restored);
    CHECK_FALSE(dog.stormed());
}

TEST_CASE("the watchdog's profiles are the catalogue's; SONiC's grow with the ports") {
    StandaloneCatalogue c;
    using std::chrono::milliseconds;
    CHECK(read_watchdog(c.catalogue, "sonic", 32).detection == milliseconds(200));
    CHECK(read_watchdog(c.catalogue, "sonic", 64).detection == milliseconds(400));
    CHECK(read_watchdog(c.catalogue, "cumulus", 64).detection == milliseconds(300));
    CHECK(read_watchdog(c.catalogue, "cisco_nxos", 64).restoration == milliseconds(1000));
    CHECK(read_watchdog(c.catalogue, "seed_100ms", 64).detection == milliseconds(100));
    CHECK(read_watchdog(c.catalogue, "off", 64).action == WatchdogAction::none);
}

TEST_CASE("one NIC that pauses for ever freezes the others until the watchdog cuts it off") {
    // A and B send over one link between two switches; B's receiver storms. A is the victim.
    const auto run = [](WatchdogAction action) {
        TwoSwitches network(4'000'000, gbit(400), 200'000);
        const LinkId to_victim = network.down(network.right);
        const LinkId to_storm = network.down(network.right);
        const LinkId first = network.up(network.left);
        const LinkId second = network.up(network.left);
        PacketSpec spec;
        spec.retransmission_timeout = Picoseconds(4000 * us);
        spec.watchdog.action = action;
        spec.watchdog.poll = spec.watchdog.detection = Picoseconds(2000 * us);
        spec.watchdog.restoration = Picoseconds(2000 * us);
        PacketEngine e(network, spec);
        e.add(flow_of({first, network.middle, to_victim}));
        e.add(flow_of({second, network.middle, to_storm}));
        e.storm(to_storm, 1, Picoseconds(100 * us), PacketEngine::never);
        e.run(Picoseconds(1500 * us));
        const std::int64_t frozen = e.received_bytes(0);
        CHECK(e.paused(network.middle, 1));
        CHECK(e.paused(first, 1));
        e.run(Picoseconds(1900 * us));
        CHECK(e.received_bytes(0) == frozen);
        e.run(Picoseconds(6100 * us));
        CHECK(e.stormed(to_storm, 1) == (action != WatchdogAction::none));
        e.run(Picoseconds(50'000 * us));
        CHECK(e.audit() == "");
        CHECK(e.totals().lost_lossless == 0);
        CHECK(e.failed(1));  // whatever the switch sends it, the NIC takes nothing
        const bool loses = action == WatchdogAction::drop || action == WatchdogAction::forward;
        CHECK((e.totals().lost_to_watchdog > 0) == loses);
        return static_cast<double>(e.received_bytes(0) - frozen) * 8 / (48'100 * 1e3);
    };
    CHECK(run(WatchdogAction::none) == 0);
    CHECK(run(WatchdogAction::alert) == 0);
    CHECK(run(WatchdogAction::drop) > 180);
    CHECK(run(WatchdogAction::forward) > 180);
}

TEST_CASE("what a watchdog sends past a pause and finds no room is its own loss, not its class's") {
    // Two senders, a switch, and one whose watchdog ignores the pauses of a switch that is full.
    TwoSwitches network(4'000'000, gbit(400), 200'000);
    network.buffer_bytes[network.right] = 1'000'000;
    const LinkId down = network.down(network.right);
    const LinkId up = network.up(network.left);
    PacketSpec spec;
    spec.retransmission_timeout = Picoseconds(4000 * us);
    spec.watchdog.action = WatchdogAction::forward;
    spec.watchdog.polls_together = true;
    spec.watchdog.poll = spec.watchdog.detection = Picoseconds(200 * us);
    spec.watchdog.restoration = Picoseconds(200 * us);
    PacketEngine e(network, spec);
    e.add(flow_of({up, network.middle, down}, 1 << 30));
    // It takes less than a packet in a poll: both queues count as stuck.
    e.slow_receiver(down, Bandwidth::bits_per_second(10'000'000), {}, PacketEngine::never);
    e.run(Picoseconds(20'000 * us));
    CHECK(e.totals().storms_detected >= 2);
    CHECK(e.totals().lost_to_watchdog > 0);
    CHECK(e.totals().lost_lossless == 0);
    CHECK(e.audit() == "");
}

// ---- all of it ----

TEST_CASE("same seed, same bytes; another seed marks other packets") {
    const auto digest = [](std::uint64_t seed) {
        Ns3Network r(Ns3Control::of("dcqcn").value(), 32'000'000);
        const VertexId sw = r.switch_();
        const LinkId down = r.cable(sw, r.nic());
        for (int i = 0; i < 4; ++i) r.flow({r.cable(r.nic(), sw), down}, 1'000'000);
        PacketEngine e = r.engine(seed);
        REQUIRE(e.run(PacketEngine::never));
        return e.digest();
    };
    CHECK(digest(1) == digest(1));
    CHECK(digest(1) != digest(2));
}

TEST_CASE("looking at a run does not change it, and it holds its books at every microsecond") {
    Ns3Network r(Ns3Control::of("pfc_only").value(), 4'000'000);
    const VertexId sw = r.switch_();
    const LinkId down = r.cable(sw, r.nic());
    for (int i = 0; i < 4; ++i) r.flow({r.cable(r.nic(), sw), down}, 1'000'000);
    PacketEngine whole = r.engine();
    REQUIRE(whole.run(PacketEngine::never));
    PacketEngine stepped = r.engine();
    std::int64_t t = 1000;
    while (!stepped.run(Picoseconds(++t * us))) REQUIRE(stepped.audit() == "");
    CHECK(stepped.digest() == whole.digest());
    CHECK(whole.totals().pause_frames > 0);
}

TEST_CASE("each of the catalogue's DCQCN sets shares a link among four and keeps it busy") {
    for (const char* set : {"dcqcn_paper", "dcqcn_nvidia_default", "dcqcn_hpcc_repo_paper",
                            "dcqcn_hpcc_repo_vendor"}) {
        CAPTURE(set);
        StandaloneCatalogue c;
        Star star(4, 32'000'000, gbit(40), 100'000);
        star.network.links[star.down].ecn = {
            c.catalogue.data("ecn", "dcqcn_paper_40g", "kmin").count(),
            c.catalogue.data("ecn", "dcqcn_paper_40g", "kmax").count(),
            c.catalogue.number("ecn", "dcqcn_paper_40g", "pmax")};
        PacketSpec spec;
        spec.payload_bytes = 1000;
        if (c.catalogue.has("dcqcn", set, "cnp_interval")) {
            spec.cnp_interval = c.catalogue.time("dcqcn", set, "cnp_interval");
        }
        PacketEngine e(star.network, spec, dcqcn(read_dcqcn(c.catalogue, set, gbit(40))));
        for (std::size_t i = 0; i < 4; ++i) e.add(star.flow(i));
        WatchedQueue queue;
        const auto rates = goodputs(e, 4, 50'000, 100'000, star.down, queue);
        CHECK(mean(rates) > 0.95 * 10 / 1.058);
        for (const double rate : rates) CHECK(rate == doctest::Approx(mean(rates)).epsilon(0.20));
    }
}

TEST_CASE("a run stops at its budget of events, and goes on from there") {
    const Chain chain({gbit(400), gbit(400)});
    PacketEngine e(chain.network, {});
    e.add(chain.flow(40960));
    PacketEngine whole(chain.network, {});
    whole.add(chain.flow(40960));
    REQUIRE(whole.run(PacketEngine::never));
    CHECK_FALSE(e.run(PacketEngine::never, 7));
    CHECK(e.totals().events == 7);
    CHECK(e.run(PacketEngine::never));
    CHECK(e.digest() == whole.digest());
}
