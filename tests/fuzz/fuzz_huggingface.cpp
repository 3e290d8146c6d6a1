// Any bytes as the config.json of a model, and as the index of its weights: refused with a ScenarioError, or
// imported.

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/scratch_file.h"
#include "tools/import/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace railyard;
    static const ScratchFile file("config.json");
    const std::string& path = file.holding({reinterpret_cast<const char*>(data), size});
    for (const std::vector<std::string>& files :
         {std::vector<std::string>{path}, std::vector<std::string>{path, path}}) {
        try {
            Diagnostics diagnostics;
            import_files(import_kinds().front(), {files, "mine", 4096}, diagnostics);
        } catch (const ScenarioError&) {
            // What a wrong file should come to.
        }
    }
    return 0;
}
