#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <set>

#include "models/fabric/selective_repeat.h"
#include "sim/rng.h"
#include "tests/models/topologies.h"
#include "tests/packets.h"

using namespace railyard;

// ---- selective repeat ----

TEST_CASE("a packet is lost when one sent so many places later has come, and no sooner") {
    SelectiveSender sender(64, 3);
    CHECK(sender.acknowledged(1, 0, 10) == 0);
    CHECK(sender.acknowledged(1, 2, 10) == 0);  // 1 is missing
    CHECK(sender.acknowledged(1, 3, 10) == 0);
    CHECK(sender.under_way(10) == 7);
    CHECK(sender.acknowledged(1, 4, 10) == 1);
    CHECK(sender.first_lost() == 1);
    CHECK(sender.under_way(10) == 5);
    CHECK(sender.acknowledged(1, 6, 10) == 0);  // 5 may still come
    sender.send_again(1);
    CHECK_FALSE(sender.has_lost());
    CHECK(sender.acknowledged(5, 1, 10) == 0);
    CHECK(sender.under_way(10) == 4);  // 5, 7, 8, 9
}

TEST_CASE("a packet that comes after all is not sent again") {
    SelectiveSender sender(64, 1);
    CHECK(sender.acknowledged(0, 1, 10) == 1);
    CHECK(sender.acknowledged(2, 0, 10) == 0);
    CHECK_FALSE(sender.has_lost());
}

TEST_CASE("what was sent again is lost again when something sent after it has come") {
    SelectiveSender sender(64, 1);
    CHECK(sender.acknowledged(0, 1, 10) == 1);
    sender.send_again(0);
    for (std::uint32_t n = 2; n < 10; ++n) CHECK(sender.acknowledged(0, n, 15) == 0);
    CHECK(sender.acknowledged(0, 10, 15) == 1);  // sent after packet 0 was sent again
}

TEST_CASE("selective repeat brings everything across, whatever is lost or overtaken") {
    // Both ends without an engine. On the line a packet may be overtaken by those sent up to
    // `reordering - 1` places later.
    for (const std::uint32_t reordering : {1U, 8U}) {
        for (const double loss : {0.0, 0.02, 0.3}) {
            CAPTURE(reordering);
            CAPTURE(loss);
            constexpr std::uint32_t packets = 20'000;
            constexpr std::uint32_t window = 64;
            RandomStream random(1, reordering, "test/line");
            SelectiveSender sender(window, reordering);
            SelectiveReceiver receiver(window);
            std::set<std::pair<std::uint64_t, std::uint32_t>> line;  // place in it, packet
            std::uint64_t place = 0;
            std::uint32_t expected = 0;
            std::uint32_t acknowledged = 0;
            std::uint32_t sent = 0;
            std::uint32_t came = 0;
            int timeouts = 0;
            int repeated = 0;
            while (acknowledged < packets) {
                while (sender.under_way(sent) < 40) {
                    std::uint32_t next = sent;
                    if (sender.has_lost()) {
                        next = sender.first_lost();
                        sender.send_again(next);
                        ++repeated;
                    } else if (sent == packets || sent - acknowledged == window) {
                        break;
                    } else {
                        ++sent;
                    }
                    ++place;
                    if (!random.chance(loss)) line.insert({place + random.below(reordering), next});
                }
                if (line.empty()) {
                    sender.time_out(sent);
                    ++timeouts;
                    continue;
                }
                const std::uint32_t number = line.begin()->second;
                line.erase(line.begin());
                if (receiver.take(number, expected)) ++came;
                if (random.chance(loss)) continue;  // the acknowledgement
                acknowledged = std::max(acknowledged, expected);
                sender.acknowledged(expected, number, sent);
            }
            CHECK(came == packets);
            CHECK(expected == packets);
            CHECK_FALSE(sender.has_lost());
            if (loss == 0) CHECK(repeated == 0);
            if (loss == 0) CHECK(timeouts == 0);
            // Each loss, and no more again for acknowledgements that were lost.
            if (loss == 0.02) CHECK(repeated < 2 * packets * loss * (1 + loss));
            // Eight are lost twice: half of them with the window shut, so that nothing follows.
            if (loss == 0.02) CHECK(timeouts <= 8);
        }
    }
}

TEST_CASE("selective repeat sends again what the switch lost, go-back-N all that followed it") {
    const auto run = [](Recovery recovery) {
        const Star star(2, 400'000, gbit(100));
        PacketSpec spec;
        spec.classes[1].flow_control = FlowControl::none;
        spec.recovery = recovery;
        spec.retransmission_timeout = Picoseconds(1000 * us);
        PacketEngine e(star.network, spec);
        for (std::size_t i = 0; i < 2; ++i) e.add(star.flow(i, 4'000'000));
        REQUIRE(e.run(PacketEngine::never));
        for (std::size_t f = 0; f < 2; ++f) CHECK(e.received_bytes(f) == 4'000'000);
        CHECK(e.audit() == "");
        CHECK(e.totals().lost_lossy > 0);
        return e.totals();
    };
    const auto selective = run(Recovery::selective_repeat);
    CHECK(selective.retransmitted == selective.lost_lossy);
    const auto go_back = run(Recovery::go_back_n);
    CHECK(go_back.retransmitted > 20 * selective.retransmitted);
}

// ---- timeouts ----

TEST_CASE("a timeout is 4.096 us times two to the exponent") {
    CHECK(local_ack_timeout(0) == Picoseconds(4'096'000));
    CHECK(local_ack_timeout(14).count() / 1'000'000'000 == 67);    // ms
    CHECK(local_ack_timeout(18).count() / 10'000'000'000 == 107);  // 1.07 s
    CHECK(local_ack_timeout(20).count() / 10'000'000'000 == 429);  // 4.29 s
}

TEST_CASE("a flow into a black hole fails after retries + 1 timeouts, to the picosecond") {
    for (const Recovery recovery : {Recovery::go_back_n, Recovery::selective_repeat}) {
        const Star star(1, 16'000'000, gbit(400));
        PacketSpec spec;
        spec.recovery = recovery;
        spec.retransmission_timeout = local_ack_timeout(20);
        spec.retries = 7;
        PacketEngine e(star.network, spec);
        PacketFlow f = star.flow(0, 4096);
        f.start = Picoseconds(5 * us);
        e.add(f);
        PacketFlow after = star.flow(0, 4096);
        after.after = 0;
        e.add(after);
        e.flap(star.down, {}, PacketEngine::never);
        REQUIRE(e.run(PacketEngine::never));
        CHECK(e.failed(0));
        CHECK(e.failed_at(0) == Picoseconds(5 * us) + 8 * local_ack_timeout(20));
        CHECK(e.failed_at(1) == e.failed_at(0));  // it waits for the other in vain
        CHECK(e.end(0) == PacketEngine::never);
        CHECK(e.totals().timeouts == 8);
    }
}

// ---- bit errors ----

namespace {

// Goodput by packets sent, of a flow over one link that loses this part of them, `latency` long.
double goodput_on_a_bad_link(Recovery recovery, double bit_error_rate, Picoseconds latency,
                             std::int64_t packets) {
    Chain one({gbit(400)}, latency);
    one.network.links[one.path[0]].bit_error_rate = bit_error_rate;
    PacketSpec spec;
    spec.recovery = recovery;
    spec.recovery_window = 4096;
    spec.retransmission_timeout = 4 * latency + Picoseconds(us);
    PacketEngine e(one.network, spec);
    e.add(one.flow(packets * spec.payload_bytes));
    REQUIRE(e.run(PacketEngine::never));
    CHECK(e.received_bytes(0) == packets * spec.payload_bytes);
    constexpr double packet_ps = 4154 * 20;
    const double over_ps = packet_ps + 2 * static_cast<double>(latency.count());
    return static_cast<double>(packets) * packet_ps /
           (static_cast<double>(e.end(0).count()) - over_ps);
}

}  // namespace

TEST_CASE("a packet of b bits survives with (1 - rate)^b") {
    for (const double rate : {1e-9, 1e-6, 1e-5}) {
        CAPTURE(rate);
        LinkFaults faults(rate, RandomStream(1, 0, "test/bits"));
        constexpr int packets = 2'000'000;
        int lost = 0;
        for (int i = 0; i < packets; ++i) lost += faults.flips(4154) ? 1 : 0;
        const double p = 1 - std::pow(1 - rate, 4154 * 8);
        CHECK(std::abs(lost - p * packets) < 4 * std::sqrt(p * packets));
    }
}

TEST_CASE("on a link with bit errors go-back-N gets (1 - p) / (1 + p W), selective repeat 1 - p") {
    for (const std::int64_t latency_us : {1, 5, 20}) {
        for (const double rate : {3e-9, 3e-8, 1e-7}) {
            CAPTURE(latency_us);
            CAPTURE(rate);
            constexpr std::int64_t packets = 100'000;
            const double p = 1 - std::pow(1 - rate, 4154 * 8);
            // From the lost packet's last bit to the NACK for the next one: what was sent in vain after it.
            const double w = std::ceil(
                (4154 * 20 + 64 * 20 + 2e6 * static_cast<double>(latency_us)) / (4154 * 20));
            const double go_back = goodput_on_a_bad_link(Recovery::go_back_n, rate,
                                                         Picoseconds(latency_us * us), packets);
            const double deviation = w * std::sqrt(p / packets) / (1 + p * w);
            CHECK(go_back == doctest::Approx((1 - p) / (1 + p * w)).epsilon(3 * deviation + 0.002));
            const double selective = goodput_on_a_bad_link(Recovery::selective_repeat, rate,
                                                           Picoseconds(latency_us * us), packets);
            CHECK(selective == doctest::Approx(1 - p).epsilon(3 * std::sqrt(p / packets) + 0.002));
        }
    }
}

// ---- links that go down ----

TEST_CASE("a cable that is down carries nothing, loses what is on it, and goes on when it is up") {
    const Star star(1, 16'000'000, gbit(100));
    PacketSpec spec;
    spec.retransmission_timeout = Picoseconds(5000 * us);
    PacketEngine smooth(star.network, spec);
    smooth.add(star.flow(0, 4'096'000));
    REQUIRE(smooth.run(PacketEngine::never));
    PacketEngine e(star.network, spec);
    e.add(star.flow(0, 4'096'000));
    e.flap(star.ups[0], Picoseconds(100 * us), Picoseconds(200 * us));
    e.run(Picoseconds(103 * us));
    const std::int64_t before = e.received_bytes(0);
    e.run(Picoseconds(201 * us));
    CHECK(e.received_bytes(0) == before);
    REQUIRE(e.run(PacketEngine::never));
    // A packet of 332 ns takes 1.332 us: 4 of them, or 5; and the ACKs of those that the switch had sent
    // on in the last 2.342 us there and back, or that were on the cable for another 1.005 us: 10, or 11.
    CHECK(e.totals().lost_on_links >= 14);
    CHECK(e.totals().lost_on_links <= 16);
    // The first packet after it asks for what is missing: no timeout, but a round trip more.
    CHECK(e.totals().timeouts == 0);
    const Picoseconds later = e.end(0) - smooth.end(0);
    CHECK(later > Picoseconds(103 * us));
    CHECK(later < Picoseconds(107 * us));
    CHECK(e.audit() == "");
}

TEST_CASE("a pause across a cable that is down runs out, and comes again when it is up") {
    const Star star(1, 16'000'000, gbit(400));
    PacketEngine e(star.network, {});
    e.add(star.flow(0));
    e.storm(star.down, 1, {}, PacketEngine::never);
    e.flap(star.down, Picoseconds(500 * us), Picoseconds(700 * us));
    e.run(Picoseconds(500 * us));
    CHECK(e.paused(star.down, 1));
    e.run(Picoseconds(590 * us));  // 65,535 quanta are 83.9 us
    CHECK_FALSE(e.paused(star.down, 1));
    CHECK(e.audit() == "");
    e.run(Picoseconds(705 * us));
    CHECK(e.paused(star.down, 1));
    CHECK(e.audit() == "");
}

// ---- a slow receiver ----

TEST_CASE("a slow receiver makes a victim of a flow that never goes there") {
    // A and B share the link between two switches; B's receiver takes a tenth of its line rate.
    TwoSwitches network(4'000'000, gbit(100), 100'000);
    const LinkId to_victim = network.down(network.right);
    const LinkId to_slow = network.down(network.right);
    const LinkId first = network.up(network.left);
    const LinkId second = network.up(network.left);
    PacketEngine e(network, {});
    e.add(flow_of({first, network.middle, to_victim}));
    e.add(flow_of({second, network.middle, to_slow}));
    e.slow_receiver(to_slow, gbit(10), Picoseconds(1000 * us), Picoseconds(40'000 * us));
    const auto goodputs = [&](std::int64_t from_us, std::int64_t to_us) {
        e.run(Picoseconds(from_us * us));
        const std::int64_t a = e.received_bytes(0);
        const std::int64_t b = e.received_bytes(1);
        e.run(Picoseconds(to_us * us));
        const double gbits = 8e-3 / static_cast<double>(to_us - from_us);
        return std::pair(static_cast<double>(e.received_bytes(0) - a) * gbits,
                         static_cast<double>(e.received_bytes(1) - b) * gbits);
    };
    constexpr double payload = 4096.0 / 4154;
    const auto before = goodputs(500, 1000);
    CHECK(before.first == doctest::Approx(50 * payload).epsilon(0.01));
    const auto during = goodputs(20'000, 40'000);
    CHECK(during.second == doctest::Approx(10 * payload).epsilon(0.01));
    CHECK(during.first == doctest::Approx(10 * payload).epsilon(0.1));  // one each, in turn
    CHECK(e.pauses(to_slow, 1) > 10);
    CHECK(e.pauses(network.middle, 1) > 1);
    CHECK(e.paused_time(first, 1) > Picoseconds(10'000 * us));
    const auto after = goodputs(41'000, 42'000);
    CHECK(after.first == doctest::Approx(50 * payload).epsilon(0.01));
    CHECK(e.totals().lost_lossless == 0);
    CHECK(e.audit() == "");
}

TEST_CASE("a slow receiver without room for what is under way loses it") {
    const Star star(1, 16'000'000, gbit(100), 100'000);
    for (const std::int64_t room : {4'000, 100'000}) {
        PacketSpec spec;
        spec.receive_buffer = {200'000 + room, 200'000, 100'000};
        spec.retransmission_timeout = Picoseconds(1000 * us);
        PacketEngine e(star.network, spec);
        e.add(star.flow(0, 10'000'000));
        e.slow_receiver(star.down, gbit(10), {}, PacketEngine::never);
        REQUIRE(e.run(PacketEngine::never));
        CHECK((e.totals().lost_lossless > 0) == (room < 50'000));
        CHECK(e.received_bytes(0) == 10'000'000);
    }
}

// ---- CNPs ----

namespace {

class CnpWatch final : public Congestion {
  public:
    explicit CnpWatch(std::vector<Picoseconds>& seen) : seen_(seen) {}
    void identify(Fingerprint&) const override {}
    void start(std::uint32_t, const FlowStart& given, Pace& pace) override {
        pace.bits_per_s = given.line_bits_per_s;
    }
    void acknowledged(std::uint32_t, const Acknowledgement& ack, Pace&) override {
        if (ack.congestion) seen_.push_back(ack.now);
    }
    void timer(std::uint32_t, Picoseconds, Pace&) override {}

  private:
    std::vector<Picoseconds>& seen_;
};

}  // namespace

TEST_CASE("a CNP leaves its delay after the marked packet came, and holds up no acknowledgement") {
    const auto run = [](Picoseconds delay, std::vector<Picoseconds>& seen) {
        Star star(2, 16'000'000, gbit(100), 100'000);
        star.network.links[star.down].ecn = {0, 0, 1};
        PacketSpec spec;
        spec.ack_class = -1;
        spec.cnp_interval = Picoseconds(50 * us);
        spec.cnp_delay = delay;
        PacketEngine e(star.network, spec, std::make_unique<CnpWatch>(seen));
        for (std::size_t i = 0; i < 2; ++i) e.add(star.flow(i, 4'096'000));
        REQUIRE(e.run(PacketEngine::never));
        CHECK(e.audit() == "");
        return e.end(1);
    };
    std::vector<Picoseconds> at_once;
    std::vector<Picoseconds> delayed;
    const Picoseconds end = run({}, at_once);
    CHECK(run(Picoseconds(3 * us), delayed) == end);
    REQUIRE(at_once.size() > 10);
    REQUIRE(delayed.size() == at_once.size());
    for (std::size_t i = 0; i < at_once.size(); ++i) {
        CHECK(delayed[i] == at_once[i] + Picoseconds(3 * us));
    }
}

TEST_CASE(
    "a CNP that is late goes back by the way that its packet came, whoever has its number now") {
    // Sprayed, from a NIC of the same leaf and from others: ways of two and of four links.
    TopologySpec shape = uniform_topology("fat_tree", 8, 8, gbit(400), 2);
    shape.spine.ports = 2;
    const Topology t = built(shape);
    MessageFlows messages(t, {});
    for (VertexId nic = 1; nic < 8; ++nic) messages.send({nic, 0, 4'096'000});
    PacketNetwork network = PacketNetwork::of(t, 16'000'000);
    for (PacketLink& l : network.links) {
        l.latency = Picoseconds(us);
        l.headroom_bytes = 200'000;
        l.ecn = {0, 0, 1};
    }
    for (const std::int64_t ack_every : {1, 4}) {
        CAPTURE(ack_every);
        std::vector<Picoseconds> seen;
        PacketSpec spec;
        spec.recovery = Recovery::selective_repeat;
        spec.reordering = 64;
        spec.cnp_interval = Picoseconds(us);
        spec.cnp_delay = Picoseconds(20 * us);
        spec.ack_every = ack_every;
        PacketEngine e(network, spec, std::make_unique<CnpWatch>(seen));
        e.choose_from(NextHops(t));
        for (PacketFlow f : messages.flows()) {
            f.routing = PacketRouting::spray;
            e.add(f);
        }
        for (std::int64_t at = 1; !e.run(Picoseconds(at * us)); ++at) REQUIRE(e.audit() == "");
        CHECK(e.audit() == "");
        CHECK(seen.size() > 100);
        CHECK(e.totals().timeouts == 0);
        CHECK(e.totals().lost_lossless == 0);
    }
}

// ---- TCP ----

namespace {

TcpSpec sockets() {
    StandaloneCatalogue c;
    return read_tcp(c.catalogue);
}

// Ethernet as it comes: no PFC, no marks, what finds no room is lost.
PacketSpec drop_tail() {
    PacketSpec spec;
    spec.payload_bytes = 1448;
    spec.header_bytes = 14 + 4 + 20 + 32;  // Ethernet and its checksum, IP, TCP with timestamps
    spec.classes = {{FlowControl::none, false}, {FlowControl::none, false}};
    spec.buffer = {1000, 0, 0};
    spec.recovery = Recovery::selective_repeat;
    spec.reordering = 3;
    spec.retries = 15;
    return spec;
}

}  // namespace

TEST_CASE("slow start doubles the window each round trip, to the picosecond") {
    const Chain one({gbit(100)}, Picoseconds(50 * us));
    TcpSpec tcp_spec = sockets();
    tcp_spec.stream_bits_per_s = 100e9;
    PacketEngine e(one.network, drop_tail(), tcp(tcp_spec));
    e.add(one.flow());
    const std::int64_t there = (1448 + 70) * 80 + 50 * us;
    const std::int64_t back = 64 * 80 + 50 * us;
    for (int round = 0; round < 6; ++round) {
        CAPTURE(round);
        const Picoseconds first(there + round * (there + back));
        e.run(first - Picoseconds(1));
        CHECK(e.received_bytes(0) == 1448 * 10 * ((1 << round) - 1));
        e.run(first);
        CHECK(e.received_bytes(0) == 1448 * (10 * ((1 << round) - 1) + 1));
    }
}

TEST_CASE(
    "TCP halves its window once for all that a window lost, and starts again after a timeout") {
    const auto control = tcp(sockets());
    Pace pace;
    control->start(0, {100e9, 1000, 0}, pace);
    CHECK(pace.window_bytes == 10'000);
    CHECK(pace.bits_per_s == 30e9);
    CHECK(pace.timeout == std::chrono::seconds(1));
    Acknowledgement ack;
    ack.next = 10;
    ack.to_send = 20;
    ack.bytes = 10'000;
    ack.round_trip = Picoseconds(100 * us);
    control->acknowledged(0, ack, pace);
    CHECK(pace.window_bytes == 20'000);
    CHECK(pace.timeout == std::chrono::milliseconds(200) + Picoseconds(100 * us));
    control->lost(0, {Picoseconds(1), 12, 30}, pace);
    CHECK(pace.window_bytes == 10'000);
    control->lost(0, {Picoseconds(2), 15, 33}, pace);
    CHECK(pace.window_bytes == 10'000);
    ack.next = 15;
    ack.bytes = 3'000;
    control->acknowledged(0, ack, pace);
    CHECK(pace.window_bytes == 10'000);
    control->lost(0, {Picoseconds(3), 30, 40}, pace);
    CHECK(pace.window_bytes == 5'000);
    const Picoseconds before = pace.timeout;
    control->timed_out(0, {Picoseconds(4), 30, 40}, pace);
    CHECK(pace.window_bytes == 1'000);
    CHECK(pace.timeout == 2 * before);
    control->timed_out(0, {Picoseconds(5), 30, 40}, pace);
    CHECK(pace.timeout == 4 * before);
    for (int i = 0; i < 12; ++i) control->timed_out(0, {Picoseconds(6), 30, 40}, pace);
    CHECK(pace.timeout == std::chrono::minutes(2));
}

TEST_CASE("TCP's throughput over random loss is Mathis' 1.22 MSS / (RTT sqrt p)") {
    for (const double p : {3e-4, 1e-3, 4e-3}) {
        CAPTURE(p);
        Chain one({gbit(100)}, Picoseconds(100 * us));
        const PacketSpec spec = drop_tail();
        const double bits = 8 * static_cast<double>(spec.payload_bytes + spec.header_bytes);
        one.network.links[one.path[0]].bit_error_rate = 1 - std::pow(1 - p, 1 / bits);
        PacketEngine e(one.network, spec, tcp(sockets()));
        e.add(one.flow());
        const auto at = [&](std::int64_t ms) {
            e.run(Picoseconds(ms * 1000 * us));
            return static_cast<double>(e.received_bytes(0));
        };
        const double from = at(100);
        const double bytes_per_s = (at(2100) - from) / 2;
        const double rtt_s = 200e-6 + (1518 + 64) * 80e-12;
        const double mathis = 1.22 * 1448 / (rtt_s * std::sqrt(p));
        CHECK(bytes_per_s == doctest::Approx(mathis).epsilon(0.1));
    }
}

TEST_CASE("synchronized senders collapse on a shallow drop-tail port: a block takes the timeout") {
    constexpr std::int64_t block = 1'000'000;
    const auto goodput = [&](int senders) {
        Star star(senders, 64'000, gbit(10));
        for (PacketLink& l : star.network.links) l.latency = Picoseconds(10 * us);
        PacketEngine e(star.network, drop_tail(), tcp(sockets()));
        for (int i = 0; i < senders; ++i) {
            e.add(star.flow(static_cast<std::size_t>(i), block / senders));
        }
        REQUIRE(e.run(PacketEngine::never));
        Picoseconds last{};
        for (std::size_t i = 0; i < static_cast<std::size_t>(senders); ++i) {
            REQUIRE_FALSE(e.failed(i));
            last = std::max(last, e.end(i));
        }
        CHECK((e.totals().timeouts > 0) == (senders > 4));
        CHECK(e.audit() == "");
        return block * 8e3 / static_cast<double>(last.count());  // Gbit/s
    };
    CHECK(goodput(1) > 4);
    CHECK(goodput(2) > 4);
    const double collapsed = block * 8e3 / 200e9;  // a block in 200 ms
    const double many = goodput(32);
    CHECK(many < collapsed);
    CHECK(many > collapsed / 10);
}

TEST_CASE("a connection's tail that is lost waits for the timeout of the round trips it has seen") {
    const Chain chain(2, gbit(100), Picoseconds(10 * us));
    PacketSpec spec = drop_tail();
    spec.ack_class = -1;
    TcpSpec connection = sockets();
    connection.stream_bits_per_s = 100e9;
    PacketEngine e(chain.network, spec, tcp(connection));
    e.add(chain.flow(10 * 1448));
    // The last three of ten are lost; the first acknowledgement brings the timeout down from a second.
    const std::int64_t packet = 1518 * 80;
    e.flap(chain.path[1], Picoseconds(20 * us + 8 * packet + packet / 2), Picoseconds(1000 * us));
    e.run(Picoseconds(500 * us));
    REQUIRE(e.received_bytes(0) == 7 * 1448);
    REQUIRE(e.run(PacketEngine::never));
    CHECK(e.totals().timeouts == 1);
    CHECK(e.end(0) > Picoseconds(200'000 * us));
    CHECK(e.end(0) < Picoseconds(201'000 * us));
}

TEST_CASE("a sender whose window is full asks for its acknowledgement") {
    for (const std::int64_t ack_every : {1, 3, 7, 100}) {
        CAPTURE(ack_every);
        const Star star(4, 16'000'000, gbit(400));
        PacketSpec spec;
        spec.ack_every = ack_every;
        ReceiverWindowSpec window;
        window.grant_bytes = 10 * 4096;
        window.grants = 2;
        PacketEngine e(star.network, spec, receiver_window(window));
        for (std::size_t i = 0; i < 4; ++i) e.add(star.flow(i, 1000 * 4096));
        REQUIRE(e.run(Picoseconds(1'000'000 * us)));
        CHECK(e.totals().timeouts == 0);

        // TCP's is one segment after a timeout.
        Star shallow(16, 64'000, gbit(10));
        PacketSpec tail = drop_tail();
        tail.ack_every = ack_every;
        PacketEngine t(shallow.network, tail, tcp(sockets()));
        for (std::size_t i = 0; i < 16; ++i) t.add(shallow.flow(i, 100'000));
        REQUIRE(t.run(Picoseconds(3'000'000 * us)));
        CHECK(t.audit() == "");
    }
}

// ---- receiver-driven ----

TEST_CASE("a sender alone sends a grant each round trip") {
    const Star star(1, 16'000'000, gbit(400));
    PacketSpec spec;
    ReceiverWindowSpec window;
    window.grant_bytes = 10 * 4096 - 1;  // whole packets
    window.grants = 4;
    PacketEngine e(star.network, spec, receiver_window(window));
    e.add(star.flow(0, 30 * 4096));
    REQUIRE(e.run(PacketEngine::never));
    const std::int64_t packet = 4154 * 20;
    const std::int64_t round = 10 * packet + packet + 2 * 64 * 20 + 4 * us;
    CHECK(e.end(0).count() == 3 * round);
}

TEST_CASE("a receiver's grants bound what queues for it, and every sender has its turn") {
    const Star star(16, 16'000'000, gbit(400), 200'000);
    ReceiverWindowSpec window;
    window.grant_bytes = 64 * 4096;
    window.grants = 4;
    PacketEngine e(star.network, {}, receiver_window(window));
    for (std::size_t i = 0; i < 16; ++i) e.add(star.flow(i, 4 << 20));
    REQUIRE(e.run(PacketEngine::never));
    CHECK(e.totals().pause_frames == 0);
    CHECK(e.queue_bytes_max(star.down, 1) < 4 * 64 * 4154);
    CHECK(e.queue_bytes_max(star.down, 1) > 2 * 64 * 4154);
    // In turn: the first ends within a round of the last; and the port is never idle.
    Picoseconds first = PacketEngine::never;
    Picoseconds last{};
    for (std::size_t i = 0; i < 16; ++i) {
        first = std::min(first, e.end(i));
        last = std::max(last, e.end(i));
    }
    const double bytes = 16.0 * 1024 * 4154;
    CHECK(static_cast<double>(last.count()) == doctest::Approx(bytes * 20 + 6e6).epsilon(0.01));
    CHECK(static_cast<double>((last - first).count()) < 16 * 64 * 4154 * 20.0);
    // Without it, sixteen line rates meet.
    PacketEngine greedy(star.network, {});
    for (std::size_t i = 0; i < 16; ++i) greedy.add(star.flow(i, 4 << 20));
    REQUIRE(greedy.run(PacketEngine::never));
    CHECK(greedy.totals().pause_frames > 0);
}

TEST_CASE("no byte is lost or made up, at any event, whatever the flow control") {
    struct Way {
        FlowControl control;
        Recovery recovery;
    };
    for (const Way& way : {Way{FlowControl::pfc, Recovery::go_back_n},
                           Way{FlowControl::credits, Recovery::go_back_n},
                           Way{FlowControl::none, Recovery::go_back_n},
                           Way{FlowControl::none, Recovery::selective_repeat}}) {
        CAPTURE(static_cast<int>(way.control));
        Star star(6, 200'000, gbit(10));
        for (PacketLink& l : star.network.links) {
            l.headroom_bytes = 20'000;
            l.vl_buffer_bytes = 12'000;
            l.bit_error_rate = way.control == FlowControl::none ? 1e-6 : 0;
        }
        PacketSpec spec;
        spec.classes = {{FlowControl::none, false, 0}, {way.control, true, 1}};
        spec.recovery = way.recovery;
        spec.retransmission_timeout = Picoseconds(1000 * us);
        PacketEngine e(star.network, spec);
        for (std::size_t i = 0; i < 6; ++i) e.add(star.flow(i, 300'000));
        while (!e.run(PacketEngine::never, 1)) REQUIRE(e.audit() == "");
        for (std::size_t i = 0; i < 6; ++i) CHECK(e.received_bytes(i) == 300'000);
        const bool lossy = way.control == FlowControl::none;
        CHECK((e.totals().lost_lossy + e.totals().lost_on_links > 0) == lossy);
        CHECK(e.totals().lost_lossless == 0);
    }
}
