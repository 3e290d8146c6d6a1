// Ultra Ethernet: entropy values, trimming, delivery in any order, and NSCC's law.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "tests/models/windows.h"
#include "tests/packets.h"

using namespace railyard;

namespace {

constexpr Bandwidth line = gbit(400);

// Senders and a receiver at one switch, 1 us of cable each.
struct Incast {
    StandaloneCatalogue own;
    PacketNetwork network;
    PacketProfile profile;
    NsccSpec control;
    LinkId down = 0;

    explicit Incast(int senders, bool trims = true, std::int64_t queue_bytes = INT64_MAX,
                    bool by_order = false) {
        PacketSpec& spec = profile.spec;
        spec.payload_bytes = 4032;
        spec.header_bytes = 64;
        spec.classes = {{FlowControl::none, false, 0}, {FlowControl::none, true, 1}};
        spec.trimming.enabled = trims;
        spec.order_loss.enabled = by_order;
        spec.lossy_queue_bytes = queue_bytes;
        spec.buffer.alpha = 1024;
        const VertexId at = network.add_switch(100'000'000);
        down = network.add_cable(at, network.add_nic(), line, Picoseconds(us));
        for (int i = 0; i < senders; ++i) {
            network.add_cable(network.add_nic(), at, line, Picoseconds(us));
        }
        const Picoseconds round_trip(4 * us + 2 * 20 * (4096 + 64));
        set_up_ultra_ethernet(own.catalogue, line, round_trip, profile);
        network.links[down].ecn = profile.ecn->at(line);
        control = read_nscc(own.catalogue, {"", line, round_trip, trims});
    }
    PacketEngine engine(std::int64_t bytes) {
        PacketEngine e(network, profile.spec, nscc(control));
        for (LinkId up = down + 2; up < network.links.size(); up += 2) {
            e.add(flow_of({up, down}, bytes));
        }
        return e;
    }
    std::size_t flows() const { return network.links.size() / 2 - 1; }
};

// One flow of NSCC by itself, told what the test says.
struct Told {
    Incast star{1};
    std::unique_ptr<Congestion> control = nscc(star.control);
    Pace pace;
    std::int64_t now = us;

    Told() { control->start(0, {400e9, 4032, 4096, 0}, pace); }
    double window() const { return static_cast<double>(pace.window_bytes); }
    double base() const { return static_cast<double>(star.control.base_rtt.count()); }
    double target() const { return star.control.target_delay * base(); }
    void ack(double delay, bool marked, std::int64_t bytes = 16384) {
        now += 300'000;
        Acknowledgement a;
        a.now = Picoseconds(now);
        a.congestion = marked;
        a.came_bytes = bytes;
        a.under_way_bytes = pace.window_bytes;
        a.round_trip = star.control.base_rtt + Picoseconds(static_cast<std::int64_t>(delay));
        control->acknowledged(0, a, pace);
    }
    void trim() {
        Acknowledgement a;
        a.now = Picoseconds(now += 1000);
        a.trimmed = true;
        a.under_way_bytes = pace.window_bytes;
        a.round_trip = star.control.base_rtt;
        control->acknowledged(0, a, pace);
    }
};

std::set<int> next_values(EntropyChoice& choice, int count) {
    std::set<int> values;
    for (int i = 0; i < count; ++i) values.insert(choice.next(0, {}));
    return values;
}

}  // namespace

TEST_CASE("entropy values in turn are all different, round after round") {
    for (const char* name : {"oblivious", "bitmap", "mixed"}) {
        CAPTURE(name);
        const auto choice = make_entropy_choice({name, 64, 7});
        choice->start(0);
        for (int round = 0; round < 3; ++round) CHECK(next_values(*choice, 64).size() == 64);
    }
}

TEST_CASE("a value that was trimmed is passed over four times, one that timed out fifteen times") {
    for (const auto& [news, rounds] :
         {std::pair(PathNews::marked, 1), {PathNews::trimmed, 4}, {PathNews::timed_out, 15}}) {
        const auto choice = make_entropy_choice({"bitmap", 64, 7});
        choice->start(0);
        choice->heard(0, 5, news, {});
        int without = 0;
        while (next_values(*choice, 63).count(5) == 0) ++without;
        CHECK(without == rounds);
    }
}

TEST_CASE(
    "REPS uses each good value once more, the oldest first, and replays them after a timeout") {
    const auto choice = make_entropy_choice({"reps", 64, 7});
    choice->start(0);
    for (const std::uint16_t value : {11, 12, 13}) choice->heard(0, value, PathNews::good, {});
    for (const int value : {11, 12, 13}) CHECK(choice->next(0, {}) == value);
    choice->heard(0, 40, PathNews::timed_out, {});
    for (const int value : {11, 12, 13, 11}) CHECK(choice->next(0, {}) == value);
}

TEST_CASE(
    "NSCC's window rests where delay is at its target and marks are balanced by fair increase") {
    Told told;
    for (int i = 0; i < 40; ++i)
        told.ack(1.5 * told.target(), true);  // away from the largest window
    const double before = told.window();
    // Marked below the target: left to the choice of paths.
    const std::int64_t begun = told.now;
    for (int i = 0; i < 10; ++i) told.ack(0.5 * told.target(), true);
    const double steady =
        0.15 * 4032 * told.star.control.line_bits_per_s / 8 * told.base() * 1e-12 / 150'000;
    const double rounds = static_cast<double>(told.now - begun) / told.base();
    CHECK(told.window() - before <= steady * (rounds + 1));
    CHECK(told.window() >= before);
}

TEST_CASE("NSCC cuts by gamma (D - T) / D, once in a round trip, and by no more than half") {
    Told told;
    for (int i = 0; i < 2000; ++i)
        told.ack(0.9 * told.target(), true);  // the average is that: no cut
    CHECK(told.window() == doctest::Approx(1.5 * told.base() * 0.05).epsilon(0.001));
    double least = 1;
    for (int i = 0; i < 2000; ++i) {
        const double before = told.window();
        told.ack(8 * told.target(), true);
        least = std::min(least, told.window() / before);
    }
    CHECK(least == doctest::Approx(0.5).epsilon(0.001));  // windows are whole bytes
}

TEST_CASE("after trims and with little achieved NSCC's window is what has come in the period") {
    Told told;
    told.ack(0, false);
    told.trim();  // begins a period
    told.now += 100 * us;
    told.ack(0.5 * told.target(), true, 4096);
    told.trim();
    told.now += 10 * us;
    told.trim();
    CHECK(told.pace.window_bytes <= 3 * 4096);
}

TEST_CASE("NSCC's window stands still where what fair increase adds is what cuts take") {
    // Unmarked and marked late acknowledgements in turn: in a round trip at W, unmarked bytes U add
    // fi U / W and eta, and one cut takes gamma (D - T) / D of W.
    Told told;
    const NsccSpec& spec = told.star.control;
    const double bdp = spec.line_bits_per_s / 8 * told.base() * 1e-12;
    const double scale = bdp / static_cast<double>(spec.reference_bdp);
    for (int i = 0; i < 20; ++i) told.ack(3 * told.target(), true);
    constexpr double late = 1.2;  // targets
    double least = 1e30;
    double most = 0;
    for (int i = 0; i < 40'000; ++i) {
        told.ack(late * told.target(), i % 16 != 0);
        if (i < 20'000) continue;
        least = std::min(least, told.window());
        most = std::max(most, told.window());
    }
    // 300 ns between acknowledgements of 16 KiB: so many in a round trip, a sixteenth of them unmarked.
    const double unmarked = told.base() / 300'000 / 16 * 16384;
    const double average =
        (15 * late * told.target() + told.base() / 4) / 16;  // unmarked, it counts as little
    const double cut = spec.gamma * (average - told.target()) / average;
    const double steady = spec.steady * 4032 * scale;
    const double fair = spec.fair * 4032 * scale * unmarked;
    const double rest = (steady + std::sqrt(steady * steady + 4 * cut * fair)) / (2 * cut);
    CHECK(least > 0.7 * rest);
    CHECK(most < 1.3 * rest);
}

TEST_CASE("NSCC goes by the average delay where an acknowledgement timed nothing") {
    Told told;
    for (int i = 0; i < 2000; ++i) told.ack(0.9 * told.target(), true);
    const double before = told.window();
    Acknowledgement a;
    a.now = Picoseconds(told.now += us);
    a.congestion = true;
    told.control->acknowledged(0, a, told.pace);  // neither a cut nor a base of no time
    CHECK(told.window() == doctest::Approx(before).epsilon(0.02));
}

TEST_CASE(
    "an answer that was asked for says nothing of packets before its own but what is waited for") {
    for (const bool begins : {false, true}) {
        UnorderedReceiver receiver(1024);
        std::uint32_t expected = 0;
        for (const std::uint32_t number : {2U, 3U, 5U}) receiver.take(number, 4096, expected);
        DeliveryReport report;
        receiver.report(5, expected, begins, report);
        CHECK(report.first == (begins ? 5 : 1));
        CHECK(report.came == (begins ? 0b1 : 0b10110));
        CHECK(report.received_bytes == 3 * 4096);
    }
}

TEST_CASE("two to eight flows of NSCC share a link, fill it and none of them starves") {
    for (const int n : {2, 3, 4, 6, 8}) {
        CAPTURE(n);
        Incast star(n);
        PacketEngine e = star.engine(unending);
        e.run(Picoseconds(1000 * us));
        std::vector<double> before;
        for (std::size_t f = 0; f < star.flows(); ++f) {
            before.push_back(static_cast<double>(e.received_bytes(f)));
        }
        double queue = 0;
        constexpr int samples = 4000;
        for (int i = 1; i <= samples; ++i) {
            e.run(Picoseconds((1000 + i) * us));
            queue += static_cast<double>(e.queue_bytes(star.down, 1)) / samples;
        }
        // Cuts come beyond the target and nothing else lowers the window; increases end at it.
        const double target_bytes = star.control.target_delay * 1e-12 * 400e9 / 8 *
                                    static_cast<double>(star.control.base_rtt.count());
        CHECK(queue > 0.6 * target_bytes);
        CHECK(queue < 1.1 * target_bytes);
        double sum = 0;
        double squares = 0;
        double least = 1e30;
        for (std::size_t f = 0; f < star.flows(); ++f) {
            const double rate = static_cast<double>(e.received_bytes(f)) - before[f];
            sum += rate;
            squares += rate * rate;
            least = std::min(least, rate);
        }
        CHECK(sum * 8 / 4e-3 / 400e9 > 0.98 * 4032 / 4096);
        CHECK(sum * sum / squares / n > 0.98);
        CHECK(least > 0.7 * sum / n);
        CHECK(e.audit().empty());
    }
}

TEST_CASE("trimmed packets are sent again, once each, and all books agree after every event") {
    for (const bool trims : {true, false}) {
        CAPTURE(trims);
        Incast star(6, trims, 10 * 4096);
        PacketEngine e = star.engine(400'000);
        while (!e.run(PacketEngine::never, 1)) {
            const std::string wrong = e.audit();
            REQUIRE_MESSAGE(wrong.empty(), wrong);
        }
        for (std::size_t f = 0; f < star.flows(); ++f) CHECK(e.received_bytes(f) == 400'000);
        const PacketEngine::Totals& t = e.totals();
        // What has timed out may turn out to have come before it goes again.
        CHECK((trims ? t.retransmitted == t.trimmed : t.retransmitted <= t.timeouts));
        CHECK(t.retransmitted >= t.lost_lossy);  // some were only late
        CHECK((trims ? t.trimmed : t.lost_lossy) > 100);
        CHECK((trims ? t.lost_lossy : t.trimmed) == 0);
        CHECK(t.trimmed_last_hop == t.trimmed);
        CHECK((t.timeouts > 0) != trims);
    }
}

TEST_CASE("what later packets have passed is sent again before its timeout, and all books agree") {
    const auto ended = [](bool by_order, PacketEngine::Totals& totals) {
        Incast star(2, false, 40 * 4096, by_order);
        star.profile.spec.retransmission_timeout = Picoseconds(1000 * us);
        PacketEngine e = star.engine(4'000'000);
        while (!e.run(PacketEngine::never, 1)) {
            const std::string wrong = e.audit();
            REQUIRE_MESSAGE(wrong.empty(), wrong);
        }
        Picoseconds last{};
        for (std::size_t f = 0; f < star.flows(); ++f) {
            CHECK(e.received_bytes(f) == 4'000'000);
            last = std::max(last, e.end(f));
        }
        totals = e.totals();
        return last;
    };
    PacketEngine::Totals by_timeouts;
    PacketEngine::Totals by_order;
    const Picoseconds late = ended(false, by_timeouts);
    const Picoseconds soon = ended(true, by_order);
    CHECK(by_timeouts.timeouts == by_timeouts.retransmitted);
    CHECK(by_order.lost_lossy > 50);
    CHECK(by_order.retransmitted >= by_order.lost_lossy);
    // What is lost again as it is sent again waits for its timeout.
    CHECK(by_order.retransmitted - by_order.timeouts > 50);
    CHECK(soon < late);
}

TEST_CASE("a packet that is lost by its order is so once") {
    UnorderedSender sender(1024, true);
    for (std::uint32_t i = 0; i < 10; ++i) sender.send(i, 0, 4096, i, false);
    CHECK(sender.lose_by_order(3, 4096));
    CHECK_FALSE(sender.lose_by_order(3, 4096));
    CHECK(sender.first_lost() == 3);
    sender.send(3, 0, 4096, 20, true);
    CHECK_FALSE(sender.lose_by_order(3, 4096));
    CHECK(sender.lose(3, 4096));  // a timeout may
    sender.heard(5, {}, [](std::uint32_t) { return 4096; });
    CHECK_FALSE(sender.lose_by_order(4, 4096));  // it has come
}

TEST_CASE("a packet that was taken for lost and has come leaves nothing under way") {
    UnorderedSender sender(1024, false);
    const auto bytes_of = [](std::uint32_t) { return 4096; };
    sender.send(0, 0, 4096, 0, false);
    sender.send(1, 0, 4096, 1, false);
    sender.lose(1, 4096);
    DeliveryReport report;  // it counts packet 1 and does not name it
    report.received_bytes = 4096;
    report.first = 100;
    sender.heard(0, report, bytes_of);
    sender.lose(0, 4096);
    sender.send(0, 0, 4096, 20, true);
    sender.send(1, 0, 4096, 21, true);
    report.received_bytes += 4096;
    sender.heard(2, report, bytes_of);
    CHECK(sender.under_way_bytes() == 0);
}

TEST_CASE("a probe finds the loss of a last packet, which no later one can pass") {
    const auto ended = [](bool by_order) {
        Incast star(1, false, INT64_MAX, by_order);
        PacketEngine e = star.engine(4032);
        e.flap(star.down, Picoseconds(0), Picoseconds(3 * us));
        e.run(PacketEngine::never);
        const std::int64_t timeout = star.profile.spec.retransmission_timeout.count();
        CHECK((e.end(0).count() < timeout) == by_order);
        return e.totals();
    };
    CHECK(ended(true).timeouts == 0);
    CHECK(ended(true).retransmitted == 1);
    CHECK(ended(false).timeouts == 1);
}

TEST_CASE("how soon a probe leaves follows from the shortest round trip that its flow has seen") {
    Incast star(1, false, INT64_MAX, true);
    star.profile.spec.order_loss.round_trip = Picoseconds(400 * us);  // a guess, far too long
    star.profile.spec.retransmission_timeout = Picoseconds(1000 * us);
    PacketEngine e = star.engine(100 * 4032);
    e.flap(star.down, Picoseconds(9 * us), Picoseconds(12 * us));  // the last packets are lost
    e.run(PacketEngine::never);
    CHECK(e.totals().retransmitted > 0);
    CHECK(e.totals().timeouts == 0);
    CHECK(e.end(0).count() < 100 * us);
}

TEST_CASE("a flow into a dead cable fails after its timeouts, each twice as long") {
    Incast star(1);
    PacketEngine e = star.engine(4032);
    e.flap(star.down, Picoseconds(0), Picoseconds(1'000'000 * us));
    e.run(PacketEngine::never);
    REQUIRE(e.failed(0));
    const std::int64_t timeouts = (std::int64_t{2} << star.profile.spec.retries) - 1;
    const std::int64_t first = star.profile.spec.retransmission_timeout.count();
    CHECK(std::abs(e.failed_at(0).count() - timeouts * first) < timeouts * us);
}

TEST_CASE("an Ultra Ethernet window trims an incast, and without trimming loses it") {
    const std::string text = one_switch + R"(
[[window.traffic]]
kind = "incast"
senders = 7
bytes = "2 MB"
)";
    const auto run = [&](const std::vector<std::string>& more) {
        std::vector<std::string> settings = {"fabric.compute.kind=ultra_ethernet"};
        settings.insert(settings.end(), more.begin(), more.end());
        return run_first_window(text, settings);
    };
    const WindowResult trimmed = run({});
    CHECK(trimmed.totals.trimmed > 0);
    CHECK(trimmed.totals.lost_lossy == 0);
    CHECK(trimmed.totals.timeouts == 0);
    const WindowResult lost =
        run({"fabric.compute.trimming.enabled=false", "fabric.compute.buffer.queue=64 KiB"});
    CHECK(lost.totals.trimmed == 0);
    CHECK(lost.totals.lost_lossy > 0);
    CHECK(lost.end > trimmed.end);
    const WindowResult by_order =
        run({"fabric.compute.trimming.enabled=false", "fabric.compute.buffer.queue=64 KiB",
             "fabric.compute.trimming.loss_by_order=true"});
    CHECK(by_order.totals.timeouts < lost.totals.timeouts);
    // Each key changes what happens.
    for (const char* key :
         {"fabric.compute.buffer.queue=64 KiB", "fabric.compute.trimming.size=256 B",
          "fabric.compute.congestion.control=none", "fabric.compute.ecn.kmin=1 B"}) {
        CAPTURE(key);
        std::vector<std::string> settings = {key};
        if (std::string_view(key).find("kmin") != std::string_view::npos) {
            settings.emplace_back("fabric.compute.ecn.kmax=2 B");
        }
        CHECK(run(settings).digest != trimmed.digest);
    }
    // Ultra Ethernet has thresholds of its own, and one key alone is all that it replaces.
    CHECK(run({"fabric.compute.ecn.pmax=1.0"}).digest == trimmed.digest);
    CHECK(run({"fabric.compute.ecn.pmax=0.5"}).digest != trimmed.digest);
}

TEST_CASE("entropy values and their number decide which paths packets take") {
    const std::string text = R"(
[run]
duration = "1 h"
[cluster]
nodes = 16
nics_per_node = 1
[fabric.compute]
kind = "ultra_ethernet"
nodes_per_leaf = 4
[job]
step.time = "1 s"
checkpoint.mode = "none"
[[window.traffic]]
kind = "permutation"
bytes = "2 MB"
)";
    std::set<std::string> digests;
    for (const char* entropy : {"mixed", "bitmap", "reps", "oblivious"}) {
        digests.insert(
            run_first_window(text, {fmt::format("fabric.compute.transport.entropy={}", entropy)})
                .digest);
    }
    digests.insert(run_first_window(text, {"fabric.compute.transport.entropy_values=1"}).digest);
    CHECK(digests.size() == 5);
    const auto mean = [&](const std::vector<std::string>& settings) {
        const WindowResult r = run_first_window(text, settings);
        return static_cast<double>(
                   std::accumulate(r.ends.begin(), r.ends.end(), Picoseconds{}).count()) /
               static_cast<double>(r.ends.size());
    };
    // One value is one path, chosen by hash: flows collide.
    CHECK(mean({"fabric.compute.transport.entropy_values=1"}) > 1.1 * mean({}));
}

TEST_CASE("a sender whose own cable dies gives up, as those do that send to it") {
    for (const char* kind : {"ultra_ethernet", "efa"}) {
        CAPTURE(kind);
        const WindowResult r = run_first_window(one_switch + R"(
[[window.traffic]]
kind = "permutation"
bytes = "8 MiB"
[[window.fault]]
kind = "link_down"
nic = "node-1.nic-0"
start = "30 us"
)",
                                                {fmt::format("fabric.compute.kind={}", kind),
                                                 "cluster.nodes=2", "cluster.nics_per_node=1"});
        CHECK(r.ending == WindowEnding::resolved);
        CHECK(r.failures == 2);
        CHECK(r.totals.timeouts > 0);
    }
}

TEST_CASE("what was lost on the way to a slow host goes again, though its window is one packet") {
    for (const int senders : {2, 4, 7}) {
        for (const int gbits : {10, 25, 50}) {
            CAPTURE(senders);
            CAPTURE(gbits);
            const WindowResult r = run_first_window(
                one_switch + fmt::format(R"(
[[window.traffic]]
kind = "incast"
senders = {}
bytes = "2 MB"
[[window.fault]]
kind = "slow_receiver"
nic = "node-0.nic-0"
rate = "{} Gbit/s"
)",
                                         senders, gbits),
                {"fabric.compute.kind=ultra_ethernet", "fabric.compute.leaf=th5_64x800",
                 "cluster.nodes=8", "cluster.nics_per_node=1"});
            CHECK(r.ending == WindowEnding::resolved);
            CHECK(r.failures == 0);
            CHECK(r.totals.trimmed > 0);
            CHECK(r.totals.retransmitted <= r.totals.trimmed);
            // All goes at the pace of the host.
            const double ideal = senders * 2e6 * 8 / (gbits * 1e9);
            const double end = static_cast<double>(r.end.count()) * 1e-12;
            CHECK(end > ideal);
            CHECK(end < 1.03 * ideal);
        }
    }
}
