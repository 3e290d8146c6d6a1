// Any bytes as a table of virtual clusters: refused with a ScenarioError, or read.

#include "tests/fuzz/fuzzer.h"
#include "tools/language/nodes_file.h"

void try_bytes(std::string_view bytes) {
    using namespace railyard;
    static const ScratchFile file("nodes.csv");
    const std::string& path = file.holding(bytes);
    for (const std::optional<std::int64_t> gpus_per_node :
         {std::optional<std::int64_t>(), std::optional<std::int64_t>(8)}) {
        refused_or_read([&] { read_nodes_file(path, gpus_per_node); });
    }
}
