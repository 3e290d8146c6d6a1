// railyard export: what was simulated, in the forms that other programs and real clusters have.

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "tools/cli/cmd.h"
#include "tools/cli/options.h"
#include "tools/cli/terminal.h"
#include "tools/export/export.h"
#include "tools/language/scenario_files.h"
#include "tools/program/output_file.h"
#include "tools/study/trials.h"

namespace railyard {

namespace {

int list_kinds_of_export() {
    Table table({"kind", "what it writes"});
    for (const ExportKind& kind : export_kinds()) table.add({kind.name, kind.doc});
    fmt::print("{}", table.text());
    return exit_ok;
}

void make_folder(const std::string& path) {
    std::error_code failed;
    std::filesystem::create_directories(path, failed);
    if (failed) {
        throw ScenarioError(fmt::format("{}: can't be made a folder: {}", path, failed.message()));
    }
}

}  // namespace

int cmd_export(const std::vector<std::string>& arguments) {
    CommandLine line("railyard export KIND SCENARIO.toml -o FILE [options]",
                     "Writes what was simulated in the form that another program or a real cluster "
                     "has; 'railyard\nimport' reads some of it back.");
    line.add_settings();
    line.add()("list", "What can be exported");
    line.add()("output,o", a_text(),
               "The file to write, others get its name and an ending; for astra-sim the folder");
    line.add()("replica", a_count(0), "Which replica, counted from 0");
    line.positional("what", -1);
    const auto values = line.parse(arguments);
    if (values.count("list")) return list_kinds_of_export();
    const std::vector<std::string> what = all_of(values, "what");
    if (what.size() != 2 || !values.count("output")) {
        throw ScenarioError("expected a kind, a scenario and -o FILE", "railyard export --list");
    }
    const ExportKind& kind =
        named(export_kinds(), what[0], fmt::format("nothing exports '{}'", what[0]));
    ScenarioChanges changes;
    changes.settings = settings_of(values);
    changes.must_run = kind.replica;
    changes.packets = kind.window;
    changes.run_windows = !kind.window;
    if (!kind.replica) changes.overrides_read = std::make_shared<OverridesRead>();
    const Scenario s = load_scenario_file(what[1], changes);
    print_warnings(s.warnings);
    const std::int64_t replica = values["replica"].as<std::int64_t>();
    if (kind.replica) check_replica(replica, s.replicas);
    if (kind.replica && !takes_first_step(s)) return exit_stuck;
    const std::string output = values["output"].as<std::string>();
    const std::vector<std::string> inputs = files_of(what[1], changes.settings);
    const std::vector<ExportedFile> files = kind.run(s, replica);
    if (kind.folder) make_folder(output);
    for (const ExportedFile& file : files) {
        write_file(output + (kind.folder ? "/" : "") + file.ending, file.text, inputs);
    }
    return exit_ok;
}

}  // namespace railyard
