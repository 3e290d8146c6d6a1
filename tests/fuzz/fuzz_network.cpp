// Any bytes as a network's own file: refused with a ScenarioError, or built, and packets cross it.

#include "models/campaign/campaign.h"
#include "tests/fuzz/fuzzer.h"

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

void try_bytes(std::string_view bytes) {
    using namespace railyard;
    static const ScratchFile file("network.toml");
    file.holding(bytes);
    const std::string folder = file.path().substr(0, file.path().rfind('/') + 1);
    try {
        refused_or_read([&] {
            const Scenario s = load_scenario(scenario, folder + "fuzz.toml");
            StandaloneCatalogue own = s.open_catalogue();
            for (const NetworkWindow& w : packet_windows(s)) {
                run_window(own.catalogue, w.network->topology, w.network->packets, w.window);
            }
        });
    } catch (const NoPath&) {
        // Its parts are not all joined.
    }
}
