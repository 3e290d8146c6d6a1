// Any bytes as the execution trace of a job's ranks: refused with a ScenarioError, or a step.

#include <cstddef>
#include <cstdint>
#include <string>

#include "models/campaign/campaign.h"
#include "tests/fuzz/scratch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace railyard;
    static const ScratchFile file("step.0.et");
    const std::string& path = file.holding({reinterpret_cast<const char*>(data), size});
    const std::string scenario =
        "[run]\nduration = \"1 day\"\nreplicas = 1\n[cluster]\nnodes = 2\n[job]\n"
        "checkpoint.mode = \"none\"\ntrace = \"" +
        path + "\"\n";
    try {
        load_scenario(scenario, "fuzz");
    } catch (const ScenarioError&) {
        // What a wrong trace should come to.
    }
    return 0;
}
