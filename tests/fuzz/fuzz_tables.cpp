// Any bytes as a published table: refused with a ScenarioError, or its rows are expressed or named as unused.
// The first line is the table's name, by whose number its format is known. Tables whose rows are whole
// campaigns or packet windows are not tried: one of them takes longer than all others.

#include <algorithm>

#include "tests/fuzz/fuzzer.h"
#include "tools/verify/tables.h"

namespace {

bool is_quick(std::string_view name) {
    for (const char* number : {"01", "02", "03", "04", "05", "06", "09", "10", "13", "14", "15",
                               "16", "17", "19", "80", "88"}) {
        if (name.starts_with(number)) return true;
    }
    return false;
}

}  // namespace

void try_bytes(std::string_view bytes) {
    using namespace railyard;
    static const ScratchFile file("table.csv");
    const std::size_t end = std::min(bytes.find('\n'), bytes.size());
    const std::string path = file.holding(bytes.substr(std::min(end + 1, bytes.size())));
    refused_or_read([&] {
        CsvTable table = read_csv_table(path);
        table.name = bytes.substr(0, end);
        if (is_quick(table.name)) verify_table(table, {});
    });
}
