// Any bytes as the execution trace of a job's ranks: refused with a ScenarioError, or a step.

#include <string>

#include "models/campaign/campaign.h"
#include "tests/fuzz/fuzzer.h"

void try_bytes(std::string_view bytes) {
    using namespace railyard;
    static const ScratchFile file("step.0.et");
    const std::string& path = file.holding(bytes);
    const std::string scenario =
        "[run]\nduration = \"1 day\"\nreplicas = 1\n[cluster]\nnodes = 2\n[job]\n"
        "checkpoint.mode = \"none\"\ntrace = \"" +
        path + "\"\n";
    refused_or_read([&] { load_scenario(scenario, "fuzz"); });
}
