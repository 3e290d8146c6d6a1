#include "tools/cli/study_arguments.h"

#include <fmt/format.h>

#include "tools/cli/terminal_observer.h"
#include "tools/program/program.h"

namespace railyard {

void add_study_options(CommandLine& line) {
    line.add_settings();
    line.add()("seed", po::value<std::string>(), "Seed of all random streams (run.seed)");
    line.add()("replicas", po::value<std::string>(), "Number of replicas (run.replicas)");
    line.add_threads();
    line.add_json();
}

std::string only_scenario(const po::variables_map& values, const std::string& verb) {
    const std::string help =
        fmt::format("railyard {} SCENARIO.toml; '{} --help' says more", verb, verb);
    if (!values.count("scenario")) throw ScenarioError(verb + " needs a scenario file", help);
    const auto& paths = values["scenario"].as<std::vector<std::string>>();
    if (paths.size() > 1) {
        throw ScenarioError(fmt::format("{} takes one scenario file, found {}", verb, paths.size()),
                            help);
    }
    return paths[0];
}

StudyArguments study_arguments(const po::variables_map& values, const std::string& path) {
    StudyArguments out;
    out.changes.settings = settings_of(values);
    // One for all that is tried: most of it has the same windows.
    out.changes.windows = watched_windows();
    for (const char* key : {"seed", "replicas"}) {
        if (values.count(key)) {
            out.changes.settings.push_back(
                fmt::format("run.{}={}", key, values[key].as<std::string>()));
        }
    }
    out.trials.text = read_file(path);
    out.trials.file = path;
    out.trials.threads = threads_of(values);
    out.trials.cancelled = &interrupted();
    out.json = values.count("json") > 0;
    return out;
}

}  // namespace railyard
