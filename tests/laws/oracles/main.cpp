// usage: oracles [TABLE.csv...] [--json] [--rows]
//
// Prints exact oracles and others' simulators beside what the models say, as 'railyard verify' prints
// measurements. Without tables: those of tests/laws/tables.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/error.h"
#include "tests/laws/oracles/oracles.h"
#include "tools/cli/verified_report.h"

namespace {

std::vector<std::string> all_tables() {
    std::vector<std::string> out;
    for (const auto& entry :
         std::filesystem::directory_iterator(RAILYARD_ROOT "/tests/laws/tables")) {
        if (entry.path().extension() == ".csv") out.push_back(entry.path().string());
    }
    std::ranges::sort(out);
    return out;
}

}  // namespace

int main(int count, char** arguments) {
    using namespace railyard;
    std::vector<std::string> paths;
    bool json = false;
    bool rows = false;
    for (const std::string& argument : std::vector<std::string>(arguments + 1, arguments + count)) {
        if (argument == "--json") {
            json = true;
        } else if (argument == "--rows") {
            rows = true;
        } else {
            paths.push_back(argument);
        }
    }
    try {
        std::vector<VerifiedTable> tables;
        for (const std::string& path : paths.empty() ? all_tables() : paths) {
            std::optional<VerifiedTable> verified = verify_oracle(read_csv_table(path));
            if (!verified) throw ScenarioError(path + ": no oracle reads this table");
            for (const Diagnostic& row : verified->unused) {
                fmt::print(stderr, "{}\n", format_diagnostic(row, "warning"));
            }
            tables.push_back(std::move(*verified));
        }
        fmt::print("{}", json ? verified_json(tables) + "\n" : verified_text(tables, rows));
    } catch (const ScenarioError& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 2;
    }
    return 0;
}
