// A file that describes a table of measurements, with any bytes, over a table that stays the same: its rows
// are run, or it is refused with a ScenarioError.

#include "tests/fuzz/fuzzer.h"
#include "tools/verify/described_table.h"

namespace {

// What the descriptions in the corpus have columns for.
constexpr const char* table_text =
    "what,gpus,batch,ms\nfirst,16,16,900\nfull,16,16,1200\nlast,20,x,\n";

}  // namespace

void try_bytes(std::string_view bytes) {
    using namespace railyard;
    static const ScratchFile table_file("table.csv");
    static const CsvTable table = read_csv_table(table_file.holding(table_text));
    static const ScratchFile file("table.toml");
    const std::string& path = file.holding(bytes);
    refused_or_read([&] {
        VerifyOptions options;
        options.settings = {"run.events_max=2000", "run.replicas=1", "run.fidelity=analytic"};
        options.threads = 1;
        verify_described(table, path, options);
    });
}
