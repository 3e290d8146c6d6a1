// Any bytes as a network's own file: refused with a ScenarioError, or built, and packets cross it.

#include <cstddef>
#include <cstdint>

#include "models/campaign/campaign.h"
#include "tests/fuzz/scratch_file.h"

namespace {

constexpr const char* scenario = R"(
[run]
duration = "1 h"
[cluster]
node = "dgx_h100"
nodes = 8
nics_per_node = 2
[fabric.compute]
kind = "roce"
topology = "custom"
file = "network.toml"
[job]
step.time = "1 s"
checkpoint.mode = "none"
[window]
events_max = 2000
)";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace railyard;
    static const ScratchFile file("network.toml");
    file.holding({reinterpret_cast<const char*>(data), size});
    const std::string folder = file.path().substr(0, file.path().rfind('/') + 1);
    try {
        const Scenario s = load_scenario(scenario, folder + "fuzz.toml");
        StandaloneCatalogue own = s.open_catalogue();
        for (const NetworkWindow& each : packet_windows(s)) {
            run_window(own.catalogue, each.network->topology, each.network->packets, each.window);
        }
    } catch (const ScenarioError&) {
        // What a wrong network should come to.
    } catch (const NoPath&) {
        // Its parts are not all joined.
    }
    return 0;
}
