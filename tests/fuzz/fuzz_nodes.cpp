// Any bytes as a table of virtual clusters: refused with a ScenarioError, or read.

#include <cstddef>
#include <cstdint>

#include "sim/error.h"
#include "tests/fuzz/scratch_file.h"
#include "tools/language/nodes_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace railyard;
    static const ScratchFile file("nodes.csv");
    const std::string& path = file.holding({reinterpret_cast<const char*>(data), size});
    for (const std::optional<std::int64_t> gpus_per_node :
         {std::optional<std::int64_t>(), std::optional<std::int64_t>(8)}) {
        try {
            read_nodes_file(path, gpus_per_node);
        } catch (const ScenarioError&) {
            // What a wrong table should come to.
        }
    }
    return 0;
}
