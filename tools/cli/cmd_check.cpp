// railyard check: all that is wrong with scenarios, nothing run.

#include <fmt/format.h>

#include "models/campaign/campaign.h"
#include "tools/cli/cmd.h"
#include "tools/cli/options.h"
#include "tools/cli/terminal.h"

namespace railyard {

int cmd_check(const std::vector<std::string>& arguments) {
    CommandLine line(
        "railyard check SCENARIO.toml... [--set key=value]",
        "Reads scenarios and reports every error and warning. Exit code 2 when one has an error,\n"
        "3 when one is right but its job could never advance. No packet window is run: what only\n"
        "packets can tell, lost ones and a storm that window.events_max cuts off, 'run' says.");
    line.positional("scenario", -1);
    line.add_settings();
    const auto values = line.parse(arguments);
    if (!values.count("scenario"))
        throw ScenarioError("check needs a scenario file", "railyard check SCENARIO.toml...");

    ScenarioChanges changes;
    changes.settings = settings_of(values);
    changes.run_windows = false;
    changes.phases = true;
    bool ok = true;
    bool stuck = false;
    const auto paths = values["scenario"].as<std::vector<std::string>>();
    for (std::size_t i = 0; i < paths.size(); ++i) {
        const std::string& path = paths[i];
        try {
            const Scenario scenario = load_scenario_file(path, changes);
            print_warnings(scenario.warnings);
            if (!scenario.no_path.empty()) {
                stuck = true;
                fmt::print(stderr, "{}: stuck: the job can't take its first step: {}\n", path,
                           scenario.no_path);
                continue;
            }
            if (scenario.world && scenario.phases.empty()) {
                for (const JobsRefused& jobs : jobs_refused(scenario)) {
                    fmt::print(stderr, "{}: warning: jobs of the kind '{}' are refused: {}\n", path,
                               visible(jobs.kind), jobs.reason);
                }
            }
            fmt::print("{}: {}\n", path, coloured("ok", Colour::green));
        } catch (const ScenarioError& error) {
            ok = false;
            fmt::print(stderr, "{}\n", error.what());
        } catch (const Interrupted&) {
            if (i == 0) throw;
            fmt::print(stderr, "railyard: interrupted: {} of {} scenarios were checked\n", i,
                       paths.size());
            return exit_interrupted;
        }
    }
    if (!ok) return exit_user_error;
    return stuck ? exit_stuck : exit_ok;
}

}  // namespace railyard
