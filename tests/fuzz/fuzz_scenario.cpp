// Any bytes as a scenario: it is refused with a ScenarioError, or it loads and runs. Whatever else
// happens - a failed check, a sanitizer's finding, a hang - is a bug.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "models/campaign/campaign.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace railyard;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        Scenario scenario = load_scenario(text, "fuzz.toml");
        // Enough for every phase of a job, few enough for thousands of scenarios a second.
        constexpr std::int64_t events_max = 2000;
        scenario.events_max = std::min(scenario.events_max, events_max);
        run_replica(scenario, 0, true);
    } catch (const ScenarioError&) {
        // What a wrong scenario should come to.
    }
    return 0;
}
