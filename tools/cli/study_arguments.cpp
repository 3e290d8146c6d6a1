#include "tools/cli/study_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "tools/cli/terminal_observer.h"
#include "tools/program/program.h"

namespace railyard {

void add_study_options(CommandLine& line) {
    line.add_settings();
    line.add()("seed", po::value<std::string>(), "Seed of all random streams (run.seed)");
    line.add()("replicas", po::value<std::string>(), "Number of replicas (run.replicas)");
    line.add()(
        "jobs,j",
        po::value<std::int64_t>()->default_value(std::max(1U, std::thread::hardware_concurrency())),
        "Threads; the result does not depend on it");
    line.add()("json", "Print one JSON object on standard output and nothing else");
}

std::int64_t count_option(const po::variables_map& values, const char* option, std::int64_t least) {
    const std::int64_t n = values[option].as<std::int64_t>();
    if (n >= least) return n;
    throw ScenarioError(fmt::format("--{}: expected {} or more, found {}", option, least, n));
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
    constexpr std::int64_t threads_max = 1024;
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
    out.trials.threads =
        static_cast<unsigned>(std::min(count_option(values, "jobs", 1), threads_max));
    out.trials.cancelled = &interrupted();
    out.json = values.count("json") > 0;
    return out;
}

}  // namespace railyard
