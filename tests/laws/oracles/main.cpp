// usage: oracles [TABLE.csv...] [--json] [--rows]
//        oracles --draws N TRAFFIC CONTROL PATH TRIMMING
//
// Prints exact oracles and others' simulators beside what the models say, as 'railyard verify' prints
// measurements. Without tables: those of tests/laws/tables. --draws: a case of table 45 with N seeds, and the
// range of each figure over them.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "sim/error.h"
#include "tests/laws/oracles/oracles.h"
#include "tests/laws/oracles/uet_runs.h"
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

// A figure that is chance: its mean over the seeds, and the least and the greatest.
void print_draws(int draws, const railyard::UetCase& given) {
    std::map<std::string, std::vector<double>> figures;
    for (int seed = 1; seed <= draws; ++seed) {
        for (const auto& [name, value] : railyard::uet_run(
                 given, RAILYARD_ROOT "/tests/laws/tables", static_cast<std::uint64_t>(seed))) {
            figures[name].push_back(value);
        }
    }
    for (const auto& [name, values] : figures) {
        const auto [least, greatest] = std::ranges::minmax(values);
        const double mean = std::reduce(values.begin(), values.end()) / draws;
        fmt::print("{}: mean {:.5g}, {:.5g} to {:.5g}\n", name, mean, least, greatest);
    }
}

}  // namespace

int main(int count, char** arguments) {
    using namespace railyard;
    if (count == 7 && std::string_view(arguments[1]) == "--draws") {
        print_draws(std::atoi(arguments[2]),
                    {arguments[3], arguments[4], arguments[5], arguments[6]});
        return 0;
    }
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
