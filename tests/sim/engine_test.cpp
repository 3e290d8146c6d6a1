#include "sim/engine.h"

#include <doctest/doctest.h>

#include "sim/units.h"

using namespace railyard;
using NanoEngine = Engine<Nanoseconds>;

namespace {

// Schedules `count` events `gap` apart, one from the other.
struct Ticker : NanoEngine::Component {
    NanoEngine& engine;
    NanoEngine::ComponentId id;
    Duration gap;
    int left;
    int handled = 0;
    Ticker(NanoEngine& e, Duration g, int count)
        : engine(e), id(e.add(*this, "ticker")), gap(g), left(count) {
        engine.schedule(engine.now() + gap, id, 0);
    }
    void handle(std::uint32_t) override {
        ++handled;
        if (--left > 0) engine.schedule(engine.now() + gap, id, 0);
    }
};

}  // namespace

TEST_CASE("an event at the very end happens, one after it does not") {
    NanoEngine engine;
    Ticker ticker(engine, Duration(10), 100);
    CHECK(engine.run(NanoEngine::Instant(Duration(30))) == NanoEngine::Outcome::reached_end);
    CHECK(ticker.handled == 3);
    CHECK(engine.now() == NanoEngine::Instant(Duration(30)));
    engine.run(NanoEngine::Instant(Duration(39)));
    CHECK(ticker.handled == 3);
}

TEST_CASE("an endless run ends when nothing is left") {
    NanoEngine engine;
    Ticker ticker(engine, Duration(10), 5);
    CHECK(engine.run(NanoEngine::Instant::max()) == NanoEngine::Outcome::drained);
    CHECK(engine.now() == NanoEngine::Instant(Duration(50)));
}

TEST_CASE("a limit of events is a limit") {
    NanoEngine engine;
    Ticker ticker(engine, Duration(10), 100);
    CHECK(engine.run(NanoEngine::Instant::max(), 7) == NanoEngine::Outcome::limit);
    CHECK(ticker.handled == 7);
}

TEST_CASE("the trajectory is the same for the same run and another for another") {
    const auto trajectory = [](int gap) {
        NanoEngine engine;
        Ticker ticker(engine, Duration(gap), 20);
        engine.run(NanoEngine::Instant::max());
        return engine.trajectory().value();
    };
    CHECK(trajectory(10) == trajectory(10));
    CHECK(trajectory(10) != trajectory(11));
}

TEST_CASE("the engine runs on picoseconds as on nanoseconds") {
    Engine<Picoseconds> engine;
    struct Once : Engine<Picoseconds>::Component {
        int handled = 0;
        void handle(std::uint32_t) override { ++handled; }
    } once;
    const auto id = engine.add(once, "once");
    engine.schedule(Engine<Picoseconds>::Instant(Picoseconds(81'920)), id, 0);
    engine.run(Engine<Picoseconds>::Instant(Picoseconds(100'000)));
    CHECK(once.handled == 1);
}
