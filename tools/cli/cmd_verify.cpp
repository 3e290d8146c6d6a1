// railyard verify: published measurements beside what the program says.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "sim/error.h"
#include "tools/cli/cmd.h"
#include "tools/cli/options.h"
#include "tools/cli/terminal.h"
#include "tools/cli/verified_report.h"
#include "tools/program/installation.h"
#include "tools/study/study.h"
#include "tools/verify/table_files.h"
#include "tools/verify/tables.h"

namespace railyard {

namespace {

std::vector<TableFiles> shipped_tables() {
    std::vector<TableFiles> out;
    for (const auto& entry :
         std::filesystem::directory_iterator(shipped_file("tests/validation"))) {
        if (entry.path().extension() == ".csv") out.push_back({entry.path().string(), {}});
    }
    std::ranges::sort(out, {}, &TableFiles::csv);
    return out;
}

// Returns how many tables were finished; fewer than there are after Ctrl-C. What nothing describes goes to
// `unknown`.
std::size_t verify_all(const std::vector<NamedTable>& wanted, VerifyOptions options,
                       std::vector<VerifiedTable>& out, std::vector<std::string>& unknown) {
    std::size_t rows = 0;
    for (const NamedTable& table : wanted) rows += table.csv.rows.size();
    std::size_t before = 0;
    std::size_t done = 0;
    try {
        Progress line("rows");
        for (const NamedTable& table : wanted) {
            options.description = table.description;
            const auto here = static_cast<double>(table.csv.rows.size());
            options.progress = [&](double share) {
                line.update(static_cast<std::int64_t>(before) + std::llround(share * here),
                            static_cast<std::int64_t>(rows));
            };
            const std::vector<VerifiedTable> verified = verify_table(table.csv, options);
            out.insert(out.end(), verified.begin(), verified.end());
            if (verified.empty()) unknown.push_back(table.csv.path);
            before += table.csv.rows.size();
            options.progress(0);
            ++done;
        }
    } catch (const Interrupted&) {
        if (done == 0) throw;
        fmt::print(stderr,
                   "railyard: interrupted: these are the {} of {} tables that were finished\n",
                   done, wanted.size());
    }
    return done;
}

// Whether a table has no row to compare, and says so. One with a tolerance is outside it then.
bool all_refused(const VerifiedTable& table) {
    if (table.rows == 0) {
        fmt::print(stderr, "railyard: table {} has no rows\n", visible(table.name));
        return true;
    }
    if (!table.expressed.empty() || !table.outside().empty()) return false;
    fmt::print(
        stderr,
        "railyard: none of the {} rows of table {} can be expressed, so nothing was compared\n",
        table.rows, visible(table.name));
    return true;
}

// Returns how many there are.
std::size_t say_outside(const std::vector<VerifiedTable>& tables) {
    std::size_t count = 0;
    for (const VerifiedTable& table : tables) {
        for (const std::string& passed : table.outside()) {
            fmt::print(stderr, "railyard: outside the tolerance: {}\n", visible(passed));
            ++count;
        }
    }
    return count;
}

void say_unknown(const std::string& path) {
    fmt::print(
        stderr,
        "{}: error: nothing says what its columns are\n"
        "    name the TOML file that describes it before it: railyard verify TABLE.toml {}\n",
        visible(path), visible(path));
}

}  // namespace

int cmd_verify(const std::vector<std::string>& arguments) {
    CommandLine line(
        "railyard verify [[TABLE.toml] TABLE.csv...] [options]",
        "Prints published measurements beside what the program says, with the error, and how many\n"
        "of the rows can be expressed at all. Without tables: those that ship. A table of your\n"
        "own comes with a TOML file that says what its columns are. Exits with 4 when a row or a\n"
        "mean is outside the table's tolerance, with 2 when no row of a table can be expressed.");
    line.positional("table", -1);
    line.add()("set", po::value<std::vector<std::string>>()->composing(),
               "Another value in the catalogue: --set override.gpu.h100_sxm.hbm_efficiency=0.8");
    line.add_json();
    line.add()("rows", "Print every row, not only the summary of each table");
    const auto values = line.parse(arguments);
    const bool named = values.count("table") > 0;
    const std::vector<TableFiles> paths =
        named ? named_tables(values["table"].as<std::vector<std::string>>()) : shipped_tables();

    Diagnostics diagnostics;
    Document settings;
    settings.name = "--set";
    for (const std::string& setting : settings_of(values)) {
        check_setting(setting, "verify", diagnostics);
    }
    diagnostics.raise_if_any();
    for (const std::string& setting : settings_of(values)) {
        apply_setting(settings, setting, diagnostics);
    }
    const Value* overrides = settings.root.find("override");

    std::vector<VerifiedTable> tables;
    std::vector<std::string> unknown;
    const std::size_t done =
        verify_all(read_tables(paths), {{}, settings_of(values), overrides}, tables, unknown);
    if (!named) unknown.clear();  // of those that ship, the ones that tests read
    for (const std::string& path : unknown) say_unknown(path);
    std::set<std::string> said;  // a row that is of two quantities is refused for both
    for (const VerifiedTable& table : tables) {
        print_warnings(table.warnings);
        for (Diagnostic row : table.unused) {
            row.help = "this row is not expressed";
            const std::string text = format_diagnostic(row, "warning");
            if (said.insert(text).second) fmt::print(stderr, "{}\n", text);
        }
    }
    const auto refused = std::ranges::count_if(tables, all_refused);
    const std::size_t outside = say_outside(tables);
    const int code = done < paths.size()                 ? exit_interrupted
                     : refused + std::ssize(unknown) > 0 ? exit_user_error
                     : outside > 0                       ? exit_limit
                                                         : exit_ok;
    if (values.count("json")) {
        fmt::print("{}\n", verified_json(tables));
        return code;
    }
    fmt::print("{}", verified_text(tables, values.count("rows") > 0));
    return code;
}

}  // namespace railyard
