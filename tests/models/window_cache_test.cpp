// Windows that are run once: who waits, who does not, and who stops.

#include <doctest/doctest.h>

#include <algorithm>
#include <future>

#include "tests/models/windows.h"

using namespace railyard;

namespace {

const std::string text = one_switch + R"(
[[window.traffic]]
bytes = "1 MB"
)";

// A scenario's one window, and a cache to run it with.
struct Windows {
    explicit Windows(const std::atomic<bool>* cancelled = nullptr)
        : cache(std::make_unique<WindowCache>(WindowObserver{cancelled})),
          scenario(load_scenario(text, "windows", changes())) {}
    static ScenarioChanges changes() {
        ScenarioChanges out;
        out.packets = true;
        return out;
    }
    NetworkWindow window() const { return packet_windows(scenario)[0]; }
    std::shared_ptr<const WindowResult> run(const NetworkWindow& w) {
        StandaloneCatalogue own = scenario.open_catalogue();
        return cache->run(own.catalogue, w.network->topology, w.network->packets, w.window);
    }

    std::unique_ptr<WindowCache> cache;
    Scenario scenario;
};

// It sends for years.
NetworkWindow never_ending(NetworkWindow window) {
    for (PacketFlow& flow : window.window.flows) flow.bytes = std::int64_t{1} << 42;
    window.window.time_max = PacketEngine::never;
    window.window.events_max = UINT64_MAX;
    return window;
}

}  // namespace

TEST_CASE(
    "equal windows are run once, others are not taken for them, and all go with their cache") {
    Windows w;
    const NetworkWindow window = w.window();
    const auto once = w.run(window);
    CHECK(once == w.run(window));
    NetworkWindow larger = window;
    larger.window.flows[0].bytes += 1;
    CHECK(once != w.run(larger));
    const std::weak_ptr<const WindowResult> kept = w.run(larger);
    CHECK_FALSE(kept.expired());
    w.cache.reset();
    CHECK(kept.expired());
}

TEST_CASE("a window waits for no other one, and stops when it is told to") {
    std::atomic<bool> cancelled{false};
    Windows w(&cancelled);
    const NetworkWindow for_ever = never_ending(w.window());
    auto long_one = std::async(std::launch::async, [&] { return w.run(for_ever); });
    auto same_one = std::async(std::launch::async, [&] { return w.run(for_ever); });
    CHECK(w.run(w.window())->ending == WindowEnding::resolved);
    cancelled = true;
    CHECK_THROWS_AS(long_one.get(), Interrupted);
    CHECK_THROWS_AS(same_one.get(), Interrupted);
    CHECK_THROWS_AS(w.run(for_ever), Interrupted);
}

TEST_CASE("who waits for a window hears how many of its flows are through") {
    std::vector<std::int64_t> heard;
    std::int64_t flows = 0;
    Windows w;
    const NetworkWindow window = w.window();
    const auto unobserved = w.run(window);
    w.cache = std::make_unique<WindowCache>(
        WindowObserver{.progress = [&](std::int64_t ended, std::int64_t all) {
            heard.push_back(ended);
            flows = all;
        }});
    CHECK(w.run(window)->digest == unobserved->digest);
    CHECK(flows == static_cast<std::int64_t>(window.window.flows.size()));
    REQUIRE(heard.size() > 2);
    CHECK(heard.front() == 0);
    CHECK(std::is_sorted(heard.begin(), heard.end()));
    CHECK(heard.back() == flows);
}

TEST_CASE("Ctrl-C while a scenario's storm is looked at ends the reading") {
    const std::atomic<bool> cancelled{true};
    ScenarioChanges changes;
    changes.settings = {"failures.storm=[{rate_per_job=\"1 /day\",duration=\"1 ms\"}]"};
    CHECK_NOTHROW(load_scenario(text, "windows", changes));
    changes.windows = std::make_shared<WindowCache>(WindowObserver{&cancelled});
    CHECK_THROWS_AS(load_scenario(text, "windows", changes), Interrupted);
}

TEST_CASE("who only asks whether a file is right waits for no storm's packets, nor for a step's") {
    std::int64_t windows = 0;
    std::atomic<bool> cancelled{false};
    const WindowObserver counts{.cancelled = &cancelled,
                                .progress = [&](std::int64_t, std::int64_t) {
                                    ++windows;
                                    cancelled = true;  // the first packets are one too many
                                }};
    // Minutes of packets between all GPUs, for the storm and for the step.
    const std::vector<std::string> settings = {
        "failures.storm=[{rate_per_job=\"1 /day\",duration=\"1 h\"}]",
        "window.time_max=\"1 h\"",
        "window.events_max=1000000000000",
        "window.traffic=[{kind=\"all_to_all\",bytes=\"100 GB\"}]",
        "run.fidelity=packet",
        "job.model=llama2_7b",
    };
    ScenarioChanges changes;
    changes.settings = settings;
    changes.run_windows = false;
    changes.windows = std::make_shared<WindowCache>(counts);
    const Scenario checked = load_scenario(text, "windows", changes);
    CHECK(windows == 0);
    REQUIRE(checked.causes.size() == 1);
    CHECK(checked.causes[0].storm);
    changes.run_windows = true;
    CHECK_THROWS_AS(load_scenario(text, "windows", changes), Interrupted);
    CHECK(windows > 0);
}
