// Breakers and pumps on the campaign's clock, against closed forms.

#include "models/campaign/feeds.h"

#include <doctest/doctest.h>

#include "models/campaign/campaign.h"

using namespace railyard;

namespace {

// Notes what is taken, and when.
struct Taken : Renewals::Target {
    explicit Taken(CampaignEngine& e) : engine(e) {}
    void failed(const Strike& strike) override {
        taken.emplace_back(seconds(engine.now().time_since_epoch()), strike.slot);
        if (then) then();
    }
    CampaignEngine& engine;
    std::function<void()> then;
    std::vector<std::pair<double, std::int64_t>> taken;
};

Strike strike_on(std::int64_t loop) {
    Strike out;
    out.slot = loop;
    return out;
}

// Calls back at an instant.
struct At : CampaignEngine::Component {
    At(CampaignEngine& e, double s, std::function<void()> what) : call(std::move(what)) {
        e.schedule(Instant(from_seconds(s)), e.add(*this, "at"), 0);
    }
    void handle(std::uint32_t) override { call(); }
    std::function<void()> call;
};

PowerSpec power(const std::string& more) {
    return load_scenario(R"(
[run]
duration = "1 day"
[cluster]
nodes = 8
[job]
step.time = "5 s"
checkpoint.mode = "none"
)" + more,
                         "feeds")
        .power;
}

// A job on all nodes, and what it draws of its breakers.
struct Watched {
    Watched(CampaignEngine& engine, Taken& taken, const PowerSpec& power, std::int64_t nodes)
        : spec(power), idle(steady(power.node.at(Activity::idle))) {
        feeds.emplace(engine, taken, power, loops, nodes, 1, power.node_step, 1, 0);
        gpus.push_back(NodeRun{0, static_cast<std::uint32_t>(nodes), 1});
    }
    void steps() { feeds->set(0, {&spec.node_step, spec.gpu_mean}, gpus, 1); }
    void waits() { feeds->set(0, {&idle, spec.node.gpu.idle}, gpus, 1); }

    const PowerSpec& spec;
    PowerProfile idle;
    FailureDomains loops;
    Allocation gpus;
    std::optional<Feeds> feeds;
};

const std::string overloaded = R"(
[facility]
rack_power_max = "60 kW"
[facility.breaker]
rating = "6.9 kW"
nodes = 1
tolerance = 0.0
)";

}  // namespace

TEST_CASE("a job's breakers trip after the curve's time at its load, all alike at once") {
    const PowerSpec p = power(overloaded);
    CampaignEngine engine;
    Taken taken(engine);
    Watched watch(engine, taken, p, 8);
    watch.steps();
    engine.run(Instant(std::chrono::hours(1)), 8);
    REQUIRE(taken.taken.size() == 8);
    const double load = p.node_step.peak().value / 6900;
    CHECK(taken.taken[0].first == doctest::Approx(p.breaker->curve.seconds_at(load)));
    CHECK(watch.feeds->counts().breaker_trips == 8);
}

TEST_CASE("the first to trip ends the job, and its pause saves the others") {
    PowerSpec p = power(overloaded);
    p.breaker->tolerance = 0.03;
    CampaignEngine engine;
    Taken taken(engine);
    Watched watch(engine, taken, p, 8);
    taken.then = [&] { watch.waits(); };
    watch.steps();
    engine.run(Instant(std::chrono::hours(5)), 1000);
    CHECK(taken.taken.size() == 1);
}

TEST_CASE("pauses cool a breaker: it trips later by what they give back") {
    const PowerSpec p = power(overloaded);
    CampaignEngine engine;
    Taken taken(engine);
    Watched watch(engine, taken, p, 1);
    const double trips = p.breaker->curve.seconds_at(p.node_step.peak().value / 6900);
    watch.steps();
    At pause(engine, 0.8 * trips, [&] { watch.waits(); });
    At again(engine, 0.8 * trips + 600, [&] { watch.steps(); });
    engine.run(Instant(std::chrono::hours(5)), 1000);
    REQUIRE(taken.taken.size() == 1);
    CHECK(taken.taken[0].first ==
          doctest::Approx(0.8 * trips + 600 + (1 - 0.8 * std::exp(-1.0)) * trips));
}

TEST_CASE("a breaker that no load of the job can trip is not watched") {
    const PowerSpec p = power(R"(
[facility.breaker]
rating = "22.2 kW"
nodes = 2
)");
    CampaignEngine engine;
    Taken taken(engine);
    Watched watch(engine, taken, p, 8);
    watch.steps();
    engine.run(Instant(std::chrono::hours(24)), 10);
    CHECK(engine.events() == 0);
}

TEST_CASE(
    "a pump's loss takes the nodes behind it when they have shut down, or is ridden through") {
    const std::string loop = R"(
[facility]
cooling = "direct_liquid"
[facility.pump]
failure_rate = "0 /year"
)";
    const PowerSpec p = power(loop);
    CampaignEngine engine;
    Taken taken(engine);
    const auto running = [&p](std::int64_t) { return p.gpu_mean; };
    PumpWatch watch(engine, taken, p, running, 1, 0);
    At loss(engine, 100, [&] { watch.failed(strike_on(1)); });
    engine.run(Instant(std::chrono::hours(1)), 100);
    REQUIRE(taken.taken.size() == 1);
    CHECK(taken.taken[0].second == 1);
    const double after = taken.taken[0].first - 100;
    CHECK(after > 45);   // from full load to throttling alone
    CHECK(after < 300);  // clocks fall, and with them the heat

    const PowerSpec standby = power(loop + "standby = true\n");
    CampaignEngine other;
    Taken none(other);
    PumpWatch second(other, none, standby, running, 1, 0);
    second.failed(strike_on(1));
    other.run(Instant(std::chrono::hours(1)), 100);
    CHECK(none.taken.empty());
    CHECK(second.ridden_through() == 1);
}
