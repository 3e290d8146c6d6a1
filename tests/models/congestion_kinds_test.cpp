// The controls of InfiniBand, EFA, Spectrum-X and Ultra Ethernet's receivers: their laws, what they rest at,
// and that books agree.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/models/windows.h"
#include "tests/packets.h"

using namespace railyard;

namespace {

constexpr Bandwidth line = gbit(400);
constexpr Picoseconds round_trip(4 * us + 2 * 20 * (4096 + 64));

double seconds(Picoseconds time) {
    return time == Picoseconds::max() ? 1e30 : static_cast<double>(time.count()) * 1e-12;
}

CongestionGiven given(bool trims = false) {
    return {"", line, round_trip, trims};
}

// Senders and a receiver at one switch, 1 us of cable each.
struct Incast {
    StandaloneCatalogue own;
    PacketNetwork network;
    PacketProfile profile;
    LinkId down = 0;
    std::size_t senders;

    Incast(std::size_t count, FlowControl flow_control, std::int64_t switch_buffer = 100'000'000)
        : senders(count) {
        PacketSpec& spec = profile.spec;
        spec.payload_bytes = 4032;
        spec.header_bytes = 64;
        const bool credits = flow_control == FlowControl::credits;
        spec.classes = {{credits ? flow_control : FlowControl::none, false, 0},
                        {flow_control, true, 1}};
        spec.buffer.alpha = 1024;
        // Room for what is under way when a port pauses: there and back, and two packets.
        const std::int64_t headroom = flow_control == FlowControl::pfc ? 2 * 50'000 + 2 * 4096 : 0;
        const VertexId at =
            network.add_switch(switch_buffer + static_cast<std::int64_t>(count + 1) * headroom);
        down = network.add_cable(at, network.add_nic(), line, Picoseconds(us));
        for (std::size_t i = 0; i < senders; ++i) {
            network.add_cable(network.add_nic(), at, line, Picoseconds(us));
        }
        for (PacketLink& l : network.links) {
            l.vl_buffer_bytes = 128'000;
            l.headroom_bytes = headroom;
        }
    }
    PacketEngine engine(std::unique_ptr<Congestion> control, std::int64_t bytes = unending) const {
        PacketEngine e(network, profile.spec, std::move(control));
        for (LinkId up = down + 2; up < network.links.size(); up += 2) {
            e.add(flow_of({up, down}, bytes));
        }
        return e;
    }
};

struct Shares {
    double sum = 0;    // bit/s of payload
    double jain = 0;   // index of fairness
    double least = 0;  // over the mean
    double queue = 0;  // mean, bytes
};

// Over so many microseconds after the first so many.
Shares shares(PacketEngine& e, const Incast& star, int from_us, int for_us) {
    e.run(Picoseconds(from_us * us));
    std::vector<double> before;
    for (std::size_t f = 0; f < star.senders; ++f) {
        before.push_back(static_cast<double>(e.received_bytes(f)));
    }
    Shares s;
    for (int i = 1; i <= for_us; ++i) {
        e.run(Picoseconds((from_us + i) * us));
        s.queue += static_cast<double>(e.queue_bytes(star.down, 1)) / for_us;
    }
    double squares = 0;
    double least = 1e30;
    for (std::size_t f = 0; f < star.senders; ++f) {
        const double bytes = static_cast<double>(e.received_bytes(f)) - before[f];
        s.sum += bytes;
        squares += bytes * bytes;
        least = std::min(least, bytes);
    }
    const auto n = static_cast<double>(star.senders);
    s.jain = s.sum * s.sum / squares / n;
    s.least = least / (s.sum / n);
    s.sum *= 8 / (for_us * 1e-6);
    return s;
}

void audit_every_event(PacketEngine& e) {
    while (!e.run(PacketEngine::never, 1)) {
        const std::string wrong = e.audit();
        REQUIRE_MESSAGE(wrong.empty(), wrong);
    }
}

// Marks one packet in `rate` + 1 beyond a sixteenth of the lane's buffer.
void mark_lanes(Incast& star) {
    for (PacketLink& l : star.network.links) l.ecn = {8000, 8000, 1.0 / 11, 1.0 / 11};
}

// The controls that hold a window by delay, on the fabric of each.
struct DelayKind {
    const char* name;
    FlowControl flow_control;

    DelayControlSpec set_up(Incast& star) const {
        if (flow_control == FlowControl::none) {
            set_up_ultra_ethernet(star.own.catalogue, line, round_trip, star.profile);
        }
        return read_delay_control(star.own.catalogue, name, given());
    }
};
constexpr DelayKind delay_kinds[] = {{"srd", FlowControl::none}, {"spectrum_x", FlowControl::pfc}};

}  // namespace

// ---- InfiniBand ----

TEST_CASE("each BECN moves a sender up its table of gaps, and each timer one place back") {
    StandaloneCatalogue own;
    const InfinibandCongestionSpec spec = read_infiniband_congestion(own.catalogue, given());
    const auto control = infiniband_congestion(spec);
    Pace pace;
    control->start(0, {400e9, 4032, 4096, 0}, pace);
    CHECK(pace.bits_per_s == 400e9);
    Acknowledgement becn;
    becn.now = Picoseconds(us);
    becn.congestion = true;
    for (int i = 1; i <= 12; ++i) {
        control->acknowledged(0, becn, pace);
        CHECK(pace.bits_per_s == doctest::Approx(400e9 / (1 + spec.gap * i)));
    }
    const Picoseconds begun = becn.now;
    for (int place = 11; place >= 0; --place) {
        REQUIRE(pace.wake != Picoseconds::max());
        const Picoseconds due = pace.wake;
        control->timer(0, due, pace);
        CHECK(due == begun + (12 - place) * spec.timer);
        CHECK(pace.bits_per_s == doctest::Approx(400e9 / (1 + spec.gap * place)));
    }
    CHECK(pace.wake == Picoseconds::max());
    for (int i = 0; i < 1000; ++i) control->acknowledged(0, becn, pace);
    CHECK(pace.bits_per_s ==
          doctest::Approx(400e9 / (1 + spec.gap * static_cast<double>(spec.limit))));
}

TEST_CASE("a place in the table rests where one BECN comes back in each timer's time") {
    // One in so many packets at line / (1 + gap i) is marked: up one place for each, down one a timer.
    StandaloneCatalogue own;
    const InfinibandCongestionSpec spec = read_infiniband_congestion(own.catalogue, given());
    constexpr double packet_bits = 8 * 4096;
    for (const int marked : {300, 400, 800, 1200}) {
        CAPTURE(marked);
        const double rest_rate = marked * packet_bits / seconds(spec.timer);
        const double rest = (400e9 / rest_rate - 1) / spec.gap;
        REQUIRE(rest > 1);
        REQUIRE(rest < static_cast<double>(spec.limit));
        const auto control = infiniband_congestion(spec);
        Pace pace;
        control->start(0, {400e9, 4032, 4096, 0}, pace);
        double now = 0;  // s
        double places = 0;
        double time = 0;
        for (int packet = 1; packet <= 1'000'000; ++packet) {
            const double took = packet_bits / pace.bits_per_s;
            now += took;
            while (seconds(pace.wake) <= now) control->timer(0, pace.wake, pace);
            if (packet % marked == 0) {
                Acknowledgement becn;
                becn.now = Picoseconds(static_cast<std::int64_t>(now * 1e12));
                becn.congestion = true;
                control->acknowledged(0, becn, pace);
            }
            if (packet < 500'000) continue;
            places += (400e9 / pace.bits_per_s - 1) / spec.gap * took;
            time += took;
        }
        CHECK(std::abs(places / time - rest) < 1);
    }
}

TEST_CASE(
    "two to eight flows under InfiniBand's control share a link fairly, and waste a quarter at "
    "most") {
    for (const std::size_t n : {2U, 4U, 8U}) {
        CAPTURE(n);
        Incast star(n, FlowControl::credits);
        mark_lanes(star);
        PacketEngine e = star.engine(
            infiniband_congestion(read_infiniband_congestion(star.own.catalogue, given())));
        const Shares s = shares(e, star, 5000, 5000);
        CHECK(s.sum > 0.75 * 400e9 * 4032 / 4096);
        CHECK(s.jain > 0.95);
        CHECK(s.least > 0.6);
        CHECK(e.audit().empty());
    }
}

TEST_CASE("InfiniBand's control frees a victim of a slow receiver, and no packet is lost") {
    const auto victim_share = [](bool controlled) {
        StandaloneCatalogue own;
        TwoSwitches network(16'000'000, line);
        const LinkId slow =
            network.add_cable(network.right, network.add_nic(), gbit(50), Picoseconds(us));
        const LinkId free = network.down(network.right);
        PacketSpec spec;
        spec.classes = {{FlowControl::credits, false, 0}, {FlowControl::credits, true, 1}};
        std::vector<PacketFlow> flows;
        for (int i = 0; i < 5; ++i) {
            const LinkId up = network.up(network.left);
            flows.push_back(flow_of({up, network.middle, i < 4 ? slow : free}));
        }
        for (PacketLink& l : network.links) {
            l.vl_buffer_bytes = 128'000;
            l.ecn = {8000, 8000, 1.0 / 11, 1.0 / 11};
        }
        PacketEngine e(
            network, spec,
            controlled ? infiniband_congestion(read_infiniband_congestion(own.catalogue, given()))
                       : no_congestion_control());
        for (const PacketFlow& f : flows) e.add(f);
        e.run(Picoseconds(5000 * us));
        const std::int64_t before = e.received_bytes(4);
        e.run(Picoseconds(10'000 * us));
        CHECK(e.totals().lost_lossless == 0);
        CHECK(e.audit().empty());
        return static_cast<double>(e.received_bytes(4) - before) * 8 / 5e-3 / 400e9;
    };
    const double without = victim_share(false);
    CHECK(without < 0.2);
    CHECK(victim_share(true) > 2 * without);
}

TEST_CASE("books of credits and marks agree after every event under InfiniBand's control") {
    Incast star(4, FlowControl::credits);
    mark_lanes(star);
    PacketEngine e = star.engine(
        infiniband_congestion(read_infiniband_congestion(star.own.catalogue, given())), 400'000);
    audit_every_event(e);
    for (std::size_t f = 0; f < star.senders; ++f) CHECK(e.received_bytes(f) == 400'000);
}

// ---- windows from delay ----

TEST_CASE("a window from delay grows below its target, and falls by beta (d - T) / d above it") {
    StandaloneCatalogue own;
    for (const char* name : {"srd", "spectrum_x"}) {
        CAPTURE(name);
        const DelayControlSpec spec = read_delay_control(own.catalogue, name, given());
        const auto control = delay_control(spec);
        Pace pace;
        control->start(0, {400e9, 4032, 4096, 0}, pace);
        const double base = static_cast<double>(round_trip.count());
        CHECK(static_cast<double>(pace.window_bytes) ==
              doctest::Approx(spec.window_max * base * 0.05).epsilon(0.001));
        std::int64_t now = us;
        const auto ack = [&](double targets, std::int64_t bytes) {
            Acknowledgement a;
            now += 2 * round_trip.count();
            a.now = Picoseconds(now);
            a.came_bytes = bytes;
            a.round_trip =
                round_trip +
                Picoseconds(static_cast<std::int64_t>(targets * spec.target_delay * base));
            const auto before = static_cast<double>(pace.window_bytes);
            control->acknowledged(0, a, pace);
            return static_cast<double>(pace.window_bytes) / before;
        };
        CHECK(ack(2, 4096) == doctest::Approx(1 - spec.beta / 2).epsilon(0.001));
        CHECK(ack(100, 4096) == doctest::Approx(1 - spec.cut_max).epsilon(0.001));
        const std::int64_t window = pace.window_bytes;
        ack(0.5, window);
        CHECK(pace.window_bytes - window == doctest::Approx(spec.increase * 4096).epsilon(0.001));
    }
}

TEST_CASE(
    "a window from delay stands still where what it gains below its target is what a cut takes") {
    // In a round trip at W one acknowledgement in `turns` is late by the same: the others, W/turns each,
    // add `increase` packets in all less one part; a cut takes beta (d - T) / d of W, once in a round trip.
    StandaloneCatalogue own;
    for (const char* name : {"srd", "spectrum_x"}) {
        for (const double late : {1.2, 1.5}) {
            CAPTURE(name);
            CAPTURE(late);
            const DelayControlSpec spec = read_delay_control(own.catalogue, name, given());
            const auto control = delay_control(spec);
            Pace pace;
            control->start(0, {400e9, 4032, 4096, 0}, pace);
            const double base = static_cast<double>(round_trip.count());
            constexpr int turns = 16;
            constexpr int rounds = 2000;
            double mean = 0;
            for (int i = 0; i < turns * rounds; ++i) {
                Acknowledgement a;
                a.now = Picoseconds(static_cast<std::int64_t>((i + 1) * 1.05 * base / turns));
                a.came_bytes = pace.window_bytes / turns;
                const bool is_late = i % turns == 0;
                a.round_trip = round_trip + Picoseconds(static_cast<std::int64_t>(
                                                (is_late ? late : 0.5) * spec.target_delay * base));
                control->acknowledged(0, a, pace);
                if (i >= turns * rounds / 2) {
                    mean += static_cast<double>(pace.window_bytes) / (turns * rounds / 2);
                }
            }
            const double cut = std::min(spec.cut_max, spec.beta * (late - 1) / late);
            const double gain = spec.increase * 4096 * (turns - 1) / turns;
            // From the top W it falls to (1 - cut) W and climbs back: its mean is half a gain below.
            CHECK(mean == doctest::Approx(gain / cut - gain / 2).epsilon(0.03));
        }
    }
}

TEST_CASE(
    "two to eight flows of SRD and of Spectrum-X rest with the queue near its target, fair and "
    "full") {
    for (const DelayKind& kind : delay_kinds) {
        for (const std::size_t n : {2U, 4U, 8U}) {
            CAPTURE(std::string(kind.name));
            CAPTURE(n);
            Incast star(n, kind.flow_control);
            const DelayControlSpec spec = kind.set_up(star);
            PacketEngine e = star.engine(delay_control(spec));
            e.run(Picoseconds(1000 * us));
            const std::int64_t lost = e.totals().lost_lossy;  // of the first windows
            const Shares s = shares(e, star, 2000, 4000);
            const double target =
                spec.target_delay * static_cast<double>(round_trip.count()) * 0.05;
            CHECK(s.sum > 0.97 * 400e9 * 4032 / 4096);
            CHECK(s.jain > 0.95);
            CHECK(s.least > 0.6);
            CHECK(s.queue > 0.4 * target);
            CHECK(s.queue < 1.6 * target);
            CHECK(e.totals().lost_lossy == lost);
            CHECK(e.totals().lost_lossless == 0);
            CHECK(e.audit().empty());
        }
    }
}

TEST_CASE("a slow last link is full under SRD and Spectrum-X: its own time is no queue") {
    for (const DelayKind& kind : delay_kinds) {
        for (const int gbits : {10, 25, 50, 100, 200}) {
            CAPTURE(std::string(kind.name));
            CAPTURE(gbits);
            Incast star(1, kind.flow_control);
            star.network.links[star.down].rate = gbit(gbits);
            PacketEngine e = star.engine(delay_control(kind.set_up(star)));
            const Shares s = shares(e, star, 2000, 4000);
            CHECK(s.sum > 0.96 * gbits * 1e9 * 4032 / 4096);
            CHECK(e.audit().empty());
        }
    }
}

TEST_CASE("what SRD and Spectrum-X send arrives, and books agree after every event") {
    for (const DelayKind& kind : delay_kinds) {
        CAPTURE(std::string(kind.name));
        // A buffer that the first windows overflow: SRD loses of them, Spectrum-X is paused.
        Incast star(6, kind.flow_control, 400'000);
        PacketEngine e = star.engine(delay_control(kind.set_up(star)), 400'000);
        audit_every_event(e);
        for (std::size_t f = 0; f < star.senders; ++f) CHECK(e.received_bytes(f) == 400'000);
        if (kind.flow_control == FlowControl::none) {
            CHECK(e.totals().lost_lossy > 0);
        } else {
            std::int64_t pauses = 0;
            for (LinkId up = star.down + 2; up < star.network.links.size(); up += 2) {
                pauses += e.pauses(up, 1);
            }
            CHECK(pauses > 0);
            CHECK(e.totals().lost_lossless == 0);
        }
    }
}

// ---- receiver credits ----

TEST_CASE("receivers' credits share a link evenly among their senders, and hold no queue") {
    for (const std::size_t n : {2U, 4U, 8U}) {
        CAPTURE(n);
        Incast star(n, FlowControl::none);
        star.profile.spec.trimming.enabled = true;
        set_up_ultra_ethernet(star.own.catalogue, line, round_trip, star.profile);
        const RcccSpec spec = read_rccc(star.own.catalogue, given(true));
        PacketEngine e = star.engine(receiver_credits(spec));
        const Shares s = shares(e, star, 1000, 3000);
        CHECK(s.sum > 0.98 * spec.share * 400e9 * 4032 / 4096);
        CHECK(s.sum < 1.001 * spec.share * 400e9 * 4032 / 4096);
        CHECK(s.jain > 0.999);
        CHECK(s.queue < static_cast<double>(n) * 16384);
        CHECK(e.audit().empty());
    }
}

TEST_CASE("a receiver gives credit for what its own link carries, however fast others are") {
    for (const int gbits : {40, 100, 400}) {
        CAPTURE(gbits);
        Incast star(2, FlowControl::none);
        star.profile.spec.trimming.enabled = true;
        star.network.links[star.down].rate = gbit(gbits);
        set_up_ultra_ethernet(star.own.catalogue, line, round_trip, star.profile);
        const RcccSpec spec = read_rccc(star.own.catalogue, given(true));
        PacketEngine e = star.engine(receiver_credits(spec), 8'000'000);
        REQUIRE(e.run(Picoseconds(20'000 * us)));
        const double ideal = 2 * 8e6 * 8 * 4096 / 4032 / (spec.share * gbits * 1e9);
        CHECK(seconds(std::max(e.end(0), e.end(1))) < 1.02 * ideal + 40e-6);
        // What they begin with finds a queue that is too slow for it, once.
        CHECK(e.totals().retransmitted < 300);
        CHECK(e.audit().empty());
    }
}

TEST_CASE(
    "what a slow host has yet to take is not sent again, and its NIC holds senders to its pace") {
    for (const int gbits : {1, 10, 50, 60}) {
        for (const std::size_t n : {1U, 4U}) {
            for (const bool credits : {false, true}) {
                CAPTURE(gbits);
                CAPTURE(n);
                CAPTURE(credits);
                Incast star(n, FlowControl::none);
                star.profile.spec.trimming.enabled = true;
                set_up_ultra_ethernet(star.own.catalogue, line, round_trip, star.profile);
                const CongestionGiven all = given(true);
                const RcccSpec rccc = read_rccc(star.own.catalogue, all);
                const std::int64_t bytes = gbits * 400'000 / static_cast<std::int64_t>(n);
                PacketEngine e = star.engine(
                    credits ? receiver_credits(rccc) : nscc(read_nscc(star.own.catalogue, all)),
                    bytes);
                e.slow_receiver(star.down, gbit(gbits), {}, PacketEngine::never);
                REQUIRE(e.run(Picoseconds(20'000 * us)));
                const double ideal = 400e3 * 8 * 4096 / 4032 / 1e9;
                double last = 0;
                for (std::size_t f = 0; f < n; ++f) last = std::max(last, seconds(e.end(f)));
                CHECK(last > 0.99 * ideal);
                CHECK(last < 1.03 * ideal + 40e-6);
                CHECK(e.totals().retransmitted <= e.totals().trimmed + e.totals().lost_lossy);
                CHECK(e.audit().empty());
            }
        }
    }
}

TEST_CASE("a sender asks again when the news is lost that a slow host has taken all") {
    Incast star(1, FlowControl::none);
    set_up_ultra_ethernet(star.own.catalogue, line, round_trip, star.profile);
    PacketEngine e = star.engine(nscc(read_nscc(star.own.catalogue, given())), 40'320);
    e.slow_receiver(star.down, gbit(10), {}, PacketEngine::never);
    // All has come; while the host takes the last of it, the way back is down.
    e.flap(star.down, Picoseconds(20 * us), Picoseconds(60 * us));
    REQUIRE(e.run(Picoseconds(1000 * us)));
    CHECK(e.received_bytes(0) == 40'320);
    CHECK_FALSE(e.failed(0));
    CHECK(e.audit().empty());
}

TEST_CASE("a receiver rests where each sender has what it wants ahead, and no more") {
    StandaloneCatalogue own;
    const RcccSpec spec = read_rccc(own.catalogue, given(true));
    const auto control = receiver_credits(spec);
    Pace pace;
    control->start(0, {400e9, 4032, 4096, 0}, pace);
    const auto ahead =
        static_cast<std::int64_t>(spec.window_max * static_cast<double>(round_trip.count()) * 0.05);
    CHECK(pace.window_bytes == ahead + 4095);  // less than a packet of credit is enough for one
    constexpr std::int64_t backlog = 1'000'000'000;
    Acknowledgement a;
    a.now = round_trip;
    a.sent_bytes = 2 * 4096;
    a.under_way_bytes = 4096;
    a.wanted_bytes = control->wanted(0, 4096, backlog, 1);
    // While it speculates it wants as much as it has sent.
    CHECK(a.wanted_bytes == 4096);
    control->acknowledged(0, a, pace);
    CHECK(pace.window_bytes == 4096 + 4095);  // what was left is void
    // Nothing more is sent: what it said is given at once, then its turns as one that wants nothing.
    Picoseconds first{};
    Picoseconds last{};
    std::int64_t turns = 0;
    for (; pace.wake != Picoseconds::max(); ++turns) {
        last = pace.wake;
        if (turns == 0) first = last;
        control->timer(0, last, pace);
    }
    const std::int64_t given_bytes = pace.window_bytes - 4096 - 4095;
    CHECK(given_bytes >= a.wanted_bytes + ahead);
    CHECK(given_bytes < a.wanted_bytes + ahead + spec.grant_bytes);
    // At the receiver's pace.
    const double seconds = static_cast<double>((last - first).count()) * 1e-12;
    CHECK(static_cast<double>(given_bytes - spec.grant_bytes) * 8 / seconds ==
          doctest::Approx(spec.share * 400e9).epsilon(0.01));
    // What it has ahead it no longer wants; flows that share its NIC want a part each.
    CHECK(control->wanted(0, a.sent_bytes, backlog, 1) <= given_bytes);
    CHECK(control->wanted(0, a.sent_bytes + given_bytes, backlog, 4) ==
          doctest::Approx(static_cast<double>(given_bytes + ahead / 4)).epsilon(0.001));
}

TEST_CASE("what times out needs credit to go again, though less than nothing be under way then") {
    StandaloneCatalogue own;
    const auto control = receiver_credits(read_rccc(own.catalogue, given(true)));
    Pace pace;
    control->start(0, {400e9, 4032, 4096, 0}, pace);
    Acknowledgement a;
    a.now = round_trip;
    a.sent_bytes = 2 * 4096;
    a.under_way_bytes = 4096;
    control->acknowledged(0, a, pace);
    CHECK(pace.window_bytes == 4096 + 4095);
    for (int lost = 1; lost <= 3; ++lost) {  // some of them had come
        control->timed_out(0, {a.now, 0, 2, 4096}, pace);
        CHECK(pace.window_bytes == (1 - lost) * 4096 + 4095);
    }
}

TEST_CASE("with both controls the smaller window holds, and a sender wants no more than that") {
    StandaloneCatalogue own;
    const RcccSpec spec = read_rccc(own.catalogue, given(true));
    const auto both = receiver_credits(spec, nscc(read_nscc(own.catalogue, given(true))));
    const auto window = nscc(read_nscc(own.catalogue, given(true)));
    Pace pace;
    Pace alone;
    both->start(0, {400e9, 4032, 4096, 0}, pace);
    window->start(0, {400e9, 4032, 4096, 0}, alone);
    CHECK(pace.window_bytes == alone.window_bytes);
    Acknowledgement a;
    a.congestion = true;
    a.sent_bytes = a.under_way_bytes = 100 * 4096;
    a.came_bytes = 16384;
    a.round_trip = 6 * round_trip;
    for (int i = 1; i < 200; ++i) {
        a.now = i * round_trip;
        both->acknowledged(0, a, pace);
        window->acknowledged(0, a, alone);
        CHECK(pace.window_bytes <= alone.window_bytes);
    }
    constexpr std::int64_t backlog = 1'000'000'000;
    CHECK(both->wanted(0, 1'000'000, backlog, 1) - both->wanted(0, 0, 0, 1) <=
          1'000'000 + alone.window_bytes + 4096 + 256);
}

TEST_CASE("what receivers give is sent, and books agree after every event") {
    Incast star(6, FlowControl::none);
    star.profile.spec.trimming.enabled = true;
    star.profile.spec.lossy_queue_bytes = 10 * 4096;
    set_up_ultra_ethernet(star.own.catalogue, line, round_trip, star.profile);
    PacketEngine e =
        star.engine(receiver_credits(read_rccc(star.own.catalogue, given(true))), 400'000);
    audit_every_event(e);
    for (std::size_t f = 0; f < star.senders; ++f) CHECK(e.received_bytes(f) == 400'000);
    CHECK(e.totals().retransmitted == e.totals().trimmed);
    CHECK(e.totals().trimmed > 0);
}

// ---- none starves ----

TEST_CASE(
    "a late flow gets its share and a short one ends, beside long ones, under every control") {
    struct Kind {
        const char* name;
        FlowControl flow_control;
        bool trims;
        std::unique_ptr<Congestion> (*control)(Incast& star);
    };
    const Kind kinds[] = {
        {"nscc", FlowControl::none, true,
         [](Incast& s) { return nscc(read_nscc(s.own.catalogue, given(true))); }},
        {"rccc", FlowControl::none, true,
         [](Incast& s) { return receiver_credits(read_rccc(s.own.catalogue, given(true))); }},
        {"srd", FlowControl::none, false,
         [](Incast& s) {
             return delay_control(read_delay_control(s.own.catalogue, "srd", given()));
         }},
        {"spectrum_x", FlowControl::pfc, false,
         [](Incast& s) {
             return delay_control(read_delay_control(s.own.catalogue, "spectrum_x", given()));
         }},
        {"infiniband_cc", FlowControl::credits, false, [](Incast& s) {
             return infiniband_congestion(read_infiniband_congestion(s.own.catalogue, given()));
         }}};
    for (const Kind& kind : kinds) {
        CAPTURE(std::string(kind.name));
        Incast star(4, kind.flow_control);
        star.profile.spec.trimming.enabled = kind.trims;
        if (kind.flow_control == FlowControl::none) {
            set_up_ultra_ethernet(star.own.catalogue, line, round_trip, star.profile);
            star.network.links[star.down].ecn = star.profile.ecn->at(line);
        } else {
            mark_lanes(star);
        }
        PacketEngine e(star.network, star.profile.spec, kind.control(star));
        const auto add = [&](std::size_t sender, std::int64_t bytes, std::int64_t start_us) {
            const auto up = static_cast<LinkId>(star.down + 2 * (sender + 1));
            PacketFlow f = flow_of({up, star.down}, bytes);
            f.start = Picoseconds(start_us * us);
            return e.add(f);
        };
        for (std::size_t sender = 0; sender < 3; ++sender) add(sender, unending, 0);
        const std::size_t late = add(3, unending, 2000);
        const std::size_t small = add(3, 64 * 1024, 8000);
        e.run(Picoseconds(4000 * us));
        const auto late_before = static_cast<double>(e.received_bytes(late));
        const auto first_before = static_cast<double>(e.received_bytes(0));
        e.run(Picoseconds(8000 * us));
        const double of_late = static_cast<double>(e.received_bytes(late)) - late_before;
        const double of_first = static_cast<double>(e.received_bytes(0)) - first_before;
        CHECK(of_late > 0.5 * of_first);
        CHECK(of_first > 0.5 * of_late);
        e.run(Picoseconds(9000 * us));
        CHECK(e.received_bytes(small) == 64 * 1024);
        CHECK(e.audit().empty());
    }
}

// ---- as scenarios ask for them ----

TEST_CASE("each fabric of 2026 runs an incast beside a permutation, and no two alike") {
    const std::string text = R"(
[run]
duration = "1 h"
[cluster]
nodes = 16
nics_per_node = 1
[fabric.compute]
topology = "fat_tree"
nodes_per_leaf = 4
[job]
step.time = "1 s"
checkpoint.mode = "none"
[[window.traffic]]
kind = "permutation"
bytes = "1 MB"
[[window.traffic]]
kind = "incast"
senders = 8
bytes = "1 MB"
)";
    using Settings = std::vector<std::string>;
    const std::string control = "fabric.compute.congestion.control=";
    std::set<std::string> digests;
    for (const Settings& settings :
         {Settings{"fabric.compute.kind=infiniband"},
          Settings{"fabric.compute.kind=infiniband", control + "infiniband_cc"},
          Settings{"fabric.compute.kind=infiniband", control + "infiniband_cc",
                   "fabric.compute.congestion.cct_timer=20 us"},
          Settings{"fabric.compute.kind=infiniband", control + "infiniband_cc",
                   "fabric.compute.congestion.cct_limit=2"},
          Settings{"fabric.compute.kind=roce", "fabric.compute.routing=adaptive",
                   control + "spectrum_x"},
          Settings{"fabric.compute.kind=roce", "fabric.compute.routing=adaptive",
                   control + "spectrum_x", "fabric.compute.transport.queue_step=64 KiB"},
          Settings{"fabric.compute.kind=ultra_ethernet"},
          Settings{"fabric.compute.kind=ultra_ethernet", control + "rccc"},
          Settings{"fabric.compute.kind=ultra_ethernet", control + "nscc_rccc"},
          Settings{"fabric.compute.kind=efa"}}) {
        CAPTURE(fmt::format("{} {}", settings[0], settings.back()));
        const WindowResult r = run_first_window(text, settings);
        CHECK(r.totals.lost_lossless == 0);
        CHECK(std::none_of(r.ends.begin(), r.ends.end(),
                           [](Picoseconds end) { return end == PacketEngine::never; }));
        CHECK(digests.insert(r.digest).second);
    }
}

TEST_CASE("nothing starves in a queue of EFA that holds two packets or a few") {
    const std::string text = one_switch + R"(
[[window.traffic]]
kind = "permutation"
bytes = "2 MiB"
[[window.traffic]]
kind = "incast"
senders = 7
bytes = "2 MiB"
)";
    for (const int kilobytes : {9, 10, 14, 20, 40}) {
        CAPTURE(kilobytes);
        const WindowResult r = run_first_window(
            text, {"fabric.compute.kind=efa",
                   fmt::format("fabric.compute.buffer.queue=\"{} kB\"", kilobytes)});
        CHECK(r.totals.lost_lossy > 0);
        CHECK(r.ending == WindowEnding::resolved);
        CHECK(r.failures == 0);
    }
}

// One flow to a NIC whose cable is down for two seconds from the start.
TEST_CASE("a sender comes through a flap, or gives up, when its timeouts say so") {
    const std::string text = one_switch + R"(
[[window.traffic]]
kind = "incast"
senders = 1
bytes = "4 KiB"
[[window.fault]]
kind = "link_down"
nic = "node-0.nic-0"
duration = "2 s"
)";
    for (const std::string kind : {"roce", "infiniband", "efa", "ultra_ethernet"}) {
        CAPTURE(kind);
        ScenarioChanges changes;
        changes.packets = true;
        changes.settings = {"fabric.compute.kind=" + kind};
        const Scenario s = load_scenario(text, "flap", changes);
        const NetworkWindow window = packet_windows(s)[0];
        const PacketSpec& spec = window.network->packets.spec;
        StandaloneCatalogue own = s.open_catalogue();
        const auto still =
            stands_still(own.catalogue, window.network->packets, std::chrono::seconds(2));
        const WindowResult r = run_to_its_end(s, window);
        CHECK(r.failed[0] == !still.has_value());
        constexpr std::int64_t some = 20'000'000;  // a round trip, in picoseconds
        if (still) {
            CHECK(*still >= std::chrono::seconds(2));
            CHECK(std::abs((r.ends[0] - *still).count()) < some);
        } else {
            CHECK(timeouts_take(spec, spec.retries + 1) < std::chrono::seconds(2));
        }
    }
}

TEST_CASE("receivers that follow an oversubscribed core have little trimmed and use most of it") {
    const std::string text = R"(
[run]
duration = "1 h"
[cluster]
nodes = 16
nics_per_node = 4
[fabric.compute]
kind = "ultra_ethernet"
topology = "fat_tree"
nodes_per_leaf = 4
oversubscription = 4
congestion.control = "rccc"
[job]
step.time = "1 s"
checkpoint.mode = "none"
[[window.traffic]]
kind = "permutation"
bytes = "8 MiB"
)";
    const auto run = [&](const char* followed) {
        return run_first_window(
            text, {std::string("fabric.compute.congestion.oversubscribed_cc=") + followed});
    };
    const WindowResult blind = run("false");
    const WindowResult follows = run("true");
    CHECK(run_first_window(text, {}).digest == follows.digest);  // the tree is oversubscribed
    CHECK(follows.totals.trimmed < blind.totals.trimmed / 10);
    CHECK(follows.end < 2 * blind.end);
}

TEST_CASE(
    "messages that follow one another on a queue pair never starve under receivers' credits") {
    const std::string text = one_switch + R"(
[[window.traffic]]
kind = "ring"
steps = 30
bytes = "256 KiB"
[[window.traffic]]
kind = "ring"
steps = 30
bytes = "200 KiB"
[[window.traffic]]
kind = "all_to_all"
bytes = "256 KiB"
)";
    for (const char* control : {"rccc", "nscc_rccc"}) {
        CAPTURE(control);
        const WindowResult r =
            run_first_window(text, {"fabric.compute.kind=ultra_ethernet",
                                    std::string("fabric.compute.congestion.control=") + control});
        CHECK(r.ending == WindowEnding::resolved);
        CHECK(r.failures == 0);
    }
}

TEST_CASE(
    "credit that comes before the first acknowledgement is not lost with what was speculated") {
    // A small ring beside a large one: pairs stop, and begin again with credit that was given in advance.
    const std::string rings = R"(
[run]
duration = "1 h"
[cluster]
nodes = 2
[fabric.compute]
kind = "ultra_ethernet"
topology = "fat_tree"
leaf = "sn5600_spectrum4"
nodes_per_leaf = 1
[job]
step.time = "1 s"
checkpoint.mode = "none"
[[window.traffic]]
kind = "ring"
bytes = "1 MiB"
[[window.traffic]]
kind = "ring"
bytes = "4 KiB"
)";
    for (const char* control : {"rccc", "nscc_rccc"}) {
        CAPTURE(control);
        const WindowResult r =
            run_first_window(rings, {std::string("fabric.compute.congestion.control=") + control});
        CHECK(r.ending == WindowEnding::resolved);
        CHECK(r.totals.lost_lossy == 0);
        CHECK(r.failures == 0);
    }
}

TEST_CASE("a sender without credit asks again when its request is lost, and gives up in the end") {
    const std::string outage = one_switch + R"(
[[window.traffic]]
kind = "incast"
senders = 1
bytes = "1 MiB"
[[window.fault]]
kind = "link_down"
nic = "node-0.nic-0"
start = "3 us"
duration = "50 us"
)";
    for (const char* control : {"rccc", "nscc", "nscc_rccc"}) {
        CAPTURE(control);
        const std::string chosen = std::string("fabric.compute.congestion.control=") + control;
        const std::string kind = "fabric.compute.kind=ultra_ethernet";
        const WindowResult passes = run_first_window(outage, {kind, chosen});
        CHECK(passes.ending == WindowEnding::resolved);
        CHECK(passes.failures == 0);
        const WindowResult stays =
            run_first_window(outage, {kind, chosen, "window.fault.0.duration=1 h"});
        CHECK(stays.failures == 1);
    }
}

TEST_CASE("TCP's flowlets wait for a gap, which packets that choose one by one do not") {
    const std::string text = R"(
[run]
duration = "1 h"
[cluster]
nodes = 8
[fabric.compute]
kind = "tcp"
topology = "fat_tree"
nodes_per_leaf = 2
[job]
step.time = "1 s"
checkpoint.mode = "none"
[[window.traffic]]
kind = "permutation"
bytes = "1 MB"
)";
    const auto digest = [&](const std::vector<std::string>& settings) {
        return run_first_window(text, settings).digest;
    };
    const std::string flowlet = "fabric.compute.routing=flowlet";
    const std::string gap = "fabric.compute.transport.flowlet_gap=";
    CHECK(digest({flowlet}) != digest({"fabric.compute.routing=adaptive"}));
    CHECK(digest({flowlet, gap + "1 ns"}) != digest({flowlet, gap + "1 s"}));
}
