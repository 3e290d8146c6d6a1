// Any bytes to each importer, as its only file and as all of two: refused with a ScenarioError, or imported.

#include "tests/fuzz/fuzzer.h"
#include "tools/import/import.h"

namespace {

railyard::ImportOptions options_for(const std::vector<std::string>& files, bool skip_bad) {
    railyard::ImportOptions options;
    options.files = files;
    options.name = "mine";
    options.sequence_length = 4096;
    options.nodes = {"dgx_h100"};
    options.output = "mine.toml";
    options.nic = "cx7_ndr400";
    options.network = "1x400G";
    options.hosts = 4;
    options.node_days = 100;
    options.skip_bad = skip_bad;
    return options;
}

}  // namespace

void try_bytes(std::string_view bytes) {
    using namespace railyard;
    static const ScratchFile file("imported");
    const std::string& path = file.holding(bytes);
    for (const ImportKind& kind : import_kinds()) {
        for (const std::vector<std::string>& files :
             {std::vector<std::string>{path}, std::vector<std::string>{path, path}}) {
            for (const bool skip_bad : {false, true}) {
                refused_or_read([&] {
                    Diagnostics diagnostics;
                    import_files(kind, options_for(files, skip_bad), diagnostics);
                });
            }
        }
    }
}
