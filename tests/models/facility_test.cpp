// Power, heat, breakers and cooling against closed forms, brute force and published figures.

#include "models/facility/facility.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace railyard;

namespace {

NodePower node(const std::string& name, const std::string& gpu, const std::string& nic,
               std::int64_t gpus, std::int64_t nics, std::int64_t storage_nics, double liquid = 0) {
    StandaloneCatalogue c;
    return read_node_power(c.catalogue, {name, gpu, nic, gpus, nics, storage_nics}, liquid);
}
NodePower dgx_h100() {
    return node("dgx_h100", "h100_sxm", "cx7_ndr400", 8, 8, 2);
}
Cooling cooling(CoolingKind kind, double gpu_max = 700) {
    StandaloneCatalogue c;
    return read_cooling(c.catalogue, kind, {gpu_max});
}
ThrottleLaw throttle_law() {
    StandaloneCatalogue c;
    return read_throttle_law(c.catalogue);
}
TripCurve trip_curve() {
    StandaloneCatalogue c;
    return read_trip_curve(c.catalogue);
}

constexpr auto ms = [](std::int64_t n) { return Duration(n * 1'000'000); };
const PowerProfile swing({{ms(700), {1300}}, {ms(300), {400}}});

}  // namespace

TEST_CASE("a node's parts sum to what it draws, and an idle one draws what the catalogue says") {
    const NodePower n = dgx_h100();
    const NodePower::Parts p = n.parts(500);
    CHECK(p.total() == doctest::Approx(n.at(500.0).value));
    CHECK(p.gpus == 4000);
    CHECK(p.conversion == doctest::Approx(0.05 * p.total()));
    CHECK(n.at(Activity::idle).value == doctest::Approx(1900).epsilon(1e-6));
    CHECK(node("gb200_nvl72", "gb200", "cx7_ndr400", 72, 72, 0, 0.85).at(Activity::idle).value ==
          doctest::Approx(25000).epsilon(1e-6));
}

TEST_CASE("published: a DGX H100 that trains peaks at 8.4 kW, 82 % of its rating") {
    const NodePower n = dgx_h100();
    CHECK(n.rated.value == 10200);
    CHECK(n.peak().value == doctest::Approx(8400).epsilon(0.03));
    CHECK(n.peak().value / n.rated.value == doctest::Approx(0.82).epsilon(0.03));
}

TEST_CASE("published: 32 DGX B200 are built for 458 kW; an NVL72 rack draws some 120 kW") {
    CHECK(32 * node("dgx_b200", "b200_sxm", "cx7_ndr400", 8, 8, 2).rated.value ==
          doctest::Approx(458e3).epsilon(0.001));
    // 12 % low: the trays alone, 18 x 5.4 kW, and 9 switch trays come to 101 to 106 kW.
    const NodePower nvl = node("gb200_nvl72", "gb200", "cx7_ndr400", 72, 72, 0, 0.85);
    CHECK(nvl.peak().value == doctest::Approx(120e3).epsilon(0.15));
    CHECK(nvl.peak() < nvl.rated);
}

TEST_CASE("a cap slows multiplications by its law, and its inverse gives the power back") {
    GpuPower g = dgx_h100().gpu;
    CHECK(g.speed_at(g.max) == 1);
    CHECK(g.speed_at({0.6 * g.max.value}) == doctest::Approx(std::pow(0.6, 0.45)));
    for (const double speed : {0.99, 0.9, 0.8}) {
        CHECK(g.speed_at({g.compute_power_at(speed).value / g.compute_fraction}) ==
              doctest::Approx(speed));
    }
    g.cap = {500};
    CHECK(g.at(Activity::compute).value == 500);
    CHECK(g.at(Activity::communication).value == doctest::Approx(245));
}

TEST_CASE("a profile's energy is its levels', exactly") {
    CHECK(swing.energy() ==
          Picojoules{700'000'000} * 1'300'000 + Picojoules{300'000'000} * 400'000);
    CHECK(swing.mean().value == doctest::Approx(1030));
    CHECK(swing.peak().value == 1300);
    CHECK(swing.low().value == 400);
    CHECK(swing.times(32, {100}).peak().value == 32 * 1300 + 100);
}

TEST_CASE("a GPU approaches its temperature exponentially") {
    const GpuCooling c{{25}, {0.075}, std::chrono::seconds(8)};
    CHECK(c.settled({700}).value == doctest::Approx(77.5));
    for (const int t : {1, 8, 30}) {
        CHECK(c.after({25}, {700}, std::chrono::seconds(t)).value ==
              doctest::Approx(77.5 - 52.5 * std::exp(-t / 8.0)));
    }
}

TEST_CASE("the peak of a swing that has gone on for long is where stepping through it ends") {
    const GpuCooling c{{25}, {0.075}, std::chrono::seconds(3)};
    const PowerProfile gpu({{ms(2000), {686}}, {ms(1000), {245}}});
    double t = 25;
    double highest = 0;
    constexpr double dt = 1e-3;
    for (int i = 0; i < 60'000; ++i) {
        const double p = i % 3000 < 2000 ? 686 : 245;
        t += dt / 3 * (25 + 0.075 * p - t);
        if (i > 45'000) highest = std::max(highest, t);
    }
    CHECK(c.peak(gpu).value == doctest::Approx(highest).epsilon(1e-3));
    CHECK(c.peak(gpu) > c.settled(gpu.mean()));
    CHECK(c.peak(gpu) < c.settled(gpu.peak()));
}

TEST_CASE(
    "throttling starts where the published losses meet none, and holds speed and heat together") {
    const ThrottleLaw law = throttle_law();
    CHECK(law.starts.value == doctest::Approx(83.75));  // within the 83 to 87 that are published
    CHECK(law.speed_at({85}) == doctest::Approx(0.93));
    CHECK(law.speed_at({90}) == doctest::Approx(0.65));
    const GpuPower g = dgx_h100().gpu;
    const GpuStep step{ms(900), {}, ms(100), {}};
    GpuCooling c = cooling(CoolingKind::air).gpu;
    CHECK(settle(g, c, law, step).speed == 1);
    double last = 1;
    for (const double inlet : {36.0, 40.0, 45.0}) {
        c.inlet = {inlet};
        const HeatState hot = settle(g, c, law, step);
        CAPTURE(inlet);
        CHECK(hot.speed < last);
        CHECK(hot.speed == doctest::Approx(law.speed_at(hot.gpu)).epsilon(1e-6));
        CHECK(!hot.shuts_down);
        last = hot.speed;
    }
}

TEST_CASE("memory has a limit of its own: it can be slow while the clocks are not") {
    ThrottleLaw law = throttle_law();
    law.hbm_resistance_ratio = 1.5;  // a pad that does not sit well
    const GpuPower g = dgx_h100().gpu;
    const GpuStep step{ms(1000), {}, {}, {}};
    const HeatState state = settle(g, cooling(CoolingKind::air).gpu, law, step);
    CHECK(state.speed == 1);
    CHECK(state.hbm_speed == doctest::Approx(0.74));
    CHECK(settle(g, cooling(CoolingKind::air).gpu, throttle_law(), step).hbm_speed == 1);
}

TEST_CASE("at constant overload a breaker trips after its curve's time, at its rating never") {
    const TripCurve curve = trip_curve();
    for (const auto& [load, trips] :
         {std::pair(1.2, 600.0), std::pair(1.5, 60.0), std::pair(2.0, 20.0), std::pair(5.0, 0.1)}) {
        const Breaker b(curve, {1000});
        CHECK(curve.seconds_at(load) == doctest::Approx(trips));
        const auto when = b.until_trip(b.load(PowerProfile({{ms(10), {1000 * load}}})));
        REQUIRE(when);
        CHECK(seconds(*when) == doctest::Approx(trips));
    }
    // Straight in the logarithms: 1.3 lies log(1.3/1.2)/log(1.5/1.2) of the way from 600 s to 60 s.
    CHECK(curve.seconds_at(1.3) ==
          doctest::Approx(600 * std::pow(0.1, std::log(1.3 / 1.2) / std::log(1.25))));
    const Breaker at_rating(curve, {1000});
    CHECK(!at_rating.until_trip(at_rating.load(PowerProfile({{ms(10), {1000}}}))));
}

TEST_CASE("a breaker that bears the mean of a swing trips on its peaks; cold pauses save it") {
    // 1300 W for 0.7 of each second, 400 W for the rest: the mean is 3 % above a rating of 1 kW.
    const auto until_trip = [](double rating, const PowerProfile& profile) {
        const Breaker b(trip_curve(), {rating});
        return b.until_trip(b.load(profile));
    };
    Breaker stepped(trip_curve(), {1000});
    const Breaker::Load peak = stepped.load(PowerProfile({{ms(10), {1300}}}));
    const Breaker::Load pause = stepped.load(PowerProfile({{ms(10), {400}}}));
    double t = 0;
    while (stepped.warmth() < 1 && t < 5000) {
        stepped.carry(peak, ms(700));
        t += 0.7;
        if (stepped.warmth() >= 1) break;
        stepped.carry(pause, ms(300));
        t += 0.3;
    }
    const auto when = until_trip(1000, swing);
    REQUIRE(when);
    CHECK(seconds(*when) == doctest::Approx(t).epsilon(2e-3));
    CHECK(!until_trip(1000, PowerProfile({{ms(200), {1300}}, {ms(800), {400}}})));
    // A rating above the mean does not save it: 1.1 kW bears 1030 W for ever, but not these peaks.
    CHECK(swing.mean().value < 1100);
    CHECK(until_trip(1100, swing));
    CHECK(!until_trip(1300, swing));
}

TEST_CASE("a breaker that has rested for a month is as cold as a new one") {
    Breaker b(trip_curve(), {1000});
    const Breaker::Load load = b.load(PowerProfile({{ms(10), {1200}}}));
    const std::optional<Duration> cold = b.until_trip(load);
    REQUIRE(cold);
    b.carry(load, *cold / 2);
    CHECK(b.until_trip(load) < cold);
    b.carry(b.load(PowerProfile({{ms(1000), {400}}})), std::chrono::hours(24 * 30));
    CHECK(b.warmth() == 0);
    CHECK(b.until_trip(load) == cold);
}

TEST_CASE("what a breaker has carried shortens what it still bears, and cooling gives it back") {
    Breaker b(trip_curve(), {1000});
    const Breaker::Load load = b.load(PowerProfile({{ms(10), {1200}}}));
    b.carry(load, std::chrono::seconds(450));
    CHECK(b.warmth() == doctest::Approx(0.75));
    CHECK(seconds(*b.until_trip(load)) == doctest::Approx(150));
    b.carry(b.load(PowerProfile({{ms(10), {500}}})), std::chrono::seconds(600));
    CHECK(b.warmth() == doctest::Approx(0.75 / std::exp(1.0)));
}

TEST_CASE("a loop without its pump rides through as long as the catalogue says at full load") {
    const GpuPower g = dgx_h100().gpu;
    const ThrottleLaw law = throttle_law();
    const Cooling loop = cooling(CoolingKind::direct_liquid);
    const double capacity = heat_capacity(g, loop.gpu, law, loop.ride_through);
    const Watts full = g.at(Activity::compute);
    const Duration shutdown = lose_cooling(g, loop.gpu, law, capacity, full);
    CHECK(capacity * (law.starts.value - loop.gpu.settled(full).value) / full.value ==
          doctest::Approx(45));
    CHECK(lose_cooling(g, loop.gpu, law, capacity, {0.5 * full.value}) > 1.5 * shutdown);
    // Clocks that don't fall: heat flows in at a constant rate, a straight line to the shutdown.
    ThrottleLaw rigid = law;
    rigid.loss_per_kelvin = 0;
    const Duration straight = lose_cooling(g, loop.gpu, rigid, capacity, full);
    CHECK(seconds(straight) ==
          doctest::Approx(capacity * (92 - loop.gpu.settled(full).value) / full.value));
    CHECK(shutdown > straight);  // slower clocks buy time
}
