// Any bytes as a scenario: it is refused with a ScenarioError, or it loads and runs. Whatever else
// happens - a failed check, a sanitizer's finding, a hang - is a bug.

#include <algorithm>

#include "models/campaign/campaign.h"
#include "tests/fuzz/fuzzer.h"

namespace {

void run_windows(const railyard::Scenario& scenario, std::int64_t events_max) {
    using namespace railyard;
    StandaloneCatalogue own = scenario.open_catalogue();
    try {
        for (NetworkWindow& each : packet_windows(scenario)) {
            each.window.events_max = static_cast<std::uint64_t>(events_max);
            run_window(own.catalogue, each.network->topology, each.network->packets, each.window);
        }
    } catch (const NoPath&) {
        // Its cables are cut.
    }
}

}  // namespace

void try_bytes(std::string_view bytes) {
    using namespace railyard;
    refused_or_read([&] {
        Scenario scenario = load_scenario(bytes, "fuzz.toml");
        // Enough for every phase of a job, few enough for thousands of scenarios a second.
        constexpr std::int64_t events_max = 2000;
        scenario.events_max = std::min(scenario.events_max, events_max);
        run_replica(scenario, 0, true);
        if (scenario.window.given) run_windows(scenario, events_max);
    });
}
