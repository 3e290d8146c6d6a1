// Any bytes as a list of flows: refused in words, or read for the NICs that there are.

#include <cstdlib>

#include "models/fabric/fabric.h"
#include "tests/fuzz/fuzzer.h"

void try_bytes(std::string_view bytes) {
    using namespace railyard;
    static const ScratchFile file("flows.csv");
    const std::string& path = file.holding(bytes);
    constexpr std::int64_t nics = 16;
    Diagnostics diagnostics;
    const std::vector<ListedFlow> flows = read_traffic_file(path, nics, diagnostics);
    if (flows.empty() == diagnostics.ok()) std::abort();
    for (std::size_t i = 0; i < flows.size(); ++i) {
        if (flows[i].after >= static_cast<std::int64_t>(i)) std::abort();  // it waits for itself
    }
}
